"""Bias, dropout, addition and norm around the sublayers, in one kernel for each direction.

    total = x + dropout(part + bias)        y = norm(total)

A kernel computes the addition, the norm, or both: arguments that are None are skipped. Torch reads all of it four
times, and is slow at summing the gradients of vectors over many short rows; here every program sums over its share of
the rows. `core/layers.py` and `core/norms.py` are the reference. Shapes: N rows, D features, P programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from . import block_of
from .dropout import Dropping, stays

if TYPE_CHECKING:
    from .deferred import BackwardPass

PROGRAMS = 1056  # eight for each multiprocessor of a large GPU
FORTH, BACK = 512, 1024  # numbers that a program holds at once, each way
WIDE = 512  # numbers of a row for each warp; one warp if possible, since column sums over several are slow
NO_DROPOUT = None, 0, 0, 1.0


@triton.jit(do_not_specialize=("n", "number", "level"))
def _forward(
    part, bias, x, weight, offset, total, y, mean, scale, seed, number, level, rise, n, d, eps,
    height: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0).to(tl.int64) * height + tl.arange(0, height)
    lanes = tl.arange(0, width)
    inside = (rows < n)[:, None] & (lanes < d)[None, :]
    places = rows[:, None] * d + lanes[None, :]
    value = tl.load(x + places, mask=inside, other=0.0).to(tl.float32)
    if part is not None:
        branch = tl.load(part + places, mask=inside, other=0.0).to(tl.float32)
        branch += tl.load(bias + lanes, mask=lanes < d, other=0.0).to(tl.float32)[None, :]
        value += tl.where(stays(places, seed, number, level), branch * rise, 0.0)
        rounded = value.to(total.dtype.element_ty)
        tl.store(total + places, rounded, mask=inside)
        value = rounded.to(tl.float32)  # as the backward pass will read it
    if weight is not None:
        middle = tl.sum(tl.where(inside, value, 0.0), 1) / d
        apart = tl.where(inside, value - middle[:, None], 0.0)
        shrink = 1 / tl.sqrt(tl.sum(apart * apart, 1) / d + eps)
        w = tl.load(weight + lanes, mask=lanes < d, other=0.0).to(tl.float32)
        b = tl.load(offset + lanes, mask=lanes < d, other=0.0).to(tl.float32)
        result = apart * shrink[:, None] * w[None, :] + b[None, :]
        tl.store(y + places, result.to(y.dtype.element_ty), mask=inside)
        tl.store(mean + rows, middle, mask=rows < n)
        tl.store(scale + rows, shrink, mask=rows < n)


@triton.jit(do_not_specialize=("n", "turns", "number", "level"))
def _backward(
    slope, residual, total, weight, mean, scale, by_x, by_part, sums, seed, number, level, rise, n, d, turns,
    height: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    program, programs = tl.program_id(0).to(tl.int64), tl.num_programs(0)
    lanes = tl.arange(0, width)
    by_weight = tl.zeros((height, width), tl.float32)
    by_offset = tl.zeros((height, width), tl.float32)
    by_bias = tl.zeros((height, width), tl.float32)
    for turn in range(turns):
        rows = (program + turn * programs) * height + tl.arange(0, height)
        inside = (rows < n)[:, None] & (lanes < d)[None, :]
        places = rows[:, None] * d + lanes[None, :]
        result = tl.load(slope + places, mask=inside, other=0.0).to(tl.float32)
        if weight is not None:
            w = tl.load(weight + lanes, mask=lanes < d, other=0.0).to(tl.float32)
            shrink = tl.load(scale + rows, mask=rows < n, other=0.0)[:, None]
            middle = tl.load(mean + rows, mask=rows < n, other=0.0)[:, None]
            value = tl.load(total + places, mask=inside, other=0.0).to(tl.float32)
            normal = tl.where(inside, (value - middle) * shrink, 0.0)
            by_weight += result * normal
            by_offset += result
            g = result * w[None, :]
            along, across = tl.sum(g, 1)[:, None] / d, tl.sum(g * normal, 1)[:, None] / d
            result = (g - along - normal * across) * shrink
            if residual is not None:
                result += tl.load(residual + places, mask=inside, other=0.0).to(tl.float32)
            tl.store(by_x + places, result.to(by_x.dtype.element_ty), mask=inside)
        if by_part is not None:
            result = tl.where(stays(places, seed, number, level), result * rise, 0.0)
            by_bias += result
            tl.store(by_part + places, result.to(by_part.dtype.element_ty), mask=inside)
    here = program * d + lanes
    if by_part is not None:
        tl.store(sums + here, tl.sum(by_bias, 0), mask=lanes < d)
        here += programs * d
    if weight is not None:
        tl.store(sums + here, tl.sum(by_weight, 0), mask=lanes < d)
        tl.store(sums + programs * d + here, tl.sum(by_offset, 0), mask=lanes < d)


class Added(torch.autograd.Function):
    """x + dropout(part + bias), of x and part (N, D)."""

    @staticmethod
    def forward(ctx: Any, shared: BackwardPass, x: Tensor, part: Tensor, bias: Tensor, dropping: Dropping) -> Tensor:
        total = torch.empty_like(x)
        tile, grid = _tiles(FORTH, *x.shape)
        _forward[grid](part, bias, x, None, None, total, None, None, None, *dropping.kernel_args, *x.shape, 0.0, **tile)
        ctx.shared, ctx.vectors, ctx.dropping = shared.counting(bias), (bias,), dropping
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        slope = slope.contiguous()
        by_part = torch.empty_like(slope)
        (by_bias,) = _run_backward(ctx, slope, (None,) * 5, None, by_part, ctx.dropping)
        return None, slope, by_part, by_bias, None


class Normed(torch.autograd.Function):
    """norm(x) of x (N, D), and x for a residual connection, whose gradient is added here."""

    @staticmethod
    def forward(
        ctx: Any, shared: BackwardPass, x: Tensor, weight: Tensor, offset: Tensor, eps: float
    ) -> tuple[Tensor, Tensor]:
        y, mean, scale = _outputs(x)
        tile, grid = _tiles(FORTH, *x.shape)
        _forward[grid](None, None, x, weight, offset, None, y, mean, scale, *NO_DROPOUT, *x.shape, eps, **tile)
        ctx.save_for_backward(x, weight, mean, scale)
        ctx.shared, ctx.vectors = shared.counting(weight, offset), (weight, offset)
        ctx.set_materialize_grads(False)
        return y, x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor | None, residual: Tensor | None) -> tuple[Tensor | None, ...]:
        if slope is None:
            return None, residual, None, None, None
        by_x = torch.empty_like(ctx.saved_tensors[0])
        residual = None if residual is None else residual.contiguous()
        sums = _run_backward(ctx, slope.contiguous(), (residual, *ctx.saved_tensors), by_x, None, None)
        return None, by_x, *sums, None


class AddedAndNormed(torch.autograd.Function):
    """norm(x + dropout(part + bias)), of x and part (N, D)."""

    @staticmethod
    def forward(
        ctx: Any,
        shared: BackwardPass,
        x: Tensor,
        part: Tensor,
        bias: Tensor,
        weight: Tensor,
        offset: Tensor,
        eps: float,
        dropping: Dropping,
    ) -> Tensor:
        total, (y, mean, scale) = torch.empty_like(x), _outputs(x)
        tile, grid = _tiles(FORTH, *x.shape)
        args = part, bias, x, weight, offset, total, y, mean, scale, *dropping.kernel_args
        _forward[grid](*args, *x.shape, eps, **tile)
        ctx.save_for_backward(total, weight, mean, scale)
        ctx.shared, ctx.vectors, ctx.dropping = shared.counting(bias, weight, offset), (bias, weight, offset), dropping
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        slope = slope.contiguous()
        by_x, by_part = torch.empty_like(slope), torch.empty_like(slope)
        sums = _run_backward(ctx, slope, (None, *ctx.saved_tensors), by_x, by_part, ctx.dropping)
        return None, by_x, by_part, *sums, None, None


def _outputs(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Allocate norm(x), and the mean and the scale of each row."""
    mean, scale = (x.new_empty(len(x), dtype=torch.float32) for _ in range(2))
    return torch.empty_like(x), mean, scale


def _run_backward(
    ctx: Any,
    slope: Tensor,
    norm: tuple[Tensor | None, ...],
    by_x: Tensor | None,
    by_part: Tensor | None,
    dropping: Dropping | None,
) -> Sequence[Tensor]:
    """Fill the gradients, and return those of the vectors: of the bias, and of the norm's weight and offset."""
    n, d = slope.shape
    tile, (tiles,) = _tiles(BACK, n, d)
    programs = min(PROGRAMS, tiles)
    parts = slope.new_empty(len(ctx.vectors), programs, d, dtype=torch.float32)
    drops = NO_DROPOUT if dropping is None else dropping.kernel_args
    _backward[(programs,)](slope, *norm, by_x, by_part, parts, *drops, n, d, -(-tiles // programs), **tile)
    return ctx.shared.totals(parts, *ctx.vectors)


def _tiles(numbers: int, n: int, d: int) -> tuple[dict[str, int], tuple[int]]:
    """Return the shape of a tile as kernel arguments, and the number of tiles."""
    width = block_of(d, d)
    height = max(1, numbers // width)
    return {"height": height, "width": width, "num_warps": max(1, width // WIDE)}, (max(1, -(-n // height)),)
