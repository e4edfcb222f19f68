"""Operations on many tensors in one launch. Torch's foreach functions launch several kernels for many small tensors,
each of which leaves most of a large GPU idle. Here a program works on one piece of one tensor, whose address it reads
from a table on the device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from .deferred import AddressTables

PIECE = 2048  # numbers that a program works on
PARTS = 1024  # numbers, one from each program, that the last one works on at once
ALIGNED = 16  # bytes, and numbers: then a program reads several at once


class PointerTable(NamedTuple):
    """Pieces (P, …) of several lists of tensors: the address in each list, the size, and the index of the tensor."""

    rows: Tensor
    aligned: bool
    key: tuple[int, ...]  # addresses and sizes of the tensors

    @classmethod
    def of(cls, *lists: Sequence[Tensor], old: PointerTable | None = None) -> PointerTable:
        """Return a table for lists whose tensors have equal sizes at equal indices; the old one if it is the same."""
        key = tuple(number for tensors in lists for part in tensors for number in (part.data_ptr(), part.numel()))
        if old is not None and old.key == key:
            return old
        rows = _rows(lists)
        return cls(torch.tensor(rows, device=lists[0][0].device), _is_aligned(rows), key)

    @classmethod
    def put(cls, tables: AddressTables, *lists: Sequence[Tensor]) -> PointerTable | None:
        """Return a table among the others; None if there is no memory for it."""
        rows = _rows(lists)
        place = tables.put(rows)
        return None if place is None else cls(place, _is_aligned(rows), ())


def _rows(lists: Sequence[Sequence[Tensor]]) -> list[list[int]]:
    return [
        [*(tensor.data_ptr() + first * tensor.element_size() for tensor in alike), min(PIECE, size - first), place]
        for place, alike in enumerate(zip(*lists, strict=True))
        for size in [alike[0].numel()]
        for first in range(0, size, PIECE)
    ]


def _is_aligned(rows: list[list[int]]) -> bool:
    return all(number % ALIGNED == 0 for row in rows for number in row[:-1])


@triton.jit
def at(address, kind: tl.constexpr, aligned: tl.constexpr):
    """Load a pointer from an entry of a table."""
    pointer = tl.load(address).to(tl.pointer_type(kind))
    if aligned:
        pointer = tl.multiple_of(pointer, 16)
    return pointer


@triton.jit
def count(place, aligned: tl.constexpr):
    """Load a count from an entry of a table."""
    n = tl.load(place)
    if aligned:
        n = tl.multiple_of(n, 16)
    return n


@triton.jit
def _copy(table, source_kind: tl.constexpr, kind: tl.constexpr, piece: tl.constexpr, aligned: tl.constexpr):
    row, lanes = table + tl.program_id(0) * 4, tl.arange(0, piece)
    inside = lanes < count(row + 2, aligned)
    value = tl.load(at(row, source_kind, aligned) + lanes, mask=inside)
    tl.store(at(row + 1, kind, aligned) + lanes, value.to(kind), mask=inside)


def round_to_bf16(table: PointerTable) -> None:
    """Copy float32 tensors, the first list of the table, to bf16 tensors, the second."""
    _copy[(len(table.rows),)](table.rows, tl.float32, tl.bfloat16, piece=PIECE, aligned=table.aligned)


def widen_to_float32(table: PointerTable) -> None:
    """Copy bf16 tensors, the first list of the table, to float32 tensors, the second."""
    _copy[(len(table.rows),)](table.rows, tl.bfloat16, tl.float32, piece=PIECE, aligned=table.aligned)


@triton.jit
def _squares(table, parts, piece: tl.constexpr, aligned: tl.constexpr):
    row, lanes = table + tl.program_id(0) * 3, tl.arange(0, piece)
    value = tl.load(at(row, tl.float32, aligned) + lanes, mask=lanes < count(row + 1, aligned), other=0.0)
    tl.store(parts + tl.program_id(0), tl.sum(value * value, 0))


@triton.jit
def _step_status(parts, n_parts, sums, values, skip, factor, max_norm, epsilon, block: tl.constexpr):
    lanes = tl.arange(0, block)
    squares = tl.zeros((block,), tl.float32)
    for first in range(0, n_parts, block):
        squares += tl.load(parts + first + lanes, mask=first + lanes < n_parts, other=0.0)
    total, plain, n = tl.load(sums), tl.load(sums + 1), tl.load(sums + 2)
    norm = tl.sqrt(tl.sum(squares, 0)).to(tl.float64) / n
    finite = (tl.abs(norm) < float("inf")) & (tl.abs(total) < float("inf"))
    clipping = tl.full((), 1.0, tl.float64)
    if max_norm != 0:
        clipping = tl.where(norm + epsilon > max_norm, max_norm / (norm + epsilon), clipping)
    tl.store(values, total)
    tl.store(values + 1, plain)
    tl.store(values + 2, n)
    tl.store(values + 3, norm)
    tl.store(values + 4, finite.to(tl.float64))
    tl.store(skip, 1.0 - finite.to(tl.float32))
    tl.store(factor, (clipping / n).to(tl.float32))


def fused_step_status(
    table: PointerTable, sums: Tensor, max_norm: float, epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return values, skip and factor of float32 gradients, as `step_status` in `training/parallel/models.py` does."""
    parts = sums.new_empty(len(table.rows), dtype=torch.float32)
    values = sums.new_empty(5)
    skip, factor = (sums.new_empty((), dtype=torch.float32) for _ in range(2))
    _squares[(len(parts),)](table.rows, parts, piece=PIECE, aligned=table.aligned)
    _step_status[(1,)](parts, len(parts), sums, values, skip, factor, max_norm, epsilon, block=PARTS)
    return values, skip, factor


@triton.jit
def _increment(steps, n, skip, block: tl.constexpr):
    more = 1 - tl.load(skip)
    for first in range(0, n, block):
        places = first + tl.arange(0, block)
        pointers = tl.load(steps + places, mask=places < n, other=0).to(tl.pointer_type(tl.float32))
        tl.store(pointers, tl.load(pointers, mask=places < n, other=0.0) + more, mask=places < n)


@triton.jit
def _adamw(table, steps, decays, rate, factor, skip, beta1, beta2, eps, piece: tl.constexpr, aligned: tl.constexpr):
    if tl.load(skip) != 0:
        return
    row, lanes = table + tl.program_id(0) * 6, tl.arange(0, piece)
    inside = lanes < count(row + 4, aligned)
    place = tl.load(row + 5)
    weights, means = at(row, tl.float32, aligned) + lanes, at(row + 2, tl.float32, aligned) + lanes
    squares = at(row + 3, tl.float32, aligned) + lanes
    slope = tl.load(at(row + 1, tl.float32, aligned) + lanes, mask=inside, other=0.0) * tl.load(factor)
    mean = tl.load(means, mask=inside, other=0.0)
    square = tl.load(squares, mask=inside, other=0.0)
    weight = tl.load(weights, mask=inside, other=0.0)
    lr, step = tl.load(rate), tl.load(at(steps + place, tl.float32, False))
    mean += (slope - mean) * (1 - beta1)
    square = square * beta2 + slope * slope * (1 - beta2)
    correction1 = 1 - tl.exp2(step * tl.log2(beta1))
    correction2 = 1 - tl.exp2(step * tl.log2(beta2))
    weight *= 1 - lr * tl.load(decays + place)
    weight -= lr / correction1 * mean / (tl.sqrt(square / correction2) + eps)
    tl.store(means, mean, mask=inside)
    tl.store(squares, square, mask=inside)
    tl.store(weights, weight, mask=inside)


def adamw(
    table: PointerTable,
    steps: Tensor,
    decays: Tensor,
    rate: Tensor,
    factor: Tensor,
    skip: Tensor,
    betas: tuple[float, float],
    eps: float,
) -> None:
    """Take one step, unless `skip` is 1, over weights, gradients, means and squares, all in float32.

    `rate` is a tensor on the device, and `factor` multiplies the gradients. `steps` has the address of each weight's
    step count, `decays` each weight's decay.
    """
    _increment[(1,)](steps, len(steps), skip, block=PARTS)
    _adamw[(len(table.rows),)](
        table.rows, steps, decays, rate, factor, skip, *betas, eps, piece=PIECE, aligned=table.aligned
    )
