"""What a decoder keeps from step to step, so that a new token costs one step and not the whole prefix.

The caller owns the cache and hands it to every call. It is addressed by layer index. Keys and values
have the shape (B, G, T, K): B batch, G key/value heads, T tokens, K head width. A step writes its new
keys in every layer (`append`), then the stack makes them part of what is held (`advance`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, Self

import torch
from torch import Tensor

KeysValues = tuple[Tensor, Tensor]


class State(Protocol):
    """What any decoder keeps, a recurrent one too: enough for whoever searches over its outputs."""

    @property
    def length(self) -> int | Tensor:
        """Tokens held before this step: the slot of the next one."""

    def reorder(self, rows: Tensor) -> None:
        """Row i goes on from what row rows[i] held (beam search). The memory stays."""

    def select(self, rows: Tensor, memory_rows: Tensor | None = None) -> None:
        """Keep these rows only, and these of the memory (the same unless given)."""

    def join(self, other: Self) -> None:
        """The rows of another one come after these, and its memory's after this one's. All end at the same slot."""

    def drop(self, n: int) -> None:
        """Forget the first n slots, which `keep` hides in every row."""


class Cache:
    """The keys and values of the tokens so far, and those of the memory, computed once.

    Nothing that an unfinished step left behind is ever read: `advance` alone makes it count.
    """

    length: int | Tensor

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
        """The rows of another cache come after these."""
        raise ValueError("only caches that grow can be joined; use KVCache")

    def drop(self, n: int) -> None:
        """Forget the first n slots."""
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
