"""Gradients of the weights of many linear maps in one launch on a GPU.

Each is a small matrix which sums over many rows, so that a product of its own would leave most of a large GPU idle or
share its rows between programs, which then add up what they have found. All maps of a model together have tiles enough.
Shapes: N rows of inputs x (N, D) and slopes (N, E); gradients (E, D).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..tables import Tables
from .many import ALIGNED, at

LARGEST = 2**20  # numbers of a gradient that is taken in; of larger ones, each has tiles enough by itself
TALL, DEEP = 128, 64  # outputs of a tile, and rows that are read at once
WIDE, NARROW = (256, 8), (128, 4)  # inputs of a tile, and groups of threads that share it
STAGES = 3  # readings that are under way
ABLE = 9, 10  # capabilities of GPUs that fetch tiles by themselves, and hold as many as are under way


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
    found = tl.zeros((tall, wide), tl.float32)
    for rows in range(0, n, deep):  # what lies beyond the last one is zero
        found = tl.dot(tl.trans(slopes.load([rows, first])), inputs.load([rows, begin]), found)
    outs, ins = first + tl.arange(0, tall), begin + tl.arange(0, wide)
    there = at(row + 2, tl.bfloat16, True) + outs[:, None] * d + ins[None, :]
    tl.store(there, found.to(tl.bfloat16), mask=(outs < e)[:, None] & (ins < d)[None, :])


def suits(x: Tensor, slope: Tensor) -> bool:
    """Whether the gradient may be one of many."""
    (n, d), e = x.shape, slope.shape[1]
    plain = all(
        part.dtype == torch.bfloat16
        and part.is_contiguous()
        and part.data_ptr() % ALIGNED == 0
        and part.shape[1] * part.element_size() % ALIGNED == 0
        for part in (x, slope)
    )
    return plain and n > 0 and d * e <= LARGEST and torch.cuda.get_device_capability(x.device)[0] in ABLE


def weight_gradients(tables: Tables, products: Sequence[tuple[Tensor, Tensor, Tensor]]) -> None:
    """Of inputs and slopes that suit, fill the gradients."""
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
    triton.set_allocator(_room)
    _gradients[(tiles, len(rows))](table, tall=TALL, wide=wide, deep=DEEP, num_warps=warps, num_stages=STAGES)


def _room(size: int, alignment: int, stream: int | None) -> Tensor:
    """For what programs tell the units that fetch tiles."""
    return torch.empty(size, dtype=torch.int8, device="cuda")
