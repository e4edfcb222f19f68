"""Sums over the rows of many tensors on a GPU: by programs that share the rows, then over the programs.

Shapes: N rows, D features, P programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..tables import Tables
from .many import ALIGNED, at, count

SHARES = 64  # programs for some columns of a tensor
HEIGHT, WIDTH = 32, 64  # what a program holds at first
MANY, FEW = 128, 8  # and in the end
KINDS = {torch.float32: tl.float32, torch.bfloat16: tl.bfloat16, torch.float16: tl.float16}


@triton.jit
def _sums(
    table, given: tl.constexpr, kind: tl.constexpr, aligned: tl.constexpr, height: tl.constexpr, width: tl.constexpr
):
    """Rows of the table: a tensor (N, D) and room for the sums (P, D), then N and D."""
    row, own, programs = table + tl.program_id(2) * 4, tl.program_id(0), tl.num_programs(0)
    n, d = tl.load(row + 2), count(row + 3, aligned)
    lanes = tl.program_id(1) * width + tl.arange(0, width)
    if tl.program_id(1) * width >= d:
        return
    x = at(row, given, aligned)
    found = tl.zeros((height, width), tl.float32)
    for first in range(own * height, n, programs * height):
        rows = first + tl.arange(0, height)
        inside = (rows < n)[:, None] & (lanes < d)[None, :]
        found += tl.load(x + rows[:, None] * d + lanes[None, :], mask=inside, other=0.0).to(tl.float32)
    out = at(row + 1, kind, aligned) + own * d
    tl.store(out + lanes, tl.sum(found, 0).to(kind), mask=lanes < d)


def column_sums(tables: Tables, given: Sequence[tuple[Tensor, Tensor]]) -> list[tuple[Tensor, Tensor]]:
    """Of tensors (N, D) whose sums (D) shall be filled: what programs have added up, (1, P, D), for `totals`."""
    parts = [(x.new_empty(1, SHARES, x.shape[1], dtype=torch.float32), out) for x, out in given]
    for dtype in {x.dtype for x, _ in given}:
        alike = [(x, part) for (x, _), (part, _) in zip(given, parts, strict=True) if x.dtype == dtype]
        _launch(tables, alike, SHARES, HEIGHT, WIDTH)
    return [(part, out[None]) for part, out in parts]


def totals(tables: Tables, given: Sequence[tuple[Tensor, Tensor]]) -> None:
    """What programs have added up, (M, P, D), over all of them: (M, D)."""
    each = [pair for parts, out in given for pair in zip(parts, out, strict=True)]
    for dtype in {out.dtype for _, out in each}:
        _launch(tables, [(part, out) for part, out in each if out.dtype == dtype], 1, MANY, FEW)


def _launch(tables: Tables, pairs: Sequence[tuple[Tensor, Tensor]], shares: int, height: int, width: int) -> None:
    """Pairs (N, D) and (shares, D), or (D) for one share; all of the same two dtypes."""
    rows = [[x.data_ptr(), out.data_ptr(), *x.shape] for x, out in pairs]
    place = tables.put(rows)
    if place is None:
        for x, out in pairs:
            out.view(-1, x.shape[1]).zero_()[0].copy_(x.sum(0, dtype=torch.float32))
        return
    kinds: list[Any] = [KINDS[tensor.dtype] for tensor in pairs[0]]
    grid = shares, max(-(-x.shape[1] // width) for x, _ in pairs), len(pairs)
    aligned = all(number % ALIGNED == 0 for x, out, _, d in rows for number in (x, out, d))
    _sums[grid](place, *kinds, aligned, height=height, width=width)
