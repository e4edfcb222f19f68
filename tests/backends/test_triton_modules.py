"""The fused modules around Triton's kernels, where the kernels are written out in torch: on any machine, in float64.

What the kernels themselves compute is compared on a GPU, in test_kernels_on_gpu.py and test_ends_on_gpu.py.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from copy import deepcopy
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import heedful
from every_model import V, batch
from heedful.backends.triton import HAVE_TRITON, modules
from heedful.backends.triton.modules import FusedMultiHeadAttention, FusedPostNorm, FusedPreNorm, fused_on_gpu
from heedful.core import ACTIVATIONS, padding

KERNELS = ("activation", "dropout", "embedding", "residual", "short_attention", "weight_gradients", "foreach")
CPU = torch.device("cpu")


class Written(SimpleNamespace):
    """In the place of a function of autograd: `apply` is plain torch, and counts its calls."""

    def __init__(self, apply: Any) -> None:
        def counted(*given: Any) -> Any:
            self.calls += 1
            return apply(*given)

        super().__init__(apply=counted, calls=0)


def _counted(shared: Any, *vectors: Tensor) -> None:
    shared.counting(*vectors)


def _added(shared: Any, x: Tensor, part: Tensor, bias: Tensor, dropping: Any) -> Tensor:
    assert dropping.share == 0
    _counted(shared, bias)
    return x + part + bias


def _normed(shared: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    _counted(shared, weight, bias)
    return F.layer_norm(x, weight.shape, weight, bias, eps), x


def _added_and_normed(
    shared: Any, x: Tensor, part: Tensor, bias: Tensor, weight: Tensor, offset: Tensor, eps: float, dropping: Any
) -> Tensor:
    return _normed(shared, _added(shared, x, part, bias, dropping), weight, offset, eps)[0]


def _activated(shared: Any, x: Tensor, bias: Tensor, kind: str) -> Tensor:
    _counted(shared, bias)
    return ACTIVATIONS[kind](x + bias)


def _entered(x: Tensor, real: Tensor | None, encodings: Tensor | None, dropping: Any) -> Tensor:
    assert dropping.share == 0
    x = x if real is None else torch.where(real.expand(x.shape[:2])[..., None], x, 0.0)
    return x if encodings is None else x + encodings[: x.shape[1]]


def _looked_up(ids: Tensor, table: Tensor, scale: float) -> Tensor:
    return table[ids] * scale


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Written]]:
    """Triton's kernels in torch; how often each was used."""
    if not HAVE_TRITON:
        language = ModuleType("triton.language")
        for name in ("constexpr", "float32", "bfloat16", "float16"):
            setattr(language, name, object())
        triton: Any = ModuleType("triton")
        triton.jit = lambda *functions, **_: functions[0] if functions else (lambda function: function)
        triton.language = language
        monkeypatch.setitem(sys.modules, "triton", triton)
        monkeypatch.setitem(sys.modules, "triton.language", language)
    package = "heedful.backends.triton"
    loaded = {name: importlib.import_module(f"{package}.{name}") for name in KERNELS}
    short: Any = loaded["short_attention"]

    def _short(seen: Any, heads: tuple[int, int], *stacked: Tensor) -> Tensor:
        query, key, value = (part.transpose(1, 2) for part in short.unstacked(stacked, heads))
        key, value = (part.repeat_interleave(heads[0] // heads[1], dim=1) for part in (key, value))
        scores = query @ key.mT * seen.scale + (0.0 if seen.mask is None else seen.mask)
        if seen.causal:
            scores = scores + torch.full(scores.shape[-2:], -torch.inf).triu(1)
        mixed = (scores.softmax(dim=-1).nan_to_num(0.0) @ value).transpose(1, 2)
        return mixed if seen.fully_masked is None else torch.where(seen.fully_masked.transpose(1, 2), 0.0, mixed)

    functions = {
        ("residual", "Added"): _added,
        ("residual", "Normed"): _normed,
        ("residual", "AddedAndNormed"): _added_and_normed,
        ("activation", "Activated"): _activated,
        ("embedding", "Entered"): _entered,
        ("embedding", "LookedUp"): _looked_up,
        ("short_attention", "ShortAttention"): _short,
    }
    counts = {}
    for (module, name), function in functions.items():
        counts[name] = Written(function)
        monkeypatch.setattr(loaded[module], name, counts[name])
    sums: Any = loaded["weight_gradients"]
    monkeypatch.setattr(sums, "suits", lambda x, slope: False)
    monkeypatch.setattr(
        sums, "column_sums", lambda tables, given: [(x.sum(0)[None, None], out[None]) for x, out in given]
    )
    monkeypatch.setattr(sums, "totals", lambda tables, given: [out.copy_(parts.sum(1)) for parts, out in given])
    monkeypatch.setattr(modules, "is_fused", lambda x: torch.is_grad_enabled())
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    yield counts
    if not HAVE_TRITON:
        for name in KERNELS:  # they were loaded with a Triton of straw
            sys.modules.pop(f"{package}.{name}", None)


@pytest.mark.parametrize("n", [7, 70])  # within a tile of short attention, and beyond
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "alibi", "none"])
def test_a_whole_step_equals_the_core(positions: str, norm: str, n: int, written: dict[str, Written]) -> None:
    torch.manual_seed(0)
    settings: dict[str, Any] = {"vocab_size": V, "d_model": 16, "n_heads": 4, "n_kv_heads": 2, "d_ff": 24}
    changes: dict[str, Any] = {
        "positions": positions,
        "norm": norm,
        "dropout": 0.0,
        "tied": "all",
        "bias": True,
        "max_length": 80,
    }
    module = heedful.build("tiny", **settings, **changes).double()
    fused, shared = fused_on_gpu(module, CPU)
    kinds = {type(part) for part in fused.modules()}
    assert {FusedMultiHeadAttention, FusedPreNorm if norm == "pre" else FusedPostNorm} <= kinds
    tokens, keep = batch([[3, 4, 5, 6, 7] + [8] * (n - 5), [8, 9], [10] * (n - 2)])
    real = padding(keep, lengths=keep.sum(1).tolist())
    out = []
    for each in (deepcopy(module), fused):
        shared.begin()
        logits = each(tokens, tokens.flip(0), real, real)
        weights = torch.linspace(-1, 1, V, dtype=torch.float64)
        loss = (logits.log_softmax(-1) * weights)[keep].sum()
        out.append((logits[keep], torch.autograd.grad(loss, list(each.parameters()), allow_unused=True)))
    torch.testing.assert_close(out[1], out[0], rtol=1e-5, atol=1e-6)  # encodings are float32 for a kernel
    used = {name for name, function in written.items() if function.calls}
    expected = {"Activated", "LookedUp", *(("Added", "Normed") if norm == "pre" else ("AddedAndNormed",))}
    assert expected <= used
    assert ("Entered" in used) == (positions != "learned")
    assert ("ShortAttention" in used) == (n <= 64)
