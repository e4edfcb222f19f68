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

PROGRAMS = 256


@triton.jit
def _forward(x, weight, bias, y, mean, scale, d, eps, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, block)
    inside = lanes < d
    value = tl.load(x + row * d + lanes, mask=inside, other=0.0).to(tl.float32)
    middle = tl.sum(value, 0) / d
    apart = tl.where(inside, value - middle, 0.0)
    shrink = 1 / tl.sqrt(tl.sum(apart * apart, 0) / d + eps)
    w = tl.load(weight + lanes, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(bias + lanes, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row * d + lanes, (apart * shrink * w + b).to(y.dtype.element_ty), mask=inside)
    tl.store(mean + row, middle)
    tl.store(scale + row, shrink)


@triton.jit
def _backward(x, weight, mean, scale, slope, out, sums, n, d, programs, turns, block: tl.constexpr):
    own = tl.program_id(0)
    lanes = tl.arange(0, block)
    inside = lanes < d
    w = tl.load(weight + lanes, mask=inside, other=0.0).to(tl.float32)
    by_weight = tl.zeros((block,), tl.float32)
    by_bias = tl.zeros((block,), tl.float32)
    for turn in range(turns):
        row = own.to(tl.int64) + turn * programs
        there = inside & (row < n)
        shrink = tl.load(scale + row, mask=row < n, other=0.0)
        middle = tl.load(mean + row, mask=row < n, other=0.0)
        value = tl.load(x + row * d + lanes, mask=there, other=0.0).to(tl.float32)
        normal = tl.where(there, (value - middle) * shrink, 0.0)
        given = tl.load(slope + row * d + lanes, mask=there, other=0.0).to(tl.float32)
        by_weight += given * normal
        by_bias += given
        g = given * w
        found = (g - tl.sum(g, 0) / d - normal * (tl.sum(g * normal, 0) / d)) * shrink
        tl.store(out + row * d + lanes, found.to(out.dtype.element_ty), mask=there)
    tl.store(sums + own * d + lanes, by_weight, mask=inside)
    tl.store(sums + (programs + own) * d + lanes, by_bias, mask=inside)


class LayerNormed(torch.autograd.Function):
    """Of x (N, D)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
        n, d = x.shape
        y, (mean, scale) = torch.empty_like(x), (x.new_empty(n, dtype=torch.float32) for _ in range(2))
        if n:
            _forward[(n,)](x, weight, bias, y, mean, scale, d, eps, block=block_of(d, d), num_warps=4)
        ctx.save_for_backward(x, weight, mean, scale)
        return y

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, mean, scale = ctx.saved_tensors
        n, d = x.shape
        programs = min(PROGRAMS, max(1, n))
        out = torch.empty_like(x)
        sums = x.new_empty(2, programs, d, dtype=torch.float32)
        slope = slopes[0].contiguous()
        if n:
            sizes = n, d, programs, -(-n // programs)
            _backward[(programs,)](x, weight, mean, scale, slope, out, sums, *sizes, block=block_of(d, d), num_warps=4)
        else:
            sums.zero_()
        by_weight, by_bias = sums.sum(dim=1).to(weight.dtype)
        return out, by_weight, by_bias, None
