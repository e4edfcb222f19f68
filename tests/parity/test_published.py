"""Published models give the logits that transformers gives, padded or not, cached or not, and go back as they came."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from heedful.families import read_checkpoint, read_published, write_checkpoint, write_published
from published_pairs import GENERATORS, MAKERS, TEXTS, Pair, files, pair
from published_readers import CHANGES, PARTS, READERS

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}
LENGTHS, SOURCE_LENGTHS = [9, 4, 1], [7, 11, 2]

every_pair = pytest.mark.parametrize("name", MAKERS)
every_text = pytest.mark.parametrize("name", TEXTS)
both_dtypes = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
cached_pair = cache(pair)


@torch.no_grad()
def reference_output(
    both: Pair, source: Tensor, target: Tensor, keep: Tensor | None = None, real: Tensor | None = None
) -> Tensor:
    if both.reference.config.is_encoder_decoder:
        masks = {"attention_mask": keep, "decoder_attention_mask": real}
        return both.reference(source, decoder_input_ids=target, **masks).logits
    out = both.reference(target) if real is None else both.reference(target, attention_mask=real)
    if hasattr(out, "start_logits"):
        return torch.stack([out.start_logits, out.end_logits], dim=-1)
    names = ("logits", "prediction_outputs", "pooler_output", "last_hidden_state")
    return next(output for name in names if (output := getattr(out, name, None)) is not None)


@torch.no_grad()
def actual_output(
    both: Pair, source: Tensor, target: Tensor, keep: Tensor | None = None, real: Tensor | None = None
) -> Tensor:
    if both.reference.config.is_encoder_decoder:
        return both.module(source, target, keep, real)
    return both.module(target, real)


def at(real: Tensor, out: Tensor) -> Tensor:
    """The real places, where there is one answer for each."""
    return out[real] if out.shape[: real.dim()] == real.shape else out


def close(mine: Tensor, reference: Tensor) -> None:
    assert mine.dtype == reference.dtype
    scale = max(1.0, float(reference.abs().max()))
    torch.testing.assert_close(mine, reference, rtol=0, atol=TOLERANCE[mine.dtype] * scale)


@every_text
@both_dtypes
@pytest.mark.parametrize("length", [1, 9, 64])
def test_logits_at_every_length(name: str, dtype: torch.dtype, length: int) -> None:
    both = cached_pair(name, dtype)
    source, target = both.inputs(2, length), both.inputs(2, length)
    close(actual_output(both, source, target), reference_output(both, source, target))


@every_text
@both_dtypes
def test_padding_on_the_right(name: str, dtype: torch.dtype) -> None:
    both = cached_pair(name, dtype)
    source, target = both.inputs(3, 11), both.inputs(3, 9)
    keep = torch.arange(11) < torch.tensor(SOURCE_LENGTHS)[:, None]
    real = torch.arange(9) < torch.tensor(LENGTHS)[:, None]
    wanted = reference_output(both, source, target, keep.long(), real.long())
    close(at(real, actual_output(both, source, target, keep, real)), at(real, wanted))


@every_text
@both_dtypes
def test_left_padding_matches_the_unpadded_row(name: str, dtype: torch.dtype) -> None:
    """transformers counts padding as places in some models; here a row means what it means alone."""
    both = cached_pair(name, dtype)
    source, target = both.inputs(3, 11), both.inputs(3, 9)
    keep = torch.arange(11) >= 11 - torch.tensor(SOURCE_LENGTHS)[:, None]
    real = torch.arange(9) >= 9 - torch.tensor(LENGTHS)[:, None]
    logits = actual_output(both, source, target, keep, real)
    for row in range(3):
        unpadded = reference_output(both, source[row, keep[row]][None], target[row, real[row]][None])
        close(at(real[row], logits[row]), unpadded[0])


@both_dtypes
@pytest.mark.parametrize("name", ["gpt2", "llama", "bert"])
def test_left_padding_matches_the_reference_with_positions(name: str, dtype: torch.dtype) -> None:
    both = cached_pair(name, dtype)
    target, real = both.inputs(3, 9), torch.arange(9) >= 9 - torch.tensor(LENGTHS)[:, None]
    places = (real.cumsum(dim=1) - 1).clamp(min=0)
    with torch.no_grad():
        wanted = both.reference(target, attention_mask=real.long(), position_ids=places).logits
    close(actual_output(both, target, target, None, real)[real], wanted[real])


@both_dtypes
@torch.no_grad()
def test_segments(dtype: torch.dtype) -> None:
    both = cached_pair("bert", dtype)
    message, segments = both.inputs(2, 7), torch.randint(0, 3, (2, 7))
    close(both.module(message, segments=segments), both.reference(message, token_type_ids=segments).logits)


@torch.no_grad()
def test_the_mean_over_real_tokens() -> None:
    both = cached_pair("bert hidden", torch.float64)
    model = both.reference
    module = read_published(files(model)[0], model.state_dict(), head="mean").module
    message, real = both.inputs(3, 9), torch.arange(9) < torch.tensor(LENGTHS)[:, None]
    hidden = model(message, attention_mask=real.long()).last_hidden_state
    close(module(message, real), (hidden * real[..., None]).sum(dim=1) / real.sum(dim=1, keepdim=True))


@pytest.mark.parametrize("name", [name for name in READERS if name.endswith((" span", " token classes"))])
@torch.no_grad()
def test_padding_cannot_win_a_span_and_labels_stay(name: str) -> None:
    both = cached_pair(name, torch.float32)
    tokens, real = both.inputs(3, 70), torch.arange(70) < torch.tensor([70, 64, 1])[:, None]
    scores, wanted = (
        actual_output(both, tokens, tokens, real=real),
        reference_output(both, tokens, tokens, real=real.long()),
    )
    close(scores[real], wanted[real])
    if name.endswith(" span"):
        assert real.gather(1, scores.argmax(dim=1)).all()
        assert scores.log_softmax(dim=1).isfinite().all()
        return
    labels = ("B-PER", "I-PER", "B-LOC", "I-LOC", "O")
    config = files(both.reference)[0] | {"id2label": dict(enumerate(labels))}
    read = read_published(config, both.reference.state_dict())
    assert read.labels == labels
    out = write_published(read.module, read.config, labels=read.labels)
    assert out.config["id2label"] == {str(place): label for place, label in enumerate(labels)}
    assert out.config["label2id"] == {label: place for place, label in enumerate(labels)}


@pytest.mark.parametrize("name", GENERATORS)
@both_dtypes
@torch.no_grad()
def test_cached_decoding_matches_the_reference(name: str, dtype: torch.dtype) -> None:
    both = cached_pair(name, dtype)
    source, target = both.inputs(3, 11), both.inputs(3, 9)
    module, steps = both.module, []
    saved = module.new_cache()
    memory = module.encode(source) if hasattr(module, "encode") else None
    for start, end in pairwise([0, 3, 4, 5, 8, 9]):
        new = target[:, start:end]
        steps.append(module(new, cache=saved) if memory is None else module.decode(new, memory, cache=saved))
    close(torch.cat(steps, dim=1), reference_output(both, source, target))


@every_pair
@both_dtypes
def test_generated_tokens_match_the_reference(name: str, dtype: torch.dtype) -> None:
    both = cached_pair(name, dtype)
    close(
        actual_output(both, both.inputs(2, 8), both.inputs(2, 7)),
        reference_output(both, both.inputs(2, 8), both.inputs(2, 7)),
    )


@every_pair
def test_import_export_round_trip_is_exact(name: str) -> None:
    both = cached_pair(name, torch.float32)
    published = both.reference.state_dict()
    out = write_published(both.module, both.config, both.generation)
    assert out.tensors.keys() == published.keys()
    for key, tensor in published.items():
        assert torch.equal(out.tensors[key], tensor), key
    again = read_published(out.config, out.tensors, out.generation, **CHANGES.get(name, {}))
    assert again.config == both.config
    assert again.generation == both.generation
    for key, tensor in both.module.state_dict().items():
        assert torch.equal(again.module.state_dict()[key], tensor), key


@every_pair
def test_exported_tensors_load_strictly_into_transformers(name: str) -> None:
    both = cached_pair(name, torch.float32)
    out = write_published(both.module, both.config, both.generation)
    fresh = MAKERS[name]().eval()
    fresh.load_state_dict(out.tensors, strict=True)
    source, target = both.inputs(2, 7), both.inputs(2, 7)
    close(reference_output(both._replace(reference=fresh), source, target), reference_output(both, source, target))


@every_pair
def test_transformers_loads_an_exported_folder(name: str, tmp_path: Path) -> None:
    both = cached_pair(name, torch.float32)
    out = write_published(both.module, both.config, both.generation)
    assert out.config["architectures"] == [type(both.reference).__name__]
    write_checkpoint(tmp_path, both.module, both.config, both.generation)
    again = read_checkpoint(tmp_path, **CHANGES.get(name, {}))
    assert (again.config, again.generation) == (both.config, both.generation)
    for key, tensor in both.module.state_dict().items():
        assert torch.equal(again.module.state_dict()[key], tensor), key
    loaded: Any = type(both.reference).from_pretrained(tmp_path, **PARTS.get(name, {})).eval()
    source, target = both.inputs(2, 7), both.inputs(2, 7)
    close(reference_output(both._replace(reference=loaded), source, target), reference_output(both, source, target))
    if name in GENERATORS:
        for key in out.generation:
            assert getattr(loaded.generation_config, key) == getattr(both.reference.generation_config, key), key
