"""One contract for every family; a new one joins by one line."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import torch
from torch import Tensor

import heedful
from heedful import core
from heedful.core import DecoderOnly, EncoderDecoder
from heedful.errors import RecordingError
from heedful.families import FAMILIES, config_of, registry
from heedful.families.weights import read_weights, write_weights
from heedful.tasks.language_model.data import is_decoder_only

V = 30
SMALL = {"vocab_size": V, "d_model": 24}
LAYERS = {"n_heads": 4, "d_ff": 40, "n_encoder_layers": 2, "n_decoder_layers": 2, **SMALL}
ONE_STACK = {"n_heads": 4, "d_ff": 40, "n_layers": 2, "max_length": 16, **SMALL}
IMAGES = {"d_model": 24, "n_heads": 4, "d_ff": 40, "n_layers": 2, "image_size": 12, "patch_size": 4, "n_channels": 2}
PATCHES = {"d_model": 24, "n_heads": 4, "d_ff": 40, "n_layers": 2, "horizon": 7}
STACK: dict[str, Any] = {
    "d_model": 24,
    "n_layers": 2,
    "attention": {"n_heads": 4, "n_kv_heads": 2, "scale": 0.3},
    "feed_forward": {"kind": "gated", "d_ff": 40, "activation": "silu", "bias": True},
    "norm": {"kind": "rms", "eps": 1e-6},
    "order": "pre",
    "positions": {"kind": "rotary", "base": 1e4, "width": 4, "interleaved": True},
    "final_norm": {"kind": "layer", "eps": 1e-5, "bias": False},
}
TRANSLATORS: dict[str, dict[str, Any]] = {
    "original": {"family": "original", **LAYERS},
    "recurrent": {"family": "recurrent", "n_encoder_layers": 2, **SMALL},
    "recurrent-plain": {"family": "recurrent", "attention": "none", **SMALL},
    "bart": {"family": "bart", "max_length": 16, **LAYERS},
    "marian": {"family": "marian", **LAYERS},
    "t5": {"family": "t5", "d_head": 7, **LAYERS},
    "t5-v1.1": {"family": "t5", "feed_forward": "gated-gelu", "tied": False, **LAYERS},
    "composed": {
        "family": "composed",
        "vocab_size": V,
        "tied": "output",
        "encoder": STACK | {"d_model": 16, "embedding_scale": 4.0},
        "decoder": STACK | {"cross_attention": {"n_heads": 4, "d_head": 5}},
    },
}
LANGUAGE_MODELS: dict[str, dict[str, Any]] = {
    "gpt2": {"family": "gpt2", **ONE_STACK},
    "opt": {"family": "opt", **ONE_STACK},
    "llama": {"family": "llama", "n_kv_heads": 2, **ONE_STACK},
    "mistral": {"family": "mistral", "n_kv_heads": 2, "window": 3, **ONE_STACK},
    "composed decoder": {"family": "composed", "vocab_size": V, "decoder": STACK | {"window": 3}},
}
READERS: dict[str, dict[str, Any]] = {
    f"{family} {head}": {"family": family, "head": head, **ONE_STACK, **changes}
    for family, changes in {
        "bert": {},
        "roberta": {},
        "xlm-roberta": {},
        "distilbert": {},
        "albert": {"d_embedding": 10, "n_groups": 2, "n_layers": 4},
    }.items()
    for head in ("words", "classes", "token-classes", "span", "pooled", "first", "mean", "hidden")
    if (family, head) != ("distilbert", "pooled")  # it has none
}
PICTURES: dict[str, dict[str, Any]] = {
    **{f"vit {head}": {"family": "vit", "head": head, **IMAGES} for head in ("classes", "pooled", "mean", "hidden")},
    **{f"deit {head}": {"family": "deit", "head": head, **IMAGES} for head in ("distilled", "classes")},
}
FORECASTERS: dict[str, dict[str, Any]] = {
    "patchtst": {"family": "patchtst", **PATCHES},
    "patchtst mixed": {"family": "patchtst", "channels": "mixed", "n_channels": 2, "norm": "layer", **PATCHES},
}
EVERY = TRANSLATORS | LANGUAGE_MODELS | READERS | PICTURES | FORECASTERS
SHAPES = {"words": (3, 5, V), "classes": (3, 2), "pooled": (3, 24), "first": (3, 24), "mean": (3, 24)}
SHAPES |= {"hidden": (3, 5, 24), "distilled": (3, 2), "token-classes": (3, 5, 2), "span": (3, 5, 2)}
every_family = pytest.mark.parametrize("name", EVERY)
every_decoder = pytest.mark.parametrize("name", TRANSLATORS | LANGUAGE_MODELS)
every_translator = pytest.mark.parametrize("name", TRANSLATORS)
SOURCE_LENGTHS, LENGTHS = [6, 2, 4], [3, 5, 4]


def build_model(name: str) -> Any:
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


def example_inputs(name: str, *, left: bool = False, dtype: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
    """Return inputs of three rows for a model of this kind."""
    if name in PICTURES:
        return (torch.randn(3, 2, 12, 12, dtype=dtype),)
    if name in FORECASTERS:
        return (torch.randn(3, 30, 2, dtype=dtype),)
    source, target, source_keep, target_keep = batch(left=left)
    return (source, target, source_keep, target_keep) if name in TRANSLATORS else (target, target_keep)


def unpadded_row(name: str, inputs: tuple[Tensor, ...], row: int) -> tuple[Tensor, ...]:
    """Return the inputs of one row, without padding."""
    if len(inputs) == 1:
        return (inputs[0][row, None],)
    texts, keeps = inputs[: len(inputs) // 2], inputs[len(inputs) // 2 :]
    return tuple(text[row, keep[row]][None] for text, keep in zip(texts, keeps, strict=True))


def shape(name: str) -> tuple[int, ...]:
    """Return the shape of the output for `example_inputs`."""
    if name in FORECASTERS:
        return 3, 7, 2
    if name == "vit hidden":
        return 3, 10, 24
    return SHAPES[EVERY[name].get("head", "words")]


def read(model: Any, source: Tensor, target: Tensor, source_keep: Any = None, target_keep: Any = None) -> Tensor:
    """The answer of a model that writes."""
    if isinstance(model, EncoderDecoder):
        return model(source, target, source_keep, target_keep)
    return model(target, target_keep)


def step(model: Any, tokens: Tensor, cache: Any, source: Tensor, source_keep: Tensor) -> Tensor:
    if isinstance(model, EncoderDecoder):
        return model.decode(tokens, model.encode(source, source_keep), source_keep, cache)
    return model(tokens, cache=cache)


def test_every_family_is_here() -> None:
    assert {config["family"] for config in EVERY.values()} == FAMILIES.keys()


@every_family
def test_families_that_continue_text_are_decoder_only(name: str) -> None:
    assert is_decoder_only(config_of(EVERY[name])) == isinstance(build_model(name), DecoderOnly)


@every_family
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_outputs_have_the_shape_and_dtype_of_the_model(name: str, dtype: torch.dtype) -> None:
    answer = build_model(name).to(dtype)(*example_inputs(name, dtype=dtype))
    assert answer.shape == shape(name)
    assert answer.dtype == dtype
    assert answer.isfinite().all()


@every_translator
def test_forward_is_encode_then_decode(name: str) -> None:
    model = build_model(name)
    source, target, source_keep, target_keep = batch()
    memory = model.encode(source, source_keep)
    assert torch.equal(
        model.decode(target, memory, source_keep, keep=target_keep), model(source, target, source_keep, target_keep)
    )


@every_family
@pytest.mark.parametrize("left", [False, True], ids=["right", "left"])
def test_a_batched_row_matches_the_unbatched_row(name: str, left: bool) -> None:
    model, inputs = build_model(name), example_inputs(name, left=left)
    batched = model(*inputs)
    for row in range(3):
        of_tokens = len(inputs) > 1 and batched.dim() == 3
        mine = batched[row, inputs[-1][row]] if of_tokens else batched[row]
        torch.testing.assert_close(mine, model(*unpadded_row(name, inputs, row))[0], rtol=0, atol=1e-11)


@every_decoder
@torch.no_grad()
def test_cached_steps_match_the_full_forward_after_reordering(name: str) -> None:
    model = build_model(name)
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
    model = build_model(name)
    source, _, source_keep, _ = batch()
    beams = torch.randint(0, V, (6, 4))  # two beams for each of three sentences
    memory = model.encode(source, source_keep)
    folded = model.decode(beams, memory, source_keep)
    copied = model.decode(beams, memory.repeat_interleave(2, 0), source_keep.repeat_interleave(2, 0))
    torch.testing.assert_close(folded, copied, rtol=0, atol=1e-11)


@every_family
def test_deepcopy_state_dict_and_file_give_equal_outputs(name: str, tmp_path: Path) -> None:
    model, inputs = build_model(name), example_inputs(name)
    expected = model(*inputs)
    assert torch.equal(copy.deepcopy(model)(*inputs), expected)
    fresh, filed = (heedful.build(EVERY[name]).double().eval() for _ in range(2))
    fresh.load_state_dict(model.state_dict())
    assert torch.equal(fresh(*inputs), expected)
    write_weights(model, tmp_path / "model.safetensors")
    read_weights(filed, tmp_path / "model.safetensors")
    assert torch.equal(filed(*inputs), expected)


@every_family
def test_every_parameter_learns(name: str) -> None:
    model = build_model(name).train()
    model(*example_inputs(name)).square().mean().backward()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in model.parameters())


@every_family
def test_recording_keeps_outputs_and_gives_distributions_over_real_tokens(name: str) -> None:
    model, inputs = build_model(name), example_inputs(name)
    expected = model(*inputs)
    if EVERY[name].get("attention") == "none":
        with pytest.raises(RecordingError, match="no attention"), heedful.record(model):
            pass
        return
    with heedful.record(model) as recording:
        seen = model(*inputs)
    assert torch.equal(seen, expected)
    depth = 1 if name == "recurrent" else EVERY[name].get("n_layers", 2)
    assert {look.layer for look in recording.looks} == set(range(depth))
    for look in recording.looks:
        n_queries, n_keys = look.weights.shape[2:]
        queries = keys = torch.ones(len(look.weights), n_keys, dtype=torch.bool)
        if len(inputs) > 1:
            keeps = inputs[len(inputs) // 2 :]
            queries, keys = keeps[0 if look.stack == "encoder" else -1], keeps[0 if look.kind == "cross" else -1]
            keys = keeps[0] if look.stack == "encoder" else keys
        assert (n_queries, n_keys) == (queries.shape[1], keys.shape[1])
        rows = look.weights.sum(-1).masked_select(queries[:, None])
        torch.testing.assert_close(rows, torch.ones_like(rows))
        assert not look.weights.masked_select(~keys[:, None, None]).any()


@every_decoder
@torch.no_grad()
def test_greedy_tokens_match_argmax_of_the_forward_pass(name: str) -> None:
    model = build_model(name)
    source, _, source_keep, _ = batch()
    rows = [source[row, source_keep[row]].tolist() for row in range(3)]
    answers = heedful.generate(model, rows, start=1, end=2, max_new_tokens=4)
    for row, (best, *_) in zip(rows, answers, strict=True):
        before = [1] if isinstance(model, EncoderDecoder) else row
        logits = read(model, torch.tensor([row]), torch.tensor([[*before, *best.tokens]]))
        written = [*best.tokens, 2][:4]
        assert logits[0, len(before) - 1 :].argmax(dim=-1).tolist()[: len(written)] == written


@pytest.mark.parametrize(
    ("wiring", "names"),
    [
        (core.EncoderDecoder, registry.EncoderDecoderPreset),
        (core.EncoderOnly, registry.EncoderOnlyPreset),
        (core.DecoderOnly, registry.DecoderOnlyPreset),
        (core.Forecaster, registry.ForecasterPreset),
    ],
)
def test_preset_literals_match_the_registered_presets(wiring: type, names: Any) -> None:
    built = {
        name
        for family in FAMILIES.values()
        if get_type_hints(family.build)["return"] is wiring
        for name in family.presets
    }
    groups = get_args(names)
    stated = {name for group in groups for name in (get_args(group) or (group,))}
    assert stated == built
