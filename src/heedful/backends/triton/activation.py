"""A bias and an activation on a GPU, in one kernel for each direction.

`core/layers.py` is the reference. Shapes: N rows, D features, P programs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

if TYPE_CHECKING:
    from .deferred import BackwardPass

PROGRAMS = 2112  # sixteen for each multiprocessor of a large GPU
FORTH, BACK, WIDTH = 4, 2, 256  # rows, each way, and columns that a program holds at once
WARPS = 1  # column sums over several warps would go through shared memory


@triton.jit
def _inner(x):
    """Return `inner` of the GELU approximation x · sigmoid(inner), and its gradient."""
    return 1.5957691216057308 * (x + 0.044715 * x * x * x), 1.5957691216057308 * (1 + 0.134145 * x * x)


@triton.jit
def _normal(x):
    """Return the normal distribution function at x, by Abramowitz and Stegun's 7.1.26 to 1e-7, and its density."""
    gauss = tl.exp(-0.5 * x * x)
    t = 1 / (1 + 0.3275911 * 0.7071067811865476 * tl.abs(x))
    rest = t * (1.061405429 * t - 1.453152027)
    rest = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + rest)))
    above = 0.5 * rest * gauss  # the share beyond |x|
    return tl.where(x > 0, 1 - above, above), 0.3989422804014327 * gauss


@triton.jit
def _value(x, kind: tl.constexpr):
    if kind == "relu":
        result = tl.maximum(x, 0.0)
    elif kind == "gelu":
        below, _ = _normal(x)
        result = x * below
    elif kind == "gelu_tanh":
        inner, _ = _inner(x)
        result = x * tl.sigmoid(inner)
    else:
        result = x * tl.sigmoid(x)
    return result


@triton.jit
def _steepness(x, kind: tl.constexpr):
    if kind == "relu":
        result = tl.where(x > 0, 1.0, 0.0)
    elif kind == "gelu":
        below, density = _normal(x)
        result = below + x * density
    elif kind == "gelu_tanh":
        inner, by_x = _inner(x)
        share = tl.sigmoid(inner)
        result = share + x * share * (1 - share) * by_x
    else:
        share = tl.sigmoid(x)
        result = share + x * share * (1 - share)
    return result


@triton.jit(do_not_specialize=("n",))
def _forward(x, bias, y, n, d, kind: tl.constexpr, height: tl.constexpr, width: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * height + tl.arange(0, height)
    lanes = tl.program_id(1) * width + tl.arange(0, width)
    inside = (rows < n)[:, None] & (lanes < d)[None, :]
    places = rows[:, None] * d + lanes[None, :]
    value = tl.load(x + places, mask=inside, other=0.0).to(tl.float32)
    value += tl.load(bias + lanes, mask=lanes < d, other=0.0).to(tl.float32)[None, :]
    tl.store(y + places, _value(value, kind).to(y.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=("n", "turns"))
def _backward(x, bias, slope, by_x, sums, n, d, turns, kind: tl.constexpr, height: tl.constexpr, width: tl.constexpr):
    program, programs = tl.program_id(1).to(tl.int64), tl.num_programs(1)
    lanes = tl.program_id(0) * width + tl.arange(0, width)
    offset = tl.load(bias + lanes, mask=lanes < d, other=0.0).to(tl.float32)[None, :]
    by_bias = tl.zeros((height, width), tl.float32)
    for turn in range(turns):
        rows = (program + turn * programs) * height + tl.arange(0, height)
        inside = (rows < n)[:, None] & (lanes < d)[None, :]
        places = rows[:, None] * d + lanes[None, :]
        value = tl.load(x + places, mask=inside, other=0.0).to(tl.float32) + offset
        result = tl.load(slope + places, mask=inside, other=0.0).to(tl.float32) * _steepness(value, kind)
        by_bias += result
        tl.store(by_x + places, result.to(by_x.dtype.element_ty), mask=inside)
    tl.store(sums + program * d + lanes, tl.sum(by_bias, 0), mask=lanes < d)


class Activated(torch.autograd.Function):
    """The activation `kind` of x + bias, of x (N, D)."""

    @staticmethod
    def forward(ctx: Any, shared: BackwardPass, x: Tensor, bias: Tensor, kind: str) -> Tensor:
        n, d = x.shape
        y = torch.empty_like(x)
        if n:
            grid = -(-n // FORTH), -(-d // WIDTH)
            _forward[grid](x, bias, y, n, d, kind=kind, height=FORTH, width=WIDTH, num_warps=WARPS)
        ctx.save_for_backward(x, bias)
        ctx.shared, ctx.bias, ctx.kind = shared.counting(bias), bias, kind
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        x, bias = ctx.saved_tensors
        n, d = x.shape
        by_x, slope = torch.empty_like(x), slope.contiguous()
        grid, turns = _grid(n, d)
        sums = x.new_empty(1, grid[1], d, dtype=torch.float32)
        _backward[grid](
            x, bias, slope, by_x, sums, n, d, turns, kind=ctx.kind, height=BACK, width=WIDTH, num_warps=WARPS
        )
        return None, by_x, *ctx.shared.totals(sums, ctx.bias), None


def _grid(n: int, d: int) -> tuple[tuple[int, int], int]:
    """Return the grid of programs for N rows and D columns, and the number of tiles for each program."""
    columns, tiles = -(-d // WIDTH), max(1, -(-n // BACK))
    programs = min(tiles, max(1, PROGRAMS // columns))
    return (columns, programs), -(-tiles // programs)
