"""R-Drop's loss over a vocabulary on a GPU: both passes' logits are read once, and once more for their gradient.

`training/r_drop.py` says in torch what is computed. With x and y the logits of the two passes and d = x − y, what they
disagree by is Σ (p − q) · d, since what is left of log p − log q is the same for all tokens, and Σ (p − q) is 0. So one
reading gives everything: the two sums of exponentials, and by them the means of d under p and under q.
Shapes: N tokens, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from . import block_of

BLOCK = 2048  # pairs of logits that a program holds at once
KEPT = 4  # numbers a token: the two log-sums, the two means


@triton.jit
def _risen(largest, total, cross, x, apart):
    """Sums of exp(x − largest), and of the same times `apart`, moved to what is now the largest."""
    higher = tl.maximum(largest, x)
    fall = tl.where(largest == -float("inf"), 0.0, tl.exp(largest - higher))
    rise = tl.where(x == -float("inf"), 0.0, tl.exp(x - higher))
    return higher, total * fall + rise, cross * fall + rise * apart


@triton.jit
def _together(largest, total, cross):
    """Over all lanes: the log of the sum, and the mean."""
    peak = tl.max(largest, 0)
    weight = tl.where(largest == -float("inf"), 0.0, tl.exp(largest - peak))
    whole = tl.sum(total * weight, 0)
    return peak + tl.log(whole), tl.sum(cross * weight, 0) / whole


@triton.jit(do_not_specialize=("n",))
def _forward(logits, target, keep, kept, loss, plain, n, v, smoothing, weight, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    one, other = logits + row * v, logits + (row + n) * v
    lanes = tl.arange(0, block)
    low = tl.full((block,), -float("inf"), tl.float32)
    none = tl.zeros((block,), tl.float32)
    x_high, x_total, x_cross, y_high, y_total, y_cross, straight = low, none, none, low, none, none, none
    for first in range(0, v, block):
        inside = first + lanes < v
        x = tl.load(one + first + lanes, mask=inside, other=-float("inf")).to(tl.float32)
        y = tl.load(other + first + lanes, mask=inside, other=-float("inf")).to(tl.float32)
        apart = tl.where(inside, x - y, 0.0)
        x_high, x_total, x_cross = _risen(x_high, x_total, x_cross, x, apart)
        y_high, y_total, y_cross = _risen(y_high, y_total, y_cross, y, apart)
        straight += tl.where(inside, x + y, 0.0)
    x_log, x_mean = _together(x_high, x_total, x_cross)
    y_log, y_mean = _together(y_high, y_total, y_cross)
    wanted = tl.load(target + row)
    both = tl.load(one + wanted).to(tl.float32) + tl.load(other + wanted).to(tl.float32)
    right = (x_log + y_log - both) / 2
    even = (x_log + y_log - tl.sum(straight, 0) / v) / 2
    real = tl.load(keep + row) != 0
    tl.store(kept + row, x_log)
    tl.store(kept + n + row, y_log)
    tl.store(kept + 2 * n + row, x_mean)
    tl.store(kept + 3 * n + row, y_mean)
    tl.store(plain + row, tl.where(real, right, 0.0))
    found = right + smoothing * (even - right) + weight * (x_mean - y_mean)
    tl.store(loss + row, tl.where(real, found, 0.0))


@triton.jit(do_not_specialize=("n",))
def _backward(logits, target, keep, kept, slope, out, n, v, smoothing, weight, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    places = tl.program_id(1) * block + tl.arange(0, block)
    inside = places < v
    here, there = row * v + places, (row + n) * v + places
    x = tl.load(logits + here, mask=inside, other=0.0).to(tl.float32)
    y = tl.load(logits + there, mask=inside, other=0.0).to(tl.float32)
    p, q = tl.exp(x - tl.load(kept + row)), tl.exp(y - tl.load(kept + n + row))
    wanted = smoothing / v + tl.where(places == tl.load(target + row), 1.0 - smoothing, 0.0)
    by_x = (p - wanted) / 2 + weight * (p - q + p * (x - y - tl.load(kept + 2 * n + row)))
    by_y = (q - wanted) / 2 + weight * (q - p + q * (y - x + tl.load(kept + 3 * n + row)))
    real, times = tl.load(keep + row) != 0, tl.load(slope + row)
    tl.store(out + here, tl.where(real, by_x * times, 0.0).to(out.dtype.element_ty), mask=inside)
    tl.store(out + there, tl.where(real, by_y * times, 0.0).to(out.dtype.element_ty), mask=inside)


@torch.library.custom_op("heedful::agreeing_cross_entropy", mutates_args=())
def _costs(
    logits: Tensor, target: Tensor, keep: Tensor, smoothing: float, weight: float
) -> tuple[Tensor, Tensor, Tensor]:
    _, n, v = logits.shape
    loss, plain = (logits.new_empty(n, dtype=torch.float32) for _ in range(2))
    kept = logits.new_empty(KEPT, n, dtype=torch.float32)
    if n:
        _forward[(n,)](
            logits, target, keep, kept, loss, plain, n, v, smoothing, weight, block=block_of(v, BLOCK), num_warps=8
        )
    return loss, plain, kept


@torch.library.custom_op("heedful::agreeing_cross_entropy_gradient", mutates_args=())
def _slopes(
    logits: Tensor, target: Tensor, keep: Tensor, kept: Tensor, slope: Tensor, smoothing: float, weight: float
) -> Tensor:
    _, n, v = logits.shape
    out = torch.empty_like(logits)
    if n:
        block = block_of(v, BLOCK)
        _backward[(n, triton.cdiv(v, block))](
            logits, target, keep, kept, slope, out, n, v, smoothing, weight, block=block, num_warps=8
        )
    return out


@_costs.register_fake
def _(logits: Tensor, target: Tensor, keep: Tensor, smoothing: float, weight: float) -> tuple[Tensor, Tensor, Tensor]:
    each = logits.new_empty(logits.shape[1], dtype=torch.float32)
    return each, torch.empty_like(each), logits.new_empty(KEPT, logits.shape[1], dtype=torch.float32)


@_slopes.register_fake
def _(
    logits: Tensor, target: Tensor, keep: Tensor, kept: Tensor, slope: Tensor, smoothing: float, weight: float
) -> Tensor:
    return torch.empty_like(logits)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    logits, target, keep, ctx.smoothing, ctx.weight = inputs
    ctx.save_for_backward(logits, target, keep, output[2])


def _back(ctx: Any, slope: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
    logits, target, keep, kept = ctx.saved_tensors
    gradient = _slopes(logits, target, keep, kept, slope.contiguous(), ctx.smoothing, ctx.weight)
    return gradient, None, None, None, None


_costs.register_autograd(_back, setup_context=_remember)


def costs(logits: Tensor, target: Tensor, keep: Tensor, smoothing: float, weight: float) -> tuple[Tensor, Tensor]:
    """Of logits (2, N, V): what each token costs (N), and its plain cross-entropy; zero where it does not count."""
    loss, plain, _ = _costs(logits.contiguous(), target.contiguous(), keep.contiguous(), smoothing, weight)
    return loss, plain.detach()
