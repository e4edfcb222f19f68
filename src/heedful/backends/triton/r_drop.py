"""The R-Drop loss over a vocabulary on a GPU: the logits of both passes are read once in each direction.

`training/loss.py` is the reference. With the logits x and y of the two passes and d = x − y, the divergence is
Σ (p − q) · d: the rest of log p − log q is the same for all tokens, and Σ (p − q) is 0. So the two sums of exponentials
and the means of d under p and under q, which one reading gives, are enough. Shapes: N tokens, V vocabulary.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from . import block_of, with_gradient

BLOCK = 2048  # pairs of logits that a program holds at once
SAVED = 4  # numbers for each token: the two log-sums, the two means


@triton.jit
def _add_block(peak, total, cross, x, apart):
    """Add numbers to the sums of exp(x − peak) and of exp(x − peak) · apart, relative to the new peak."""
    higher = tl.maximum(peak, tl.max(x, 0))
    level = tl.where(higher == -float("inf"), 0.0, higher)
    fall, rise = tl.exp(peak - level), tl.exp(x - level)
    return higher, total * fall + tl.sum(rise, 0), cross * fall + tl.sum(rise * apart, 0)


@triton.jit(do_not_specialize=("n",))
def _forward(logits, target, keep, saved, loss, plain, n, v, smoothing, weight, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_start, y_start = logits + row * v, logits + (row + n) * v
    lanes = tl.arange(0, block)
    real = tl.load(keep + row) != 0  # of what does not count, nothing is read
    x_peak, x_total, x_cross, y_peak, y_total, y_cross = -float("inf"), 0.0, 0.0, -float("inf"), 0.0, 0.0
    straight = 0.0
    for first in range(0, v, block):
        inside = (first + lanes < v) & real
        x = tl.load(x_start + first + lanes, mask=inside, other=-float("inf")).to(tl.float32)
        y = tl.load(y_start + first + lanes, mask=inside, other=-float("inf")).to(tl.float32)
        apart = tl.where(inside, x - y, 0.0)
        x_peak, x_total, x_cross = _add_block(x_peak, x_total, x_cross, x, apart)
        y_peak, y_total, y_cross = _add_block(y_peak, y_total, y_cross, y, apart)
        straight += tl.sum(tl.where(inside, x + y, 0.0), 0)
    x_log, y_log = x_peak + tl.log(x_total), y_peak + tl.log(y_total)
    x_mean, y_mean = x_cross / x_total, y_cross / y_total
    wanted = tl.load(target + row)
    both = tl.load(x_start + wanted, mask=real, other=0.0).to(tl.float32)
    both += tl.load(y_start + wanted, mask=real, other=0.0).to(tl.float32)
    right = (x_log + y_log - both) / 2
    even = (x_log + y_log - straight / v) / 2
    tl.store(saved + row, x_log)
    tl.store(saved + n + row, y_log)
    tl.store(saved + 2 * n + row, x_mean)
    tl.store(saved + 3 * n + row, y_mean)
    tl.store(plain + row, tl.where(real, right, 0.0))
    result = right + smoothing * (even - right) + weight * (x_mean - y_mean)
    tl.store(loss + row, tl.where(real, result, 0.0))


@triton.jit(do_not_specialize=("n",))
def _backward(logits, target, keep, saved, slope, out, n, v, smoothing, weight, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    places = tl.program_id(1) * block + tl.arange(0, block)
    inside = places < v
    here, there = row * v + places, (row + n) * v + places
    real = tl.load(keep + row) != 0
    x = tl.load(logits + here, mask=inside & real, other=0.0).to(tl.float32)
    y = tl.load(logits + there, mask=inside & real, other=0.0).to(tl.float32)
    p, q = tl.exp(x - tl.load(saved + row)), tl.exp(y - tl.load(saved + n + row))
    wanted = smoothing / v + tl.where(places == tl.load(target + row), 1.0 - smoothing, 0.0)
    by_x = (p - wanted) / 2 + weight * (p - q + p * (x - y - tl.load(saved + 2 * n + row)))
    by_y = (q - wanted) / 2 + weight * (q - p + q * (y - x + tl.load(saved + 3 * n + row)))
    times = tl.load(slope + row)
    tl.store(out + here, tl.where(real, by_x * times, 0.0).to(out.dtype.element_ty), mask=inside)
    tl.store(out + there, tl.where(real, by_y * times, 0.0).to(out.dtype.element_ty), mask=inside)


def _outputs(logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    n = logits.shape[1]
    loss, plain = (logits.new_empty(n, dtype=torch.float32) for _ in range(2))
    return loss, plain, logits.new_empty(SAVED, n, dtype=torch.float32)


def _costs(
    logits: Tensor, target: Tensor, keep: Tensor, smoothing: float, weight: float
) -> tuple[Tensor, Tensor, Tensor]:
    _, n, v = logits.shape
    loss, plain, saved = _outputs(logits)
    if n:
        _forward[(n,)](
            logits, target, keep, saved, loss, plain, n, v, smoothing, weight, block=block_of(v, BLOCK), num_warps=8
        )
    return loss, plain, saved


def _slopes(
    logits: Tensor, target: Tensor, keep: Tensor, saved: Tensor, slope: Tensor, smoothing: float, weight: float
) -> Tensor:
    _, n, v = logits.shape
    out = torch.empty_like(logits)
    if n:
        block = block_of(v, BLOCK)
        _backward[(n, triton.cdiv(v, block))](
            logits, target, keep, saved, slope, out, n, v, smoothing, weight, block=block, num_warps=8
        )
    return out


# It takes logits (2, N, V), target (N), keep (N), the smoothing and the weight of the divergence.
costs = with_gradient("r_drop_cross_entropy", _costs, _slopes, _outputs)
