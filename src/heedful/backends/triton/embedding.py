"""Token embeddings and the input of a stack on a GPU.

For the gradient of a table torch sorts the ids first, which takes longer than the additions. At the input of a stack,
one kernel sets padding to zero, adds positions and applies dropout; `core/stacks.py` is the reference.
Shapes: N ids, V vectors, D features, B batch, T tokens.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from . import block_of
from .dropout import Dropping, stays

TILE, ENTRY_TILE = 256, 1024  # numbers that a program holds at once, of a table and of a stack's input


@triton.jit(do_not_specialize=("n",))
def _gather(table, ids, out, scale, n, v, d, height: tl.constexpr, width: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * height + tl.arange(0, height)
    lanes = tl.arange(0, width)
    inside = (rows < n)[:, None] & (lanes < d)[None, :]
    token = tl.load(ids + rows, mask=rows < n, other=0)[:, None]
    valid = inside & (token >= 0) & (token < v)
    vector = tl.load(table + token * d + lanes[None, :], mask=valid, other=float("nan")).to(tl.float32) * scale
    tl.store(out + rows[:, None] * d + lanes[None, :], vector.to(out.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=("n",))
def _scatter(slope, ids, sums, scale, n, v, d, height: tl.constexpr, width: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * height + tl.arange(0, height)
    lanes = tl.arange(0, width)
    inside = (rows < n)[:, None] & (lanes < d)[None, :]
    grad = tl.load(slope + rows[:, None] * d + lanes[None, :], mask=inside, other=0.0).to(tl.float32) * scale
    token = tl.load(ids + rows, mask=rows < n, other=0)[:, None]
    valid = inside & (token >= 0) & (token < v)
    tl.atomic_add(
        sums + token * d + lanes[None, :], grad, mask=valid & (grad != 0), sem="relaxed"
    )  # the gradients of padding are zero


class LookedUp(torch.autograd.Function):
    """Look up vectors (V, D) by ids (N,), times a scale. An id outside the table gives NaN, which a run reports.

    The gradients are summed in float32.
    """

    @staticmethod
    def forward(ctx: Any, ids: Tensor, table: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(ids)
        ctx.shape, ctx.dtype, ctx.scale = table.shape, table.dtype, scale
        out = table.new_empty(len(ids), table.shape[1])
        _over_rows(_gather, table.contiguous(), ids, out, scale, len(table))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        (ids,) = ctx.saved_tensors
        sums = slope.new_zeros(ctx.shape, dtype=torch.float32)
        _over_rows(_scatter, slope.contiguous(), ids, sums, ctx.scale, len(sums))
        return None, sums.to(ctx.dtype), None


def _over_rows(kernel: Any, source: Tensor, ids: Tensor, out: Tensor, scale: float, v: int) -> None:
    n, d = len(ids), source.shape[1]
    width = block_of(d, d)
    height = max(1, TILE // width)
    if n:
        kernel[(-(-n // height),)](source, ids, out, scale, n, v, d, height=height, width=width)


@triton.jit(do_not_specialize=("n", "length", "number", "level"))
def _enter(x, real, encodings, out, seed, number, level, rise, n, length, d, height: tl.constexpr, width: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * height + tl.arange(0, height)
    lanes = tl.arange(0, width)
    inside = (rows < n)[:, None] & (lanes < d)[None, :]
    places = rows[:, None] * d + lanes[None, :]
    present = inside
    if real is not None:
        present &= (tl.load(real + rows, mask=rows < n, other=0) != 0)[:, None]
    value = tl.load(x + places, mask=present, other=0.0).to(tl.float32)  # padding is not even read
    if encodings is not None:
        value += tl.load(encodings + (rows % length)[:, None] * d + lanes[None, :], mask=inside, other=0.0)
    value = tl.where(stays(places, seed, number, level), value * rise, 0.0)
    tl.store(out + places, value.to(out.dtype.element_ty), mask=inside)


class Entered(torch.autograd.Function):
    """dropout(x · real + encodings), of x (B, T, D), real (B, T) or None, encodings (at least T, D) or None.

    The encodings have no gradient.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, real: Tensor | None, encodings: Tensor | None, dropping: Dropping) -> Tensor:
        ctx.real = None if real is None else real.expand(x.shape[:2]).contiguous()
        ctx.dropping = dropping
        return _entered(x, ctx.real, encodings, dropping)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        return _entered(slope, ctx.real, None, ctx.dropping), None, None, None  # padding stays zero


def _entered(x: Tensor, real: Tensor | None, encodings: Tensor | None, dropping: Dropping) -> Tensor:
    x = x.contiguous()
    out, (batch, length, d) = torch.empty_like(x), x.shape
    width = block_of(d, d)
    height, n = max(1, ENTRY_TILE // width), batch * length
    if n:
        grid = (-(-n // height),)
        _enter[grid](x, real, encodings, out, *dropping.kernel_args, n, length, d, height=height, width=width)
    return out
