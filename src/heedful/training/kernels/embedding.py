"""A table of vectors on a GPU. For its gradient torch sorts the ids first, which takes longer than all adding.

Shapes: N ids, V vectors, D features.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from . import block_of

TILE = 256  # numbers that a program holds at once


@triton.jit(do_not_specialize=("n",))
def _gather(table, ids, out, scale, n, v, d, height: tl.constexpr, width: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * height + tl.arange(0, height)
    lanes = tl.arange(0, width)
    inside = (rows < n)[:, None] & (lanes < d)[None, :]
    token = tl.load(ids + rows, mask=rows < n, other=0)[:, None]
    known = inside & (token >= 0) & (token < v)
    found = tl.load(table + token * d + lanes[None, :], mask=known, other=float("nan")).to(tl.float32) * scale
    tl.store(out + rows[:, None] * d + lanes[None, :], found.to(out.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=("n",))
def _scatter(slope, ids, sums, scale, n, v, d, height: tl.constexpr, width: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * height + tl.arange(0, height)
    lanes = tl.arange(0, width)
    inside = (rows < n)[:, None] & (lanes < d)[None, :]
    given = tl.load(slope + rows[:, None] * d + lanes[None, :], mask=inside, other=0.0).to(tl.float32) * scale
    token = tl.load(ids + rows, mask=rows < n, other=0)[:, None]
    known = inside & (token >= 0) & (token < v)
    tl.atomic_add(
        sums + token * d + lanes[None, :], given, mask=known & (given != 0), sem="relaxed"
    )  # padding's are zero


class LookedUp(torch.autograd.Function):
    """Vectors (V, D) by their ids (N,), times a scale; an id that the table does not have gives NaN, which a run
    reports. Their gradients are added up in float32."""

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


def _over_rows(kernel: Any, given: Tensor, ids: Tensor, out: Tensor, scale: float, v: int) -> None:
    n, d = len(ids), given.shape[1]
    width = block_of(d, d)
    height = max(1, TILE // width)
    if n:
        kernel[(-(-n // height),)](given, ids, out, scale, n, v, d, height=height, width=width)
