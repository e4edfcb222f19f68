"""Ids to tensors of one fixed shape. Start, end and the shift between target_in and target_out are added here only.

B rows, S source and T target places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import DataError
from .packing import cut, pinned_together, whole_of
from .sequences import Ids, Sequences
from .tokenizer import END, PAD, START

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

D = TypeVar("D", bound="DataclassInstance")


class Marks(NamedTuple):
    """The ids that a batch adds to those of its texts: other people's models have their own."""

    pad: int = PAD
    start: int = START
    end: int = END


OURS = Marks()


@dataclass(frozen=True, eq=False)
class Batch:
    """Pairs side by side, padded at the end. Rows beyond the real ones are all padding and have length 0."""

    source: Tensor  # (B, S) the source, then end
    target_in: Tensor  # (B, T) start, then the target: what the decoder reads
    target_out: Tensor  # (B, T) the target, then end: what it shall say
    source_mask: Tensor  # (B, S) True where real
    target_mask: Tensor  # (B, T) the same for target_in and target_out
    source_lengths: tuple[int, ...] | None  # B numbers, known to the host
    target_lengths: tuple[int, ...] | None
    rows: tuple[int, ...]  # the real rows' indices in the store

    @property
    def shape(self) -> tuple[int, int, int]:
        """B, S, T."""
        return (*self.source.shape, self.target_in.shape[1])

    @classmethod
    def of(
        cls,
        pairs: Sequence[tuple[Ids, Ids]],
        *,
        shape: tuple[int, int, int] | None = None,
        rows: Sequence[int] | None = None,
        pad: int = PAD,
        start: int = START,
        end: int = END,
    ) -> Self:
        """A batch of (source ids, target ids). The shape (B, S, T) is the smallest that fits unless given;
        `rows` says where the pairs stand in their store, or counts them."""
        rows = range(len(pairs)) if rows is None else rows
        if len(rows) != len(pairs):
            raise ValueError(f"{len(pairs)} pairs need as many rows, not {len(rows)}")
        source, target = (Sequences.of([pair[side] for pair in pairs]) for side in (0, 1))
        numbers = [int(row) for row in rows]
        return cls.laid_out(source, target, shape or _needed(source, target), numbers, Marks(pad, start, end))

    @classmethod
    def laid_out(
        cls, source: Sequences, target: Sequences, shape: tuple[int, int, int], rows: Sequence[int], marks: Marks = OURS
    ) -> Self:
        """A batch of as many sources as targets, which stand in these rows of their store."""
        needed = _needed(source, target)
        if any(have < need for have, need in zip(shape, needed, strict=True)):
            raise DataError(f"a batch of the shape {shape} cannot hold pairs that need {needed}; nothing is cut off")
        n_rows, n_source, n_target = shape
        source_ids, source_mask, source_lengths = _ended(source, (n_rows, n_source), marks)
        target_out, target_mask, target_lengths = _ended(target, (n_rows, n_target), marks)
        target_in = np.full_like(target_out, marks.pad)
        target_in[: needed[0], 0] = marks.start
        target_in[:, 1:] = np.where(target_mask[:, 1:], target_out[:, :-1], marks.pad)  # the shift: end falls out
        return cls(
            source=torch.from_numpy(source_ids),
            target_in=torch.from_numpy(target_in),
            target_out=torch.from_numpy(target_out),
            source_mask=torch.from_numpy(source_mask),
            target_mask=torch.from_numpy(target_mask),
            source_lengths=source_lengths,
            target_lengths=target_lengths,
            rows=tuple(rows),
        )

    def to(self, device: torch.device | str) -> Self:
        """The same on a device."""
        return moved(self, device)

    def fixed(self) -> Self:
        """The same without what the host knows of its values: what is captured or compiled for it holds for every
        batch of its shape."""
        return replace(self, source_lengths=None, target_lengths=None, rows=())


def moved(batch: D, device: torch.device | str) -> D:
    """A batch of any kind with its tensors on a device; the host does not wait for the copy."""
    to_gpu = torch.device(device).type == "cuda"  # only from pinned memory can a GPU copy by itself
    tensors = list(tensors_of(pinned(batch) if to_gpu else batch).values())
    whole = whole_of(tensors) if to_gpu else None
    if whole is not None:
        return _with(batch, cut(whole.to(device, non_blocking=True), tensors))
    return _with(batch, [tensor.to(device, non_blocking=True) for tensor in tensors])


def pinned(batch: D) -> D:
    """A batch of any kind with its tensors in pinned memory; all in one piece, unless some are there already, or on a
    GPU: those stay."""
    tensors = list(tensors_of(batch).values())
    whole = whole_of(tensors)
    if whole is not None and whole.is_pinned():
        return batch
    if all(tensor.device.type == "cpu" and not tensor.is_pinned() for tensor in tensors):
        return _with(batch, pinned_together(tensors))
    return _with(batch, [tensor.pin_memory() if tensor.device.type == "cpu" else tensor for tensor in tensors])


def copied(batch: D) -> D:
    """A batch of any kind in memory of its own, in one piece if it was."""
    tensors = list(tensors_of(batch).values())
    whole = whole_of(tensors)
    return _with(batch, [tensor.clone() for tensor in tensors] if whole is None else cut(whole.clone(), tensors))


def tensors_of(batch: DataclassInstance) -> dict[str, Tensor]:
    """The tensors of a batch of any kind, by their names."""
    values = {field.name: getattr(batch, field.name) for field in fields(batch)}
    return {name: value for name, value in values.items() if isinstance(value, Tensor)}


def _with(batch: D, tensors: Sequence[Tensor]) -> D:
    """The same with other tensors, in the order of its own."""
    return replace(batch, **dict(zip(tensors_of(batch), tensors, strict=True)))


def _needed(source: Sequences, target: Sequences) -> tuple[int, int, int]:
    """The smallest shape, with a place for the end."""
    n_source, n_target = (int(side.lengths.max(initial=0)) + 1 for side in (source, target))
    return len(source.lengths), n_source, n_target


def _ended(
    side: Sequences, shape: tuple[int, int], marks: Marks
) -> tuple[NDArray[np.int64], NDArray[np.bool_], tuple[int, ...]]:
    """Each sequence and its end, then padding; what of that is real; and how long each row is."""
    ids, lengths, n = side.laid_out(shape, marks.pad), side.lengths_of(shape[0]), len(side.lengths)
    ids[np.arange(n), side.lengths] = marks.end
    lengths[:n] += 1
    return ids, np.arange(shape[1]) < lengths[:, None], tuple(lengths.tolist())
