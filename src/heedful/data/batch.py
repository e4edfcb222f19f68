"""Ids to tensors of one fixed shape, and batches of any kind moved to a device in one copy.

Start, end and the shift between target_in and target_out are added here only.
Shapes: N sequences, B rows, S source and T target places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeAlias, TypeVar

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
ALIGNED = 16  # bytes, at a multiple of which every tensor of a piece of memory begins


class Sequences(NamedTuple):
    """Sequences of ids that lie in one flat array: where each begins, and how long it is."""

    flat: NDArray[np.integer[Any]]
    starts: NDArray[np.int64]  # (N,)
    lengths: NDArray[np.int64]  # (N,)

    def laid_out(self, shape: tuple[int, int], fill: int) -> NDArray[np.int64]:
        """Return (B, T): each sequence in a row, padded with `fill`; rows beyond the last sequence are all `fill`."""
        needed = (len(self.lengths), int(self.lengths.max(initial=0)))
        if any(have < need for have, need in zip(shape, needed, strict=True)):
            raise DataError(f"rows of the shape {shape} cannot hold sequences that need {needed}; nothing is cut off")
        ids = np.full(shape, fill, dtype=np.int64)
        places = np.arange(shape[1])
        real = places < self.lengths[:, None]
        ids[: len(self.lengths)][real] = self.flat[(self.starts[:, None] + places)[real]]
        return ids

    def lengths_of(self, n_rows: int) -> NDArray[np.int64]:
        """Return (B,) lengths: 0 for rows beyond the last sequence."""
        lengths = np.zeros(n_rows, dtype=np.int64)
        lengths[: len(self.lengths)] = self.lengths
        return lengths


class SpecialTokens(NamedTuple):
    """The ids that a batch adds to those of its texts; imported models bring others."""

    pad: int = PAD
    start: int = START
    end: int = END


DEFAULT_TOKENS = SpecialTokens()


@dataclass(frozen=True, eq=False)
class TensorBatch:
    """Tensors, and in `host_fields` what the host knows of their values."""

    host_fields: ClassVar[dict[str, Any]] = {"rows": ()}  # each with the value that says nothing

    def to(self, device: torch.device | str) -> Self:
        return moved(self, device)

    def fixed(self) -> Self:
        """Return the batch without its host fields: what is captured or compiled for it fits any batch of its shape."""
        return replace(self, **self.host_fields)


@dataclass(frozen=True, eq=False)
class Batch(TensorBatch):
    """Pairs side by side, padded at the end. Rows beyond the real ones are all padding and have length 0."""

    host_fields: ClassVar[dict[str, Any]] = {"source_lengths": None, "target_lengths": None, "rows": ()}

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
        return (*self.source.shape, self.target_in.shape[1])

    @classmethod
    def laid_out(
        cls,
        source: Sequences,
        target: Sequences,
        shape: tuple[int, int, int],
        rows: Sequence[int],
        special: SpecialTokens = DEFAULT_TOKENS,
    ) -> Self:
        """Return a batch of as many sources as targets, which come from these rows of their store."""
        n_source, n_target = (int(side.lengths.max(initial=0)) + 1 for side in (source, target))  # with the end
        needed = (len(source.lengths), n_source, n_target)
        if any(have < need for have, need in zip(shape, needed, strict=True)):
            raise DataError(f"a batch of the shape {shape} cannot hold pairs that need {needed}; nothing is cut off")
        n_rows, n_source, n_target = shape
        source_ids, source_mask, source_lengths = _ended(source, (n_rows, n_source), special)
        target_out, target_mask, target_lengths = _ended(target, (n_rows, n_target), special)
        target_in = np.full_like(target_out, special.pad)
        target_in[: needed[0], 0] = special.start
        target_in[:, 1:] = np.where(target_mask[:, 1:], target_out[:, :-1], special.pad)  # the shift: end falls out
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


def moved(batch: D, device: torch.device | str) -> D:
    """Return a batch of any kind with its tensors on a device; the host does not wait for the copy."""
    to_gpu = torch.device(device).type == "cuda"  # only from pinned memory can a GPU copy by itself
    tensors = list(tensors_of(pinned(batch) if to_gpu else batch).values())
    whole = whole_of(tensors) if to_gpu else None
    if whole is not None:
        return _with(batch, cut(whole.to(device, non_blocking=True), tensors))
    return _with(batch, [tensor.to(device, non_blocking=True) for tensor in tensors])


def pinned(batch: D) -> D:
    """Return a batch of any kind with its tensors in one piece of pinned memory.

    If some tensors are pinned or on a GPU already, those stay as they are.
    """
    tensors = list(tensors_of(batch).values())
    whole = whole_of(tensors)
    if whole is not None and whole.is_pinned():
        return batch
    if all(tensor.device.type == "cpu" and not tensor.is_pinned() for tensor in tensors):
        return _with(batch, pinned_together(tensors))
    return _with(batch, [tensor.pin_memory() if tensor.device.type == "cpu" else tensor for tensor in tensors])


def copied(batch: D) -> D:
    """Return a copy of a batch of any kind, in one piece of memory if the batch was."""
    tensors = list(tensors_of(batch).values())
    whole = whole_of(tensors)
    return _with(batch, [tensor.clone() for tensor in tensors] if whole is None else cut(whole.clone(), tensors))


def tensors_of(batch: DataclassInstance) -> dict[str, Tensor]:
    """Return the tensors of a batch of any kind by name."""
    values = {field.name: getattr(batch, field.name) for field in fields(batch)}
    return {name: value for name, value in values.items() if isinstance(value, Tensor)}


def _with(batch: D, tensors: Sequence[Tensor]) -> D:
    """The same with other tensors, in the order of its own."""
    return replace(batch, **dict(zip(tensors_of(batch), tensors, strict=True)))


def _ended(
    side: Sequences, shape: tuple[int, int], special: SpecialTokens
) -> tuple[NDArray[np.int64], NDArray[np.bool_], tuple[int, ...]]:
    """Return each sequence with its end and padding, the mask of real tokens, and the length of each row."""
    ids, lengths, n = side.laid_out(shape, special.pad), side.lengths_of(shape[0]), len(side.lengths)
    ids[np.arange(n), side.lengths] = special.end
    lengths[:n] += 1
    return ids, np.arange(shape[1]) < lengths[:, None], tuple(lengths.tolist())


def pinned_together(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Copy tensors from the CPU into one piece of pinned memory."""
    parts = cut(_pinned(_places(tensors)[1]), tensors)
    for part, tensor in zip(parts, tensors, strict=True):
        part.copy_(tensor)
    return parts


def cut(whole: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """Return views of a piece of memory with the shapes and types of these tensors."""
    starts, _ = _places(like)
    bounds = zip(starts, like, strict=True)
    return [whole[start : start + part.nbytes].view(part.dtype).view(part.shape) for start, part in bounds]


def whole_of(tensors: Sequence[Tensor]) -> Tensor | None:
    """Return the piece of memory that contains these tensors as `cut` lays them out, or None."""
    if not tensors:
        return None
    memory, (starts, end) = tensors[0].untyped_storage(), _places(tensors)
    base = memory.data_ptr()

    def lies_at(tensor: Tensor, start: int) -> bool:
        here = tensor.data_ptr() == base + start or not tensor.numel()  # what is empty has no address
        return here and tensor.untyped_storage().data_ptr() == base and tensor.is_contiguous()

    if memory.nbytes() != end or not all(map(lies_at, tensors, starts)):
        return None
    return torch.empty(0, dtype=torch.uint8, device=tensors[0].device).set_(memory)


def _pinned(size: int) -> Tensor:
    return torch.empty(size, dtype=torch.uint8, pin_memory=True)


def _places(tensors: Sequence[Tensor]) -> tuple[list[int], int]:
    """Return where each tensor begins and where the last one ends."""
    starts, end = [], 0
    for tensor in tensors:
        starts.append(end)
        end += -(-tensor.nbytes // ALIGNED) * ALIGNED
    return starts, end
