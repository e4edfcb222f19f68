"""Sums over many short rows on a GPU, in two readings: by programs that share the rows, then over the programs.

Shapes: N rows, D features, P programs.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

PROGRAMS = 1056  # eight for each multiprocessor of a large GPU
HEIGHT, WIDTH = 32, 64  # what a program holds at first
MANY, FEW = 128, 8  # and in the end


@triton.jit(do_not_specialize=("n", "turns"))
def _partial(x, parts, n, d, turns, height: tl.constexpr, width: tl.constexpr):
    own, programs = tl.program_id(1).to(tl.int64), tl.num_programs(1)
    lanes = tl.program_id(0) * width + tl.arange(0, width)
    sums = tl.zeros((height, width), tl.float32)
    for turn in range(turns):
        rows = (own + turn * programs) * height + tl.arange(0, height)
        inside = (rows < n)[:, None] & (lanes < d)[None, :]
        sums += tl.load(x + rows[:, None] * d + lanes[None, :], mask=inside, other=0.0).to(tl.float32)
    tl.store(parts + own * d + lanes, tl.sum(sums, 0), mask=lanes < d)


@triton.jit(do_not_specialize=("n_parts",))
def _total(parts, out, n_parts, d, height: tl.constexpr, width: tl.constexpr):
    which = tl.program_id(1).to(tl.int64)
    lanes = tl.program_id(0) * width + tl.arange(0, width)
    sums = tl.zeros((height, width), tl.float32)
    for first in range(0, n_parts, height):
        rows = first + tl.arange(0, height)
        inside = (rows < n_parts)[:, None] & (lanes < d)[None, :]
        at = parts + (which * n_parts + rows[:, None]) * d + lanes[None, :]
        sums += tl.load(at, mask=inside, other=0.0)
    tl.store(out + which * d + lanes, tl.sum(sums, 0).to(out.dtype.element_ty), mask=lanes < d)


def column_sums(x: Tensor, out: Tensor) -> None:
    """(N, D) → (D,)."""
    n, d = x.shape
    grid, turns = spread(n, d, HEIGHT, WIDTH, PROGRAMS)
    parts = x.new_empty(1, grid[1], d, dtype=torch.float32)
    _partial[grid](x.contiguous(), parts, n, d, turns, height=HEIGHT, width=WIDTH)
    totals(parts, out[None])


def spread(n: int, d: int, height: int, width: int, most: int) -> tuple[tuple[int, int], int]:
    """At most so many programs for N rows and D columns: a grid; and how many tiles each walks over."""
    columns, tiles = -(-d // width), max(1, -(-n // height))
    programs = min(tiles, max(1, most // columns))
    return (columns, programs), -(-tiles // programs)


def totals(parts: Tensor, out: Tensor) -> None:
    """What programs have added up, (M, P, D), over all of them: (M, D)."""
    m, programs, d = parts.shape
    _total[(-(-d // FEW), m)](parts, out, programs, d, height=MANY, width=FEW)
