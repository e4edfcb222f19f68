"""Gradients of the weights of many linear maps in one launch on a GPU, and sums over the rows of many tensors.

Each gradient is a small matrix that sums over many rows. A separate product would leave most of a large GPU idle, or
divide the rows between programs whose results must be added. All maps of a model have enough tiles for one launch.
Sums are first computed by programs that divide the rows, then over the programs.
Shapes: N rows of inputs x (N, D) and slopes (N, E); gradients (E, D); P programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from .deferred import AddressTables
from .foreach import ALIGNED, at, count

LARGEST = 2**20  # numbers of a gradient; larger ones have enough tiles for a separate product
TALL, DEEP = 128, 64  # outputs of a tile, and rows that are read at once
WIDE, NARROW = (256, 8), (128, 4)  # inputs of a tile, and warps that share it
STAGES = 3  # loads in flight
ABLE = 9, 10  # compute capabilities with asynchronous tile loads and enough shared memory
SHARES = 64  # programs for some columns of a tensor
HEIGHT, WIDTH = 32, 64  # tile of the first sums
MANY, FEW = 128, 8  # tile of the sums over programs
KINDS = {torch.float32: tl.float32, torch.bfloat16: tl.bfloat16, torch.float16: tl.float16}


@triton.jit
def _gradients(table, tall: tl.constexpr, wide: tl.constexpr, deep: tl.constexpr):
    row = table + tl.program_id(1) * 6
    n = tl.load(row + 3).to(tl.int32)
    d, e = tl.multiple_of(tl.load(row + 4).to(tl.int32), 8), tl.multiple_of(tl.load(row + 5).to(tl.int32), 8)
    across = tl.cdiv(d, wide)
    first, begin = tl.program_id(0) // across * tall, tl.program_id(0) % across * wide
    if first >= e:
        return
    x, slope = at(row, tl.bfloat16, True), at(row + 1, tl.bfloat16, True)
    slopes = tl.make_tensor_descriptor(slope, shape=[n, e], strides=[e, 1], block_shape=[deep, tall])
    inputs = tl.make_tensor_descriptor(x, shape=[n, d], strides=[d, 1], block_shape=[deep, wide])
    result = tl.zeros((tall, wide), tl.float32)
    for rows in range(0, n, deep):  # rows beyond the last one are zero
        result = tl.dot(tl.trans(slopes.load([rows, first])), inputs.load([rows, begin]), result)
    outs, ins = first + tl.arange(0, tall), begin + tl.arange(0, wide)
    there = at(row + 2, tl.bfloat16, True) + outs[:, None] * d + ins[None, :]
    tl.store(there, result.to(tl.bfloat16), mask=(outs < e)[:, None] & (ins < d)[None, :])


def suits(x: Tensor, slope: Tensor) -> bool:
    """Return True if `weight_gradients` supports this gradient."""
    (n, d), e = x.shape, slope.shape[1]
    plain = all(
        part.dtype == torch.bfloat16
        and part.is_contiguous()
        and part.data_ptr() % ALIGNED == 0
        and part.shape[1] * part.element_size() % ALIGNED == 0
        for part in (x, slope)
    )
    return plain and n > 0 and d * e <= LARGEST and torch.cuda.get_device_capability(x.device)[0] in ABLE


def weight_gradients(tables: AddressTables, products: Sequence[tuple[Tensor, Tensor, Tensor]]) -> None:
    """Fill the gradients from triples of inputs, slopes and gradients that suit."""
    if not products:
        return
    rows = [
        [x.data_ptr(), slope.data_ptr(), out.data_ptr(), len(x), x.shape[1], slope.shape[1]]
        for x, slope, out in products
    ]
    table = tables.put(rows)
    if table is None:
        for x, slope, out in products:
            torch.mm(slope.mT, x, out=out)
        return
    wide, warps = WIDE if all(d % WIDE[0] == 0 for *_, d, _ in rows) else NARROW
    tiles = max(-(-e // TALL) * -(-d // wide) for *_, d, e in rows)
    triton.set_allocator(_allocate)
    _gradients[(tiles, len(rows))](table, tall=TALL, wide=wide, deep=DEEP, num_warps=warps, num_stages=STAGES)


def _allocate(size: int, alignment: int, stream: int | None) -> Tensor:
    """Allocate memory for Triton's tensor descriptors."""
    return torch.empty(size, dtype=torch.int8, device="cuda")


@triton.jit
def _sums(
    table, source: tl.constexpr, kind: tl.constexpr, aligned: tl.constexpr, height: tl.constexpr, width: tl.constexpr
):
    """Sum rows. A row of the table has the addresses of a tensor (N, D) and of its sums (P, D), then N and D."""
    row, program, programs = table + tl.program_id(2) * 4, tl.program_id(0), tl.num_programs(0)
    n, d = tl.load(row + 2), count(row + 3, aligned)
    lanes = tl.program_id(1) * width + tl.arange(0, width)
    if tl.program_id(1) * width >= d:
        return
    x = at(row, source, aligned)
    result = tl.zeros((height, width), tl.float32)
    for first in range(program * height, n, programs * height):
        rows = first + tl.arange(0, height)
        inside = (rows < n)[:, None] & (lanes < d)[None, :]
        result += tl.load(x + rows[:, None] * d + lanes[None, :], mask=inside, other=0.0).to(tl.float32)
    out = at(row + 1, kind, aligned) + program * d
    tl.store(out + lanes, tl.sum(result, 0).to(kind), mask=lanes < d)


def column_sums(tables: AddressTables, pairs: Sequence[tuple[Tensor, Tensor]]) -> list[tuple[Tensor, Tensor]]:
    """Return partial sums (1, P, D) of pairs of tensors (N, D) and outputs (D), which `totals` completes."""
    parts = [(x.new_empty(1, SHARES, x.shape[1], dtype=torch.float32), out) for x, out in pairs]
    for dtype in {x.dtype for x, _ in pairs}:
        alike = [(x, part) for (x, _), (part, _) in zip(pairs, parts, strict=True) if x.dtype == dtype]
        _launch(tables, alike, SHARES, HEIGHT, WIDTH)
    return [(part, out[None]) for part, out in parts]


def totals(tables: AddressTables, pairs: Sequence[tuple[Tensor, Tensor]]) -> None:
    """Sum partial sums (M, P, D) over the programs into (M, D)."""
    each = [pair for parts, out in pairs for pair in zip(parts, out, strict=True)]
    for dtype in {out.dtype for _, out in each}:
        _launch(tables, [(part, out) for part, out in each if out.dtype == dtype], 1, MANY, FEW)


def _launch(
    tables: AddressTables, pairs: Sequence[tuple[Tensor, Tensor]], shares: int, height: int, width: int
) -> None:
    """Sum pairs of (N, D) into (shares, D), or (D) for one share. All pairs have the same two dtypes."""
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
