"""Cross-entropy over a vocabulary on a GPU: the logits are read once in each direction, or once in all if a program can
hold those of a token.

Only the gradient has the size of the logits, in their dtype. `training/loss.py` is the reference. Shapes: N tokens, V
vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..registry import apply
from . import block_of, with_gradient

BLOCK, WARPS = 2048, 4  # logits that a program holds at once, and its warps
MAX_FUSED, PER_WARP = 16384, 1024  # the largest vocabulary of which it holds a token's logits, and logits per warp


@triton.jit
def _forward(logits, target, keep, lse, smoothed, plain, v, smoothing, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    start = logits + row * v
    lanes = tl.arange(0, block)
    real = tl.load(keep + row) != 0  # of what does not count, nothing is read
    peak, total, straight = -float("inf"), 0.0, 0.0  # the largest logit, and sums of exp(x − peak) and of x
    for first in range(0, v, block):
        inside = (first + lanes < v) & real
        x = tl.load(start + first + lanes, mask=inside, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(peak, tl.max(x, 0))
        level = tl.where(higher == -float("inf"), 0.0, higher)
        total = total * tl.exp(peak - level) + tl.sum(tl.exp(x - level), 0)
        straight += tl.sum(tl.where(inside, x, 0.0), 0)
        peak = higher
    log = peak + tl.log(total)
    right = log - tl.load(start + tl.load(target + row), mask=real, other=0.0).to(tl.float32)
    even = log - straight / v
    tl.store(lse + row, log)
    tl.store(plain + row, tl.where(real, right, 0.0))
    tl.store(smoothed + row, tl.where(real, right + smoothing * (even - right), 0.0))


@triton.jit
def _backward(logits, target, keep, lse, slope, out, v, smoothing, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    places = tl.program_id(1) * block + tl.arange(0, block)
    inside = places < v
    real = tl.load(keep + row) != 0
    x = tl.load(logits + row * v + places, mask=inside & real, other=0.0).to(tl.float32)
    wanted = smoothing / v + tl.where(places == tl.load(target + row), 1.0 - smoothing, 0.0)
    result = (tl.exp(x - tl.load(lse + row)) - wanted) * tl.load(slope + row)
    result = tl.where(real, result, 0.0)  # what does not count may be NaN
    tl.store(out + row * v + places, result.to(out.dtype.element_ty), mask=inside)


@triton.jit
def _both(logits, target, keep, smoothed, plain, out, v, smoothing, most: tl.constexpr, rest: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes, more = tl.arange(0, most), most + tl.arange(0, rest)  # two powers of two, so that few of them are idle
    there = out + row * v
    if tl.load(keep + row) != 0:
        start = logits + row * v
        x = tl.load(start + lanes).to(tl.float32)
        y = tl.load(start + more, mask=more < v, other=-float("inf")).to(tl.float32)
        aim = tl.load(target + row)
        peak = tl.maximum(tl.max(x, 0), tl.max(y, 0))
        mean = (tl.sum(x, 0) + tl.sum(tl.where(more < v, y, 0.0), 0)) / v
        x, y = tl.exp(x - peak), tl.exp(y - peak)
        total = tl.sum(x, 0) + tl.sum(y, 0)
        log = peak + tl.log(total)
        right = log - tl.load(start + aim).to(tl.float32)
        tl.store(plain + row, right)
        tl.store(smoothed + row, right + smoothing * (log - mean - right))
        x = x / total - (smoothing / v + tl.where(lanes == aim, 1.0 - smoothing, 0.0))
        y = y / total - (smoothing / v + tl.where(more == aim, 1.0 - smoothing, 0.0))
        tl.store(there + lanes, x.to(out.dtype.element_ty))
        tl.store(there + more, y.to(out.dtype.element_ty), mask=more < v)
    else:  # of what does not count, nothing is read
        tl.store(plain + row, 0.0)
        tl.store(smoothed + row, 0.0)
        tl.store(there + lanes, tl.zeros((most,), out.dtype.element_ty))
        tl.store(there + more, tl.zeros((rest,), out.dtype.element_ty), mask=more < v)


@triton.jit
def _scale(x, by, v, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    factor = tl.load(by + row)
    if factor != 1:
        for first in range(0, v, block):
            places = row * v + first + tl.arange(0, block)
            inside = first + tl.arange(0, block) < v
            result = tl.load(x + places, mask=inside).to(tl.float32) * factor
            tl.store(x + places, result.to(x.dtype.element_ty), mask=inside)


class _FusedGradient(torch.autograd.Function):
    """Computes the gradient in the forward pass, for an output gradient of 1 for every token, as of a sum."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, target: Tensor, keep: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        n, v = logits.shape
        smoothed, plain = (logits.new_empty(n, dtype=torch.float32) for _ in range(2))
        slopes = torch.empty_like(logits)
        if n:
            args, most = (logits, target, keep, smoothed, plain, slopes, v, smoothing), 1 << v.bit_length() - 1
            rest = block_of(max(1, v - most), most)
            _both[(n,)](*args, most=most, rest=rest, num_warps=max(1, most // PER_WARP))
        ctx.save_for_backward(slopes)
        ctx.mark_non_differentiable(plain)
        ctx.set_materialize_grads(False)
        return smoothed, plain

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor | None, _: Tensor | None) -> tuple[Tensor | None, ...]:
        if slope is None:
            return (None,) * 4
        (slopes,) = ctx.saved_tensors
        if len(slopes):
            _scale[(len(slopes),)](slopes, slope.contiguous(), slopes.shape[1], block=BLOCK, num_warps=WARPS)
        torch.autograd.graph.increment_version(slopes)  # autograd refuses a second backward pass
        return slopes, None, None, None


def _outputs(logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    smoothed, plain, lse = (logits.new_empty(logits.shape[0], dtype=torch.float32) for _ in range(3))
    return smoothed, plain, lse


def _costs(logits: Tensor, target: Tensor, keep: Tensor, smoothing: float) -> tuple[Tensor, Tensor, Tensor]:
    n, v = logits.shape
    smoothed, plain, lse = _outputs(logits)
    if n:
        _forward[(n,)](
            logits, target, keep, lse, smoothed, plain, v, smoothing, block=block_of(v, BLOCK), num_warps=WARPS
        )
    return smoothed, plain, lse


def _slopes(logits: Tensor, target: Tensor, keep: Tensor, lse: Tensor, slope: Tensor, smoothing: float) -> Tensor:
    n, v = logits.shape
    out = torch.empty_like(logits)
    if n:
        block = block_of(v, BLOCK)
        _backward[(n, triton.cdiv(v, block))](
            logits, target, keep, lse, slope, out, v, smoothing, block=block, num_warps=WARPS
        )
    return out


_read_twice = with_gradient("cross_entropy", _costs, _slopes, _outputs)


def costs(logits: Tensor, target: Tensor, keep: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """Return the cross-entropies (N) with smoothing and without, zero for tokens that do not count."""
    needs_gradient = torch.is_grad_enabled() and logits.requires_grad and not torch.compiler.is_compiling()
    if needs_gradient and logits.shape[1] <= MAX_FUSED:
        smoothed, plain = apply(_FusedGradient, logits.contiguous(), target.contiguous(), keep.contiguous(), smoothing)
        return smoothed, plain
    return _read_twice(logits, target, keep, smoothing)
