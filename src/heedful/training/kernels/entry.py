"""The way into a stack on a GPU: padding made zero, positions added, dropout, in one reading each way.

`core/stacks.py` says what is computed. Shapes: B batch, T tokens, D features.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from . import block_of
from .dropping import Dropping, stays

TILE = 1024  # numbers that a program holds at once


@triton.jit(do_not_specialize=("n", "length", "number", "level"))
def _enter(x, real, encodings, out, seed, number, level, rise, n, length, d, height: tl.constexpr, width: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * height + tl.arange(0, height)
    lanes = tl.arange(0, width)
    inside = (rows < n)[:, None] & (lanes < d)[None, :]
    places = rows[:, None] * d + lanes[None, :]
    given = inside
    if real is not None:
        given &= (tl.load(real + rows, mask=rows < n, other=0) != 0)[:, None]
    value = tl.load(x + places, mask=given, other=0.0).to(tl.float32)  # what is padding is not even read
    if encodings is not None:
        value += tl.load(encodings + (rows % length)[:, None] * d + lanes[None, :], mask=inside, other=0.0)
    value = tl.where(stays(places, seed, number, level), value * rise, 0.0)
    tl.store(out + places, value.to(out.dtype.element_ty), mask=inside)


class Entered(torch.autograd.Function):
    """dropout(x where it is real + encodings), of x (B, T, D), real (B, T) or None, encodings (at least T, D) or None,
    which have no gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, real: Tensor | None, encodings: Tensor | None, dropping: Dropping) -> Tensor:
        ctx.real = None if real is None else real.expand(x.shape[:2]).contiguous()
        ctx.dropping = dropping
        return _entered(x, ctx.real, encodings, dropping)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        return _entered(slope, ctx.real, None, ctx.dropping), None, None, None  # what is zeroed stays zero


def _entered(x: Tensor, real: Tensor | None, encodings: Tensor | None, dropping: Dropping) -> Tensor:
    x = x.contiguous()
    out, (batch, length, d) = torch.empty_like(x), x.shape
    width = block_of(d, d)
    height, n = max(1, TILE // width), batch * length
    if n:
        grid = (-(-n // height),)
        _enter[grid](x, real, encodings, out, *dropping.given, n, length, d, height=height, width=width)
    return out
