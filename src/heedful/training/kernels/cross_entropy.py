"""Cross-entropy over a vocabulary on a GPU: the logits are read once, and once more for their gradient.

Nothing of their size is made but the gradient itself, in their own dtype. `training/loss.py` says in torch what is
computed. Shapes: N tokens, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from . import block_of

BLOCK, WARPS = 2048, 4  # logits that a program holds at once, and groups of threads that share them


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
    found = (tl.exp(x - tl.load(lse + row)) - wanted) * tl.load(slope + row)
    found = tl.where(real, found, 0.0)  # what does not count may be NaN
    tl.store(out + row * v + places, found.to(out.dtype.element_ty), mask=inside)


@torch.library.custom_op("heedful::cross_entropy", mutates_args=())
def _costs(logits: Tensor, target: Tensor, keep: Tensor, smoothing: float) -> tuple[Tensor, Tensor, Tensor]:
    n, v = logits.shape
    lse, smoothed, plain = (logits.new_empty(n, dtype=torch.float32) for _ in range(3))
    if n:
        _forward[(n,)](
            logits, target, keep, lse, smoothed, plain, v, smoothing, block=block_of(v, BLOCK), num_warps=WARPS
        )
    return smoothed, plain, lse


@torch.library.custom_op("heedful::cross_entropy_gradient", mutates_args=())
def _slopes(logits: Tensor, target: Tensor, keep: Tensor, lse: Tensor, slope: Tensor, smoothing: float) -> Tensor:
    n, v = logits.shape
    out = torch.empty_like(logits)
    if n:
        block = block_of(v, BLOCK)
        _backward[(n, triton.cdiv(v, block))](
            logits, target, keep, lse, slope, out, v, smoothing, block=block, num_warps=WARPS
        )
    return out


@_costs.register_fake
def _(logits: Tensor, target: Tensor, keep: Tensor, smoothing: float) -> tuple[Tensor, Tensor, Tensor]:
    each = logits.new_empty(logits.shape[0], dtype=torch.float32)
    return each, torch.empty_like(each), torch.empty_like(each)


@_slopes.register_fake
def _(logits: Tensor, target: Tensor, keep: Tensor, lse: Tensor, slope: Tensor, smoothing: float) -> Tensor:
    return torch.empty_like(logits)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    logits, target, keep, ctx.smoothing = inputs
    ctx.save_for_backward(logits, target, keep, output[2])


def _back(ctx: Any, slope: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
    logits, target, keep, lse = ctx.saved_tensors
    return _slopes(logits, target, keep, lse, slope.contiguous(), ctx.smoothing), None, None, None


_costs.register_autograd(_back, setup_context=_remember)


def costs(logits: Tensor, target: Tensor, keep: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """Cross-entropies (N) with smoothing and without, zero where a token does not count."""
    smoothed, plain, _ = _costs(logits.contiguous(), target.contiguous(), keep.contiguous(), smoothing)
    return smoothed, plain.detach()
