"""Many tensors in one launch. Torch's own functions over lists launch several kernels over lists of small tensors,
each of which leaves most of a large GPU idle. Here a program works on one piece of one tensor, whose address it reads
from a table on the device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

PIECE = 2048  # numbers that a program works on
ALIGNED = 16  # bytes, and numbers: then a program reads several at once


class Table(NamedTuple):
    """Pieces (P, …) of several lists of tensors: the address in each list, how many numbers, and which tensor."""

    rows: Tensor
    aligned: bool
    addresses: tuple[int, ...]  # of the tensors it was made for

    @classmethod
    def of(cls, *lists: Sequence[Tensor], old: Table | None = None) -> Table:
        """Tensors at the same place in their lists have the same size. An old table will do if it is theirs."""
        addresses = tuple(tensor.data_ptr() for tensors in lists for tensor in tensors)
        if old is not None and old.addresses == addresses:
            return old
        rows = [
            [*(tensor.data_ptr() + first * tensor.element_size() for tensor in alike), min(PIECE, size - first), place]
            for place, alike in enumerate(zip(*lists, strict=True))
            for size in [alike[0].numel()]
            for first in range(0, size, PIECE)
        ]
        aligned = all(number % ALIGNED == 0 for row in rows for number in row[:-1])
        return cls(torch.tensor(rows, device=lists[0][0].device), aligned, addresses)


@triton.jit
def _at(address, kind: tl.constexpr, aligned: tl.constexpr):
    """A pointer, from a place in a table."""
    found = tl.load(address).to(tl.pointer_type(kind))
    if aligned:
        found = tl.multiple_of(found, 16)
    return found


@triton.jit
def _count(place, aligned: tl.constexpr):
    n = tl.load(place)
    if aligned:
        n = tl.multiple_of(n, 16)
    return n


@triton.jit
def _round(table, piece: tl.constexpr, aligned: tl.constexpr):
    row, lanes = table + tl.program_id(0) * 4, tl.arange(0, piece)
    inside = lanes < _count(row + 2, aligned)
    exact = tl.load(_at(row, tl.float32, aligned) + lanes, mask=inside)
    tl.store(_at(row + 1, tl.bfloat16, aligned) + lanes, exact.to(tl.bfloat16), mask=inside)


def round_to_bf16(table: Table) -> None:
    """Of tensors in float32 and their copies in bf16."""
    _round[(len(table.rows),)](table.rows, piece=PIECE, aligned=table.aligned)


@triton.jit
def _adamw(
    table, steps, decays, rate, factor, skip, fall, square_fall, eps, piece: tl.constexpr, aligned: tl.constexpr
):
    if tl.load(skip) != 0:
        return
    row, lanes = table + tl.program_id(0) * 6, tl.arange(0, piece)
    inside = lanes < _count(row + 4, aligned)
    place = tl.load(row + 5)
    weights, means = _at(row, tl.float32, aligned) + lanes, _at(row + 2, tl.float32, aligned) + lanes
    squares = _at(row + 3, tl.float32, aligned) + lanes
    slope = tl.load(_at(row + 1, tl.float32, aligned) + lanes, mask=inside, other=0.0) * tl.load(factor)
    mean = tl.load(means, mask=inside, other=0.0)
    square = tl.load(squares, mask=inside, other=0.0)
    weight = tl.load(weights, mask=inside, other=0.0)
    pace, step = tl.load(rate), tl.load(_at(steps + place, tl.float32, False))
    mean += (slope - mean) * (1 - fall)
    square = square * square_fall + slope * slope * (1 - square_fall)
    begun = 1 - tl.exp2(step * tl.log2(fall))
    square_begun = 1 - tl.exp2(step * tl.log2(square_fall))
    weight *= 1 - pace * tl.load(decays + place)
    weight -= pace / begun * mean / (tl.sqrt(square / square_begun) + eps)
    tl.store(means, mean, mask=inside)
    tl.store(squares, square, mask=inside)
    tl.store(weights, weight, mask=inside)


def adamw(
    table: Table,
    steps: Tensor,
    decays: Tensor,
    rate: Tensor,
    factor: Tensor,
    skip: Tensor,
    betas: tuple[float, float],
    eps: float,
) -> None:
    """One step over weights, gradients (which are multiplied by `factor`), means and squares, all in float32, by a rate
    on the device; none where `skip` is 1. `steps`: the address of each weight's count; `decays`: each weight's."""
    _adamw[(len(table.rows),)](
        table.rows, steps, decays, rate, factor, skip, *betas, eps, piece=PIECE, aligned=table.aligned
    )
