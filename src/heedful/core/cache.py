"""What a decoder keeps from step to step, so that a new token costs one step and not the whole prefix.

The caller owns the cache and hands it to every call. It is addressed by layer index. Keys and values
have the shape (B, G, T, K): B batch, G key/value heads, T tokens, K head width. A step writes its new
keys in every layer (`append`), then the stack makes them part of what is held (`advance`).
"""

from collections.abc import Callable, Sequence
from typing import Self

import torch
from torch import Tensor

KeysValues = tuple[Tensor, Tensor]


class Cache:
    """The keys and values of the tokens so far, and those of the memory, computed once.

    Nothing that an unfinished step left behind is ever read: `advance` alone makes it count.
    """

    length: int | Tensor  # tokens held before this step: the slot of the next one

    def __init__(self) -> None:
        self.padded = False  # keep was given, so every further step must be told which keys are real
        self.given = False  # positions were given, so every further step must be told them
        self.placed = False  # positions are not the slots
        self._started = False  # a step has finished
        self._layers: dict[int, KeysValues] = {}
        self._memory: dict[int, KeysValues] = {}
        self._positions: Tensor | None = None

    def begin(self, n_new: int) -> int:
        """Start a step of n_new tokens: how many keys it will see."""
        raise NotImplementedError

    def append(self, layer: int, key: Tensor, value: Tensor) -> KeysValues:
        """Write new keys and values after those held; all of them come back."""
        raise NotImplementedError

    def key_positions(self, new: Tensor | None) -> Tensor | None:
        """The positions of the keys held and of the new ones: (Tk,) or (B, Tk); None while they are the slots."""
        return None if new is None else self._place(new)

    def _place(self, new: Tensor) -> Tensor:
        raise NotImplementedError

    def advance(self, n_new: int, key_positions: Tensor | None, *, padded: bool, given: bool) -> None:
        """Every layer has written: hold what was appended."""
        self.length += n_new
        self.padded, self.given, self.placed = padded, given, key_positions is not None
        self._started = True

    def memory(self, layer: int, compute: Callable[[], KeysValues]) -> KeysValues:
        """The keys and values of the encoder's output, computed at the first call."""
        if layer not in self._memory:
            self._memory[layer] = compute()
        return self._memory[layer]

    @property
    def layers(self) -> dict[int, KeysValues]:
        """What each layer holds; of a cache that grows, the first `length` slots."""
        return self._layers

    @property
    def memories(self) -> dict[int, KeysValues]:
        """The memory's keys and values in each layer that reads it."""
        return self._memory

    @property
    def holds_memory(self) -> bool:
        """Whether those were computed, in a step that finished."""
        return self._started and bool(self._memory)

    def reorder(self, rows: Tensor) -> None:
        """Row i goes on from what row rows[i] held. The memory stays."""
        self._layers = {
            layer: (self._chosen(key, rows), self._chosen(value, rows)) for layer, (key, value) in self._layers.items()
        }
        if self._positions is not None and one_for_each_row(self._positions):
            self._positions = self._positions.index_select(0, rows)

    def _chosen(self, held: Tensor, rows: Tensor) -> Tensor:
        return held.index_select(0, rows)

    def select(self, rows: Tensor, memory_rows: Tensor | None = None) -> None:
        """Keep these rows only, and these of the memory (the same unless given)."""
        check_memory_rows(self._layers.get(0), self._memory.get(0), memory_rows)
        Cache.reorder(self, rows)
        chosen = rows if memory_rows is None else memory_rows
        self._memory = {
            layer: (key.index_select(0, chosen), value.index_select(0, chosen))
            for layer, (key, value) in self._memory.items()
        }

    def join(self, other: Self) -> None:
        """The rows of another cache come after these, and its memory's after this one's. All end at the same slot."""
        raise ValueError("only caches that grow can be joined; use KVCache")

    def drop(self, n: int) -> None:
        """Forget the first n slots, which `keep` hides in every row."""
        raise ValueError("only a cache that grows can drop what it holds; use KVCache")


def check_memory_rows(held: Sequence[Tensor] | None, memory: Sequence[Tensor] | None, given: Tensor | None) -> None:
    """Rows that share the memory's rows (beams) must say which of those they keep."""
    if given is None and held and memory and held[0].shape[0] != memory[0].shape[0]:
        raise ValueError(
            f"{held[0].shape[0]} rows share {memory[0].shape[0]} rows of memory; give memory_rows, those to keep"
        )


def same_batch(held: Tensor, new: Tensor) -> None:
    """Refuse rows other than those held."""
    if held.shape[0] != new.shape[0]:
        raise ValueError(f"the cache holds {held.shape[0]} rows, but {new.shape[0]} come in; make a new one")


def stacked(above: Tensor, below: Tensor, dim: int, *, at_the_end: bool = False) -> Tensor:
    """The rows of two tensors as one, zeros after the shorter along `dim`, or before it."""
    longest = max(above.shape[dim], below.shape[dim])

    def padded(x: Tensor) -> Tensor:
        missing = longest - x.shape[dim]
        if not missing:
            return x
        fill = x.new_zeros(*x.shape[:dim], missing, *x.shape[dim + 1 :])
        return torch.cat([fill, x] if at_the_end else [x, fill], dim=dim)

    return torch.cat([padded(above), padded(below)])


def same_rows(held: Tensor, new: Tensor) -> tuple[Tensor, Tensor]:
    """Positions of one row for all spread beside those of a row each."""
    rows = torch.broadcast_shapes(held.shape[:-1], new.shape[:-1])
    return held.expand(*rows, -1), new.expand(*rows, -1)


def one_for_each_row(positions: Tensor) -> bool:
    """Whether the rows have positions of their own."""
    return positions.dim() == 2 and positions.shape[0] > 1


class KVCache(Cache):
    """Grows as needed. Room is doubled when it runs out, so a step does not copy what is held.

    With gradients on, keys and values are joined instead of written into place, so that one can
    differentiate through a cached prefix.
    """

    length: int

    def __init__(self) -> None:
        super().__init__()
        self.length = 0

    def begin(self, n_new: int) -> int:
        if not self._started:
            self._layers.clear()
            self._memory.clear()
        return self.length + n_new

    def append(self, layer: int, key: Tensor, value: Tensor) -> KeysValues:
        held_key, held_value = self._layers.get(layer, (None, None))
        total = self.length + key.shape[2]
        self._layers[layer] = key, value = self._join(held_key, key, total), self._join(held_value, value, total)
        return key[:, :, :total], value[:, :, :total]

    def _join(self, held: Tensor | None, new: Tensor, total: int) -> Tensor:
        """`new` written after the first `length` of `held`, or of a larger copy of it."""
        if held is None:
            return new
        same_batch(held, new)
        if torch.is_grad_enabled():
            return torch.cat([held[:, :, : self.length], new], dim=2)
        frozen = held.is_inference() and not torch.is_inference_mode_enabled()
        if held.shape[2] < total or frozen:
            batch, heads, _, width = held.shape
            room = new.new_empty(batch, heads, 2 * total, width)
            room[:, :, : self.length] = held[:, :, : self.length]
            held = room
        held[:, :, self.length : total] = new
        return held

    def _chosen(self, held: Tensor, rows: Tensor) -> Tensor:
        """Only what is held is copied, and the room after it stays."""
        if torch.is_grad_enabled():
            return held[:, :, : self.length].index_select(0, rows)
        copy = held.new_empty(len(rows), *held.shape[1:])
        torch.index_select(held[:, :, : self.length], 0, rows, out=copy[:, :, : self.length])
        return copy

    def join(self, other: Self) -> None:
        """The rows of another cache come after these. All end at the same slot, so the shorter begin later.

        Where the lengths differ, `keep` must say from now on which keys are real.
        """
        if not (self._started and other._started):
            raise ValueError("only caches that have finished a step can be joined")
        ragged = self.length != other.length or self.padded or other.padded
        if ragged or self.placed or other.placed:
            self._positions = stacked(self._places(), other._places(), 1, at_the_end=True)
        for layer, pair in other._layers.items():
            halves = zip(self._layers[layer], pair, strict=True)
            key, value = (
                stacked(held[:, :, : self.length], new[:, :, : other.length], 2, at_the_end=True)
                for held, new in halves
            )
            self._layers[layer] = key, value
        for layer, pair in other._memory.items():
            key, value = (stacked(held, new, 2) for held, new in zip(self._memory[layer], pair, strict=True))
            self._memory[layer] = key, value
        self.padded, self.placed = ragged, self._positions is not None
        self.length = max(self.length, other.length)

    def drop(self, n: int) -> None:
        """Forget the first n slots, which `keep` hides in every row."""
        self._layers = {layer: (key[:, :, n:], value[:, :, n:]) for layer, (key, value) in self._layers.items()}
        self._positions = None if self._positions is None else self._positions[..., n:]
        self.length -= n

    def _places(self) -> Tensor:
        """The position of every key held: (B, Tk)."""
        key, _ = self._layers[0]
        held = torch.arange(self.length, device=key.device) if self._positions is None else self._positions
        return held.expand(key.shape[0], -1)

    def _place(self, new: Tensor) -> Tensor:
        held = torch.arange(self.length, device=new.device) if self._positions is None else self._positions
        return torch.cat(same_rows(held, new), dim=-1)

    def advance(self, n_new: int, key_positions: Tensor | None, *, padded: bool, given: bool) -> None:
        super().advance(n_new, key_positions, padded=padded, given=given)
        self._positions = key_positions


class FixedKVCache(Cache):
    """Room for `capacity` tokens, in place from the first step, and its length on the device.

    Nothing about it changes shape or address, so a step that uses it can be captured and replayed.
    Keys not yet written are hidden by the causal mask. `keep`, where it is given, covers the capacity.
    What is written in place cannot be differentiated: use it under torch.no_grad().
    """

    length: Tensor

    def __init__(self, capacity: int, *, device: torch.device | str | None = None) -> None:
        super().__init__()
        if capacity < 1:
            raise ValueError(f"a cache needs room for at least one token: capacity is {capacity}")
        self.capacity = capacity
        self.length = torch.zeros((), dtype=torch.long, device=device)
        self._used = 0  # what the host saw; a replayed step does not pass here
        self._unfinished = False  # a step has written and not advanced

    def begin(self, n_new: int) -> int:
        if not self._started:
            self._memory.clear()
        if self._unfinished:
            self._forget_unfinished()
        if self._used + n_new > self.capacity:
            raise ValueError(
                f"the cache has room for {self.capacity} tokens and holds {self._used}; {n_new} more do not fit"
            )
        return self.capacity

    def append(self, layer: int, key: Tensor, value: Tensor) -> KeysValues:
        if torch.is_grad_enabled() and key.requires_grad:
            raise ValueError("a fixed cache is written in place, without gradients: use it under torch.no_grad()")
        if layer not in self._layers:
            batch, heads, _, width = key.shape
            shape = batch, heads, self.capacity, width
            self._layers[layer] = key.new_zeros(shape), value.new_zeros(shape)
        slots = self._slots(key.shape[2])
        self._unfinished = True
        for buffer, new in zip(self._layers[layer], (key, value), strict=True):
            same_batch(buffer, new)
            buffer.index_copy_(2, slots, new)
        return self._layers[layer]

    def _place(self, new: Tensor) -> Tensor:
        held = torch.arange(self.capacity, device=new.device) if self._positions is None else self._positions
        held, new = same_rows(held, new)
        if self._positions is None or held.shape != self._positions.shape:
            self._positions = held.clone()
        return self._positions.index_copy_(-1, self._slots(new.shape[-1]), new)

    def advance(self, n_new: int, key_positions: Tensor | None, *, padded: bool, given: bool) -> None:
        super().advance(n_new, key_positions, padded=padded, given=given)
        self._used += n_new
        self._unfinished = False
        if key_positions is None:
            self._forget_positions()

    def reorder(self, rows: Tensor) -> None:
        for buffer in self._buffers():
            if rows.numel() != buffer.shape[0]:
                raise ValueError(f"a fixed cache keeps its {buffer.shape[0]} rows when reordered; use select for fewer")
            buffer.copy_(buffer.index_select(0, rows))  # in place: a captured step knows only this address

    def reset(self) -> None:
        """Forget everything and keep the room."""
        for buffer in self._buffers():
            buffer.zero_()  # what is hidden is multiplied by zero, and zero times NaN is NaN
        self.length.zero_()
        self._used = 0
        self._memory.clear()
        self._forget_positions()
        self.padded = self.given = self.placed = self._started = self._unfinished = False

    def _forget_unfinished(self) -> None:
        """What a failed step has written is hidden by a weight of zero, and zero times NaN is NaN."""
        if not self._started:
            self._layers.clear()
        behind = torch.arange(self.capacity, device=self.length.device)[:, None] >= self.length
        for pair in self._layers.values():
            for buffer in pair:
                buffer.masked_fill_(behind, 0.0)

    def _forget_positions(self) -> None:
        """Back to the slots, in place."""
        if self._positions is not None:
            self._positions.copy_(torch.arange(self.capacity, device=self._positions.device))

    def _buffers(self) -> list[Tensor]:
        """Everything that has a row for each row of the batch."""
        buffers = [buffer for pair in self._layers.values() for buffer in pair]
        placed = self._positions is not None and one_for_each_row(self._positions)
        return [*buffers, self._positions] if placed and self._positions is not None else buffers

    def _slots(self, n_new: int) -> Tensor:
        return torch.arange(n_new, device=self.length.device) + self.length
