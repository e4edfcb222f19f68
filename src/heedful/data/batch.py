"""Ids to tensors of one fixed shape. Start, end and the shift between target_in and target_out are added here only.

B rows, S source and T target places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import DataError
from .tokenizer import END, PAD, START

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

D = TypeVar("D", bound="DataclassInstance")
Ids: TypeAlias = Sequence[int] | NDArray[np.integer[Any]]


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
    source_lengths: tuple[int, ...]  # B numbers, known to the host
    target_lengths: tuple[int, ...]
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
        sources, targets = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        source_lengths, target_lengths = [len(ids) + 1 for ids in sources], [len(ids) + 1 for ids in targets]
        needed = (len(pairs), max(source_lengths, default=1), max(target_lengths, default=1))
        n_rows, n_source, n_target = shape = shape or needed
        if any(have < need for have, need in zip(shape, needed, strict=True)):
            raise DataError(f"a batch of the shape {shape} cannot hold pairs that need {needed}; nothing is cut off")
        source_lengths += [0] * (n_rows - len(pairs))
        target_lengths += [0] * (n_rows - len(pairs))
        source, source_mask = _padded(sources, source_lengths, n_source, pad, end)
        target_out, target_mask = _padded(targets, target_lengths, n_target, pad, end)
        target_in = np.full_like(target_out, pad)
        target_in[: len(pairs), 0] = start
        target_in[:, 1:] = np.where(target_mask[:, 1:], target_out[:, :-1], pad)  # the shift: end falls out
        return cls(
            source=torch.from_numpy(source),
            target_in=torch.from_numpy(target_in),
            target_out=torch.from_numpy(target_out),
            source_mask=torch.from_numpy(source_mask),
            target_mask=torch.from_numpy(target_mask),
            source_lengths=tuple(source_lengths),
            target_lengths=tuple(target_lengths),
            rows=tuple(int(row) for row in rows),
        )

    def to(self, device: torch.device | str) -> Self:
        """The same on a device."""
        return moved(self, device)


def moved(batch: D, device: torch.device | str) -> D:
    """A batch of any kind with its tensors on a device; the host does not wait for the copy."""
    to_gpu = torch.device(device).type == "cuda"

    def there(tensor: Tensor) -> Tensor:  # only from pinned memory can a GPU copy by itself
        pinned = tensor.pin_memory() if to_gpu and tensor.device.type == "cpu" else tensor
        return pinned.to(device, non_blocking=True)

    values = {field.name: getattr(batch, field.name) for field in fields(batch)}
    return replace(batch, **{name: there(value) for name, value in values.items() if isinstance(value, Tensor)})


def _padded(
    sequences: Sequence[Ids], lengths: Sequence[int], width: int, pad: int, end: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Each sequence and its end, then padding; and what of that is real."""
    mask = np.arange(width) < np.array(lengths, dtype=np.int64)[:, None]
    ids = np.full(mask.shape, pad, dtype=np.int64)
    if sequences:
        ended = [part for sequence in sequences for part in (sequence, (end,))]
        ids[mask] = np.concatenate(ended, dtype=np.int64, casting="unsafe")  # an empty list counts as floats
    return ids, mask
