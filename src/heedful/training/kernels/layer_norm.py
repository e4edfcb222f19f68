"""Layer normalisation on a GPU, both directions in one reading each.

Torch's own takes several times as long to add up the gradients of weight and bias over many short rows. Here every
program walks over its share of the rows and keeps its sums; `core/norms.py` says what is computed.
Shapes: N rows, D features, P programs.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from . import block_of
from .sums import totals

PROGRAMS = 132  # one for each multiprocessor of a large GPU
TILE = 4096  # numbers that a program holds at once


@triton.jit(do_not_specialize=("n",))
def _norm_forward(x, weight, bias, y, mean, scale, n, d, eps, height: tl.constexpr, width: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * height + tl.arange(0, height)
    lanes = tl.arange(0, width)
    inside = (rows < n)[:, None] & (lanes < d)[None, :]
    places = rows[:, None] * d + lanes[None, :]
    value = tl.load(x + places, mask=inside, other=0.0).to(tl.float32)
    middle = tl.sum(value, 1) / d
    apart = tl.where(inside, value - middle[:, None], 0.0)
    shrink = 1 / tl.sqrt(tl.sum(apart * apart, 1) / d + eps)
    w = tl.load(weight + lanes, mask=lanes < d, other=0.0).to(tl.float32)
    b = tl.load(bias + lanes, mask=lanes < d, other=0.0).to(tl.float32)
    found = apart * shrink[:, None] * w[None, :] + b[None, :]
    tl.store(y + places, found.to(y.dtype.element_ty), mask=inside)
    tl.store(mean + rows, middle, mask=rows < n)
    tl.store(scale + rows, shrink, mask=rows < n)


@triton.jit(do_not_specialize=("n", "turns"))
def _norm_backward(x, weight, mean, scale, slope, out, sums, n, d, turns, height: tl.constexpr, width: tl.constexpr):
    own, programs = tl.program_id(0).to(tl.int64), tl.num_programs(0)
    lanes = tl.arange(0, width)
    w = tl.load(weight + lanes, mask=lanes < d, other=0.0).to(tl.float32)
    by_weight = tl.zeros((height, width), tl.float32)
    by_bias = tl.zeros((height, width), tl.float32)
    for turn in range(turns):
        rows = (own + turn * programs) * height + tl.arange(0, height)
        inside = (rows < n)[:, None] & (lanes < d)[None, :]
        places = rows[:, None] * d + lanes[None, :]
        shrink = tl.load(scale + rows, mask=rows < n, other=0.0)[:, None]
        middle = tl.load(mean + rows, mask=rows < n, other=0.0)[:, None]
        value = tl.load(x + places, mask=inside, other=0.0).to(tl.float32)
        normal = tl.where(inside, (value - middle) * shrink, 0.0)
        given = tl.load(slope + places, mask=inside, other=0.0).to(tl.float32)
        by_weight += given * normal
        by_bias += given
        g = given * w[None, :]
        along, across = tl.sum(g, 1)[:, None] / d, tl.sum(g * normal, 1)[:, None] / d
        found = (g - along - normal * across) * shrink
        tl.store(out + places, found.to(out.dtype.element_ty), mask=inside)
    tl.store(sums + own * d + lanes, tl.sum(by_weight, 0), mask=lanes < d)
    tl.store(sums + (programs + own) * d + lanes, tl.sum(by_bias, 0), mask=lanes < d)


class LayerNormed(torch.autograd.Function):
    """Of x (N, D)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
        n, d = x.shape
        y, (mean, scale) = torch.empty_like(x), (x.new_empty(n, dtype=torch.float32) for _ in range(2))
        height, width = _tile(d)
        if n:
            _norm_forward[(-(-n // height),)](x, weight, bias, y, mean, scale, n, d, eps, height=height, width=width)
        ctx.save_for_backward(x, weight, mean, scale)
        return y

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, mean, scale = ctx.saved_tensors
        n, d = x.shape
        height, width = _tile(d)
        tiles = max(1, -(-n // height))
        programs = min(PROGRAMS, tiles)
        out, sums = torch.empty_like(x), x.new_empty(2, programs, d, dtype=torch.float32)
        given = x, weight, mean, scale, slopes[0].contiguous(), out, sums
        _norm_backward[(programs,)](*given, n, d, -(-tiles // programs), height=height, width=width)
        by_weight, by_bias = totals(sums, weight)
        return out, by_weight, by_bias, None


def _tile(d: int) -> tuple[int, int]:
    """Rows and columns."""
    width = block_of(d, d)
    return max(1, TILE // width), width
