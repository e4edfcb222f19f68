"""One contract for every family; a new one joins by one line."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import heedful
from heedful.core import DecoderOnly, EncoderDecoder, EncoderOnly
from heedful.errors import RecordingError
from heedful.families import FAMILIES
from heedful.families.weights import read_weights, write_weights

V = 30
SMALL = {"vocab_size": V, "d_model": 24}
LAYERS = {"n_heads": 4, "d_ff": 40, "n_encoder_layers": 2, "n_decoder_layers": 2, **SMALL}
TRANSLATORS: dict[str, dict[str, Any]] = {
    "original": {"family": "original", **LAYERS},
    "recurrent": {"family": "recurrent", "n_encoder_layers": 2, **SMALL},
    "recurrent-plain": {"family": "recurrent", "attention": "none", **SMALL},
    "bart": {"family": "bart", "max_length": 16, **LAYERS},
    "marian": {"family": "marian", **LAYERS},
    "t5": {"family": "t5", "d_head": 7, **LAYERS},
    "t5-v1.1": {"family": "t5", "feed_forward": "gated-gelu", "tied": False, **LAYERS},
}
LANGUAGE_MODELS: dict[str, dict[str, Any]] = {
    "gpt2": {"family": "gpt2", "n_heads": 4, "d_ff": 40, "n_layers": 2, "max_length": 16, **SMALL},
    "llama": {"family": "llama", "n_heads": 4, "n_kv_heads": 2, "d_ff": 40, "n_layers": 2, **SMALL},
}
READERS: dict[str, dict[str, Any]] = {
    head: {"family": "bert", "n_heads": 4, "d_ff": 40, "n_layers": 2, "max_length": 16, "head": head, **SMALL}
    for head in ("words", "classes", "pooled", "mean", "hidden")
}
SHAPES = {"classes": (3, 2), "pooled": (3, 24), "mean": (3, 24), "hidden": (3, 5, 24)}  # others: (3, 5, V)
EVERY = TRANSLATORS | LANGUAGE_MODELS | READERS
every_family = pytest.mark.parametrize("name", EVERY)
every_decoder = pytest.mark.parametrize("name", TRANSLATORS | LANGUAGE_MODELS)
every_translator = pytest.mark.parametrize("name", TRANSLATORS)
SOURCE_LENGTHS, LENGTHS = [6, 2, 4], [3, 5, 4]


def made(name: str) -> Any:
    """With random biases and norms: as they start, zero and one, they would hide a mistake."""
    torch.manual_seed(0)
    model = heedful.build(EVERY[name]).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def padded(lengths: list[int], *, left: bool = False) -> tuple[Tensor, Tensor]:
    longest = max(lengths)
    keep = torch.arange(longest) < torch.tensor(lengths)[:, None]
    return torch.randint(0, V, (len(lengths), longest)), keep.flip(1) if left else keep


def batch(*, left: bool = False) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    source, source_keep = padded(SOURCE_LENGTHS, left=left)
    target, target_keep = padded(LENGTHS, left=left)
    return source, target, source_keep, target_keep


def read(model: Any, source: Tensor, target: Tensor, source_keep: Any = None, target_keep: Any = None) -> Tensor:
    """The answer, of whatever wiring."""
    if isinstance(model, EncoderDecoder):
        return model(source, target, source_keep, target_keep)
    assert isinstance(model, DecoderOnly | EncoderOnly)
    return model(target, target_keep)


def step(model: Any, tokens: Tensor, cache: Any, source: Tensor, source_keep: Tensor) -> Tensor:
    if isinstance(model, EncoderDecoder):
        return model.decode(tokens, model.encode(source, source_keep), source_keep, cache)
    return model(tokens, cache=cache)


def test_every_family_is_here() -> None:
    assert {config["family"] for config in EVERY.values()} == FAMILIES.keys()


@every_family
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_answers_have_the_shape_and_dtype_of_the_model(name: str, dtype: torch.dtype) -> None:
    logits = read(made(name).to(dtype), *batch())
    assert logits.shape == SHAPES.get(name, (3, 5, V))
    assert logits.dtype == dtype
    assert logits.isfinite().all()


@every_translator
def test_forward_is_encode_then_decode(name: str) -> None:
    model = made(name)
    source, target, source_keep, target_keep = batch()
    memory = model.encode(source, source_keep)
    assert torch.equal(
        model.decode(target, memory, source_keep, keep=target_keep), model(source, target, source_keep, target_keep)
    )


@every_family
@pytest.mark.parametrize("left", [False, True], ids=["right", "left"])
def test_a_row_of_a_batch_is_the_row_alone(name: str, left: bool) -> None:
    model = made(name)
    source, target, source_keep, target_keep = batch(left=left)
    together = read(model, source, target, source_keep, target_keep)
    for row in range(3):
        alone = read(model, source[row, source_keep[row]][None], target[row, target_keep[row]][None])
        mine = together[row, target_keep[row]] if together.dim() == 3 else together[row]
        torch.testing.assert_close(mine, alone[0], rtol=0, atol=1e-11)


@every_decoder
@torch.no_grad()
def test_step_by_step_is_all_at_once_also_after_reordering(name: str) -> None:
    model = made(name)
    source, target, source_keep, _ = batch()
    whole = read(model, source, target, source_keep)
    cache = model.new_cache()
    steps = [step(model, target[:, :2], cache, source, source_keep)]
    steps += [step(model, target[:, t : t + 1], cache, source, source_keep) for t in range(2, 5)]
    assert cache.length == 5
    torch.testing.assert_close(torch.cat(steps, dim=1), whole, rtol=0, atol=1e-11)

    rows = torch.tensor([2, 0])
    cache.select(rows)
    again = step(model, target[rows, :1], cache, source[rows], source_keep[rows])
    longer = torch.cat([target[rows], target[rows, :1]], dim=1)
    expected = read(model, source[rows], longer, source_keep[rows])
    torch.testing.assert_close(again[:, 0], expected[:, -1], rtol=0, atol=1e-11)


@every_translator
@torch.no_grad()
def test_beams_share_the_memory_of_their_sentence(name: str) -> None:
    model = made(name)
    source, _, source_keep, _ = batch()
    beams = torch.randint(0, V, (6, 4))  # two beams for each of three sentences
    memory = model.encode(source, source_keep)
    folded = model.decode(beams, memory, source_keep)
    copied = model.decode(beams, memory.repeat_interleave(2, 0), source_keep.repeat_interleave(2, 0))
    torch.testing.assert_close(folded, copied, rtol=0, atol=1e-11)


@every_family
def test_a_copy_and_a_reloaded_state_and_a_file_give_the_same(name: str, tmp_path: Path) -> None:
    model = made(name)
    inputs = batch()
    expected = read(model, *inputs)
    assert torch.equal(read(copy.deepcopy(model), *inputs), expected)
    fresh, filed = (heedful.build(EVERY[name]).double().eval() for _ in range(2))
    fresh.load_state_dict(model.state_dict())
    assert torch.equal(read(fresh, *inputs), expected)
    write_weights(model, tmp_path / "model.safetensors")
    read_weights(filed, tmp_path / "model.safetensors")
    assert torch.equal(read(filed, *inputs), expected)


@every_family
def test_every_parameter_learns(name: str) -> None:
    model = made(name).train()
    read(model, *batch()).square().mean().backward()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in model.parameters())


@every_family
def test_looking_changes_nothing_and_shows_distributions_over_real_tokens(name: str) -> None:
    model = made(name)
    source, target, source_keep, target_keep = batch()
    expected = read(model, source, target, source_keep, target_keep)
    if EVERY[name].get("attention") == "none":
        with pytest.raises(RecordingError, match="no attention"), heedful.record(model):
            pass
        return
    with heedful.record(model) as recording:
        seen = read(model, source, target, source_keep, target_keep)
    assert torch.equal(seen, expected)
    assert recording.looks
    real = {"self": target_keep, "cross": source_keep}
    for look in recording.looks:
        reads_source = look.stack == "encoder" and name in TRANSLATORS
        keep = source_keep if reads_source else real[look.kind]
        queries = source_keep if reads_source else target_keep
        assert look.weights.shape[0] == 3
        assert look.weights.shape[2:] == (queries.shape[1], keep.shape[1])
        rows = look.weights.sum(-1).masked_select(queries[:, None])
        torch.testing.assert_close(rows, torch.ones_like(rows))
        assert not look.weights.masked_select(~keep[:, None, None]).any()


@every_decoder
@torch.no_grad()
def test_greedy_answers_are_the_best_tokens_of_a_forward_pass(name: str) -> None:
    model = made(name)
    source, _, source_keep, _ = batch()
    rows = [source[row, source_keep[row]].tolist() for row in range(3)]
    answers = heedful.generate(model, rows, start=1, end=2, max_new_tokens=4)
    for row, (best, *_) in zip(rows, answers, strict=True):
        before = [1] if isinstance(model, EncoderDecoder) else row
        logits = read(model, torch.tensor([row]), torch.tensor([[*before, *best.tokens]]))
        written = [*best.tokens, 2][:4]
        assert logits[0, len(before) - 1 :].argmax(dim=-1).tolist()[: len(written)] == written
