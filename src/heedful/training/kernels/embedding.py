"""The gradient of a table of vectors on a GPU. Torch's own sorts the ids first, which takes longer than all adding.

Shapes: N ids, V vectors, D features.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from . import block_of

TILE = 256  # numbers that a program holds at once


@triton.jit(do_not_specialize=("n",))
def _scatter(slope, ids, sums, n, d, height: tl.constexpr, width: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * height + tl.arange(0, height)
    lanes = tl.arange(0, width)
    inside = (rows < n)[:, None] & (lanes < d)[None, :]
    given = tl.load(slope + rows[:, None] * d + lanes[None, :], mask=inside, other=0.0).to(tl.float32)
    places = tl.load(ids + rows, mask=rows < n, other=0)[:, None] * d + lanes[None, :]
    tl.atomic_add(sums + places, given, mask=inside & (given != 0), sem="relaxed")  # padding's are zero, and many


class LookedUp(torch.autograd.Function):
    """Vectors (V, D) by their ids (N,), added up in float32."""

    @staticmethod
    def forward(ctx: Any, ids: Tensor, table: Tensor) -> Tensor:
        ctx.save_for_backward(ids)
        ctx.shape, ctx.dtype = table.shape, table.dtype
        return F.embedding(ids, table)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes: Tensor) -> tuple[None, Tensor]:
        (ids,) = ctx.saved_tensors
        slope, d = slopes[0].contiguous(), ctx.shape[1]
        sums = slope.new_zeros(ctx.shape, dtype=torch.float32)
        width = block_of(d, d)
        height = max(1, TILE // width)
        if len(ids):
            _scatter[(-(-len(ids) // height),)](slope, ids, sums, len(ids), d, height=height, width=width)
        return None, sums.to(ctx.dtype)
