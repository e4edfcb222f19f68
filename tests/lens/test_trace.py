"""Tracing notes what ran and changes nothing; what it notes gives the weights, the sums and the norms again."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import heedful
from every_model import MODELS, D, V, build
from heedful import core
from heedful.core import attention_weights, causal
from heedful.errors import RecordingError
from heedful.lens.trace import Trace, hookable_copy, trace

TRACED = [name for name in MODELS if name != "one vector"]
SMALL = {"vocab_size": V, "d_model": 24, "n_heads": 4, "d_ff": 40, "n_layers": 3, "max_length": 16}
IMAGES = {"d_model": 24, "n_heads": 4, "d_ff": 40, "n_layers": 2, "image_size": 12, "patch_size": 4, "n_channels": 2}
PUBLISHED: dict[str, dict[str, Any]] = {
    "albert": {"family": "albert", "d_embedding": 10, "n_groups": 1, **SMALL},
    "mistral": {"family": "mistral", "n_kv_heads": 2, "window": 3, **SMALL},
    "vit": {"family": "vit", **IMAGES},
    "patchtst": {"family": "patchtst", "d_model": 24, "n_heads": 4, "d_ff": 40, "n_layers": 2, "horizon": 7},
}


def run(model: Any) -> Tensor:
    """One row through any model."""
    source, target = torch.arange(1, 8)[None], torch.arange(2, 7)[None]
    if isinstance(model, core.EncoderDecoder):
        return model(source, target)
    if isinstance(model, core.Forecaster):
        return model(torch.linspace(-1, 1, 30).view(1, 30, 1))
    pictures = isinstance(model.embedding, core.PatchEmbedding)
    return model(torch.linspace(-1, 1, 288).view(1, 2, 12, 12) if pictures else source)


def model_of(name: str) -> Any:
    return heedful.build(PUBLISHED[name]).eval() if name in PUBLISHED else build(name)


def traced(model: Any) -> Trace:
    with torch.no_grad(), trace(model) as seen:
        run(model)
    return seen


@pytest.mark.parametrize("name", [*TRACED, *PUBLISHED])
def test_outputs_are_equal_bit_for_bit_and_no_hook_stays(name: str) -> None:
    model = model_of(name)
    before = run(model)
    with trace(model):
        during = run(model)
    assert torch.equal(before, during)
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())


@pytest.mark.parametrize("name", [*TRACED, *PUBLISHED])
def test_weights_are_the_recorder_s_and_follow_from_queries_and_keys(name: str) -> None:
    model = model_of(name)
    seen = traced(model)
    with torch.no_grad(), heedful.record(model) as recording:
        run(model)
    assert len(seen.looks) == len(recording.looks)
    for place, (look, recorded) in enumerate(zip(seen.looks, recording.looks, strict=True)):
        assert torch.equal(look.weights, recorded.weights)
        torch.testing.assert_close(look.weights.sum(dim=-1), torch.ones_like(look.weights[..., 0]))
        if name == "additive":
            continue
        numbers = seen.numbers[place]
        keep = causal() if numbers.causal else None
        if name == "mistral":
            keep = causal() & core.window(3)
        query, key = numbers.query[None].float(), numbers.key[None].float()
        bias = None if numbers.bias is None else numbers.bias.float()
        again = attention_weights(query, key, keep=keep, bias=bias, scale=numbers.scale)
        torch.testing.assert_close(again, look.weights.float(), rtol=0, atol=1e-6)
        shared = numbers.value.repeat_interleave(len(numbers.query) // len(numbers.value), dim=0)
        torch.testing.assert_close(look.weights[0] @ shared, numbers.mixed, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["sinusoidal", "pre-norm", "rotary"])
def test_queries_are_what_the_projection_makes_of_x(name: str) -> None:
    model = build(name)
    seen = traced(model)
    for place, look in enumerate(seen.looks):
        attention, numbers = model.get_submodule(look.path), seen.numbers[place]
        query = attention.q_proj(numbers.x).unflatten(-1, (4, -1)).transpose(0, 1)
        if name == "rotary" and look.kind == "self":
            assert not torch.allclose(query, numbers.query)
            pos = torch.arange(len(numbers.x))
            query, _ = core.Rotary(4).rotate(query[None], query[None], pos, pos)
            query = query[0]
        torch.testing.assert_close(query, numbers.query, rtol=0, atol=1e-6)
        assert numbers.scale == 1 / math.sqrt(4)


def residuals(layer: Any, x: Tensor, **context: Any) -> list[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Of each part by hand: what came, what its norm was given and gave, and the sum."""
    traced = []
    for name, wrap in layer.named_children():
        inputs = {} if name == "feed_forward" else context
        if isinstance(wrap, core.PreNorm):
            before, normalized = x, wrap.norm(x)
            total = out = x + wrap.sublayer(normalized, **inputs)
        else:
            before = total = x + wrap.sublayer(x, **inputs)
            normalized = out = wrap.norm(total)
        traced.append((x, before, normalized, total))
        x = out
    return traced


@torch.no_grad()
@pytest.mark.parametrize("name", ["sinusoidal", "pre-norm", "mean"])
def test_norms_and_residuals_are_those_of_a_layer_run_by_hand(name: str) -> None:
    model = build(name)
    entries: list[Tensor] = []
    for layer in model.encoder.layers:
        layer.register_forward_pre_hook(lambda _, args: entries.append(args[0]))
    layers = [layer for layer in traced(model).layers if layer.stack == "encoder"]
    assert [layer.layer for layer in layers] == [0, 1]
    for layer, module, entry in zip(layers, model.encoder.layers, entries, strict=True):
        by_hand = residuals(module, entry)
        assert list(layer.parts) == ["self_attention", "feed_forward"]
        for part, (x, before, normalized, total) in zip(layer.parts.values(), by_hand, strict=True):
            assert part.order == ("pre" if name == "pre-norm" else "post")
            for statistics, vectors in ((part.before, before[0]), (part.after, normalized[0])):
                wanted = torch.stack([vectors.mean(dim=-1), vectors.var(dim=-1, unbiased=False).sqrt()], dim=-1)
                torch.testing.assert_close(statistics, wanted.float(), rtol=1e-5, atol=1e-5)
            torch.testing.assert_close(part.entry, (x[0] ** 2).sum(dim=-1).sqrt().float(), rtol=1e-5, atol=1e-5)
            torch.testing.assert_close(part.added, (total[0] ** 2).sum(dim=-1).sqrt().float(), rtol=1e-5, atol=1e-5)


def test_a_fresh_norm_gives_mean_0_and_deviation_1() -> None:
    model = heedful.build("tiny", vocab_size=V, norm="post").eval()
    for layer in traced(model).layers:
        assert len(layer.parts) == (2 if layer.stack == "encoder" else 3)
        for part in layer.parts.values():
            torch.testing.assert_close(part.after[:, 0], torch.zeros(len(part.after)), rtol=0, atol=1e-5)
            torch.testing.assert_close(part.after[:, 1], torch.ones(len(part.after)), rtol=0, atol=1e-3)


@torch.no_grad()
@pytest.mark.parametrize("name", ["sinusoidal", "pre-norm"])
def test_neurons_are_what_the_feed_forward_narrows(name: str) -> None:
    model = build(name)
    inputs: list[Tensor] = []
    for layer in model.encoder.layers:
        layer.feed_forward.sublayer.register_forward_pre_hook(lambda _, args: inputs.append(args[0]))
    layers = [layer for layer in traced(model).layers if layer.stack == "encoder"]
    for layer, module, x in zip(layers, model.encoder.layers, inputs, strict=True):
        part, seen = module.feed_forward.sublayer, layer.parts["feed_forward"]
        if name == "pre-norm":
            gate, up = part.gate_up_proj(x).chunk(2, dim=-1)
            wanted = part.activation(gate) * up
        else:
            wanted = F.relu(part.up_proj(x))
        assert seen.hidden is not None
        assert torch.equal(seen.hidden, wanted[0])
        assert seen.has_zeros == (part.activation is F.relu)
        assert layer.parts["self_attention"].hidden is None


def test_a_layer_that_runs_three_times_is_three_layers() -> None:
    seen = traced(model_of("albert"))
    assert [layer.layer for layer in seen.layers] == [look.layer for look in seen.looks] == [0, 1, 2]
    first, _, last = (layer.parts["feed_forward"] for layer in seen.layers)
    assert not torch.equal(first.added, last.added)


def test_a_recurrent_model_has_weights_alone() -> None:
    seen = traced(build("additive"))
    (look,) = seen.looks
    assert (look.stack, look.kind, look.layer, look.weights.shape) == ("decoder", "cross", 0, (1, 1, 5, 7))
    assert not seen.numbers
    assert not seen.layers


def test_what_is_not_one_run_of_one_row_is_refused() -> None:
    model = build("rotary")
    rows = torch.ones(2, 4, dtype=torch.long)
    with pytest.raises(RecordingError, match="2 rows ran together"), trace(model):
        model(rows, rows)
    with pytest.raises(RecordingError, match="encoder's layer 0 ran 2 times"), trace(model):
        _ = run(model), run(model)
    with pytest.raises(RecordingError, match="no encoder or decoder"), trace(core.MultiHeadAttention(16, 2)):
        pass
    with pytest.raises(RecordingError, match="no attention"), trace(build("one vector")):
        pass
    with pytest.raises(RecordingError, match=r"model\.eval\(\)"), trace(model.train()):
        run(model)


def test_a_norm_of_another_make_has_no_name_and_a_batch_norm_has() -> None:
    layer = traced(model_of("patchtst")).layers[0]
    assert {part.norm for part in layer.parts.values()} == {"batch"}
    model = build("sinusoidal")
    model.encoder.layers[0].self_attention.norm = torch.nn.Identity()
    assert traced(model).layers[0].parts["self_attention"].norm is None


@torch.no_grad()
@pytest.mark.parametrize("name", [*TRACED, *PUBLISHED])
def test_a_twin_is_looked_into_while_others_use_the_model(name: str) -> None:
    model = model_of(name)
    other, wanted = hookable_copy(model), run(model)
    with trace(other) as seen:
        assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())
        assert torch.equal(run(other), wanted)
        assert torch.equal(run(model), wanted)
    looked = traced(model)
    assert len(seen.looks) == len(looked.looks)
    assert all(torch.equal(a.weights, b.weights) for a, b in zip(seen.looks, looked.looks, strict=True))
    shares = [tensor.data_ptr() for tensor in (*model.parameters(), *model.buffers())]
    assert [tensor.data_ptr() for tensor in (*other.parameters(), *other.buffers())] == shares


def test_a_copy_made_meanwhile_stays_silent() -> None:
    model = build("rotary")
    with trace(model) as seen:
        run(model)
        twin = copy.deepcopy(model)
    counts = len(seen.looks), len(seen.numbers), len(seen.layers)
    run(twin)
    assert (len(seen.looks), len(seen.numbers), len(seen.layers)) == counts
    assert "tensor" not in repr(seen)


@pytest.mark.parametrize("name", ["sinusoidal", "learned", "rotary"])
def test_entries_are_computed_as_by_hand(name: str) -> None:
    """Embedding times √D, plus the scheme's own vectors; the first layer reads the sum."""
    model = build(name).eval()
    source, target = torch.randint(1, V, (1, 6)), torch.randint(1, V, (1, 5))
    inputs: list[Tensor] = []
    layer = model.encoder.layers[0]
    hook = layer.register_forward_pre_hook(lambda _, args: inputs.append(args[0][0]))
    with torch.no_grad(), trace(model) as seen:
        model(source, target)
    hook.remove()
    for stack, embedding, ids in (
        ("encoder", model.source_embedding, source[0]),
        ("decoder", model.target_embedding, target[0]),
    ):
        entry = seen.entries[stack]
        assert entry.ids.tolist() == ids.tolist()
        torch.testing.assert_close(entry.embedding, embedding.weight[ids] * D**0.5)
        scheme, positions = getattr(model, stack).positions, torch.arange(len(ids))
        vectors = scheme.table(len(ids)) if hasattr(scheme, "table") else torch.zeros(len(positions), D)
        torch.testing.assert_close(entry.summed, entry.embedding + vectors)
        assert entry.normalized is None
    torch.testing.assert_close(inputs[0], seen.entries["encoder"].summed)
