"""Key/value caches, so that a new token costs one step and not the whole prefix.

The caller owns the cache and passes it to every call. Keys and values have the shape (B, G, T, K): B batch,
G key/value heads, T tokens, K head width. A step writes its new keys in every layer (`append`); then the stack
makes them part of the cache (`advance`).
"""

from collections.abc import Callable, Sequence
from typing import Self

import torch
from torch import Tensor

KeysValues = tuple[Tensor, Tensor]


class Cache:
    """The keys and values of the tokens so far, and those of the memory, which are computed once.

    What an unfinished step has written is never read: only `advance` makes it part of the cache.
    """

    length: int | Tensor  # number of cached tokens: the slot of the next one

    def __init__(self) -> None:
        self.needs_keep = False  # keep was passed, so every further step needs it
        self.needs_positions = False  # positions were passed, so every further step needs them
        self.has_positions = False  # positions differ from the slots
        self._started = False  # at least one step has finished
        self.layers: dict[int, KeysValues] = {}  # in a growing cache, the first `length` slots are valid
        self.memories: dict[int, KeysValues] = {}  # of each layer with cross-attention
        self._positions: Tensor | None = None

    def begin(self, n_new: int) -> int:
        """Start a step of n_new tokens; return the number of keys it will see."""
        raise NotImplementedError

    def append(self, layer: int, key: Tensor, value: Tensor) -> KeysValues:
        """Write new keys and values after the cached ones, and return all of them."""
        raise NotImplementedError

    def key_positions(self, new: Tensor | None) -> Tensor | None:
        """Return the positions of cached and new keys, (Tk,) or (B, Tk); None while they are the slots."""
        return None if new is None else self._append_positions(new)

    def _append_positions(self, new: Tensor) -> Tensor:
        raise NotImplementedError

    def advance(self, n_new: int, key_positions: Tensor | None, *, needs_keep: bool, needs_positions: bool) -> None:
        """Make the appended keys part of the cache, after every layer has written them."""
        self.length += n_new
        self.needs_keep, self.needs_positions = needs_keep, needs_positions
        self.has_positions = key_positions is not None
        self._started = True

    def memory(self, layer: int, compute: Callable[[], KeysValues]) -> KeysValues:
        """Return the keys and values of the encoder output, which the first call computes."""
        if layer not in self.memories:
            self.memories[layer] = compute()
        return self.memories[layer]

    @property
    def holds_memory(self) -> bool:
        """True if a finished step has computed the keys and values of the memory."""
        return self._started and bool(self.memories)

    def reorder(self, rows: Tensor) -> None:
        """Replace row i by row rows[i], as beam search needs. The memory stays as it is."""
        self.layers = map_layers(self.layers, lambda cached: self._select_rows(cached, rows))
        if self._positions is not None and differ_by_row(self._positions):
            self._positions = self._positions.index_select(0, rows)

    def _select_rows(self, cached: Tensor, rows: Tensor) -> Tensor:
        return cached.index_select(0, rows)

    def select(self, rows: Tensor, memory_rows: Tensor | None = None) -> None:
        """Keep only these rows, and these rows of the memory (by default the same)."""
        check_memory_rows(self.layers.get(0), self.memories.get(0), memory_rows)
        Cache.reorder(self, rows)
        selected = rows if memory_rows is None else memory_rows
        self.memories = map_layers(self.memories, lambda cached: cached.index_select(0, selected))

    def join(self, other: Self) -> None:
        """Append the rows of another cache and of its memory. All rows end at the same slot."""
        raise ValueError("only growing caches can be joined; use KVCache")

    def drop(self, n: int) -> None:
        """Remove the first n slots, which `keep` must hide in every row."""
        raise ValueError("only a growing cache can remove slots; use KVCache")


def map_layers(layers: dict[int, KeysValues], function: Callable[[Tensor], Tensor]) -> dict[int, KeysValues]:
    """Apply a function to the keys and to the values of each layer."""
    return {layer: (function(key), function(value)) for layer, (key, value) in layers.items()}


def check_memory_rows(cached: Sequence[Tensor] | None, memory: Sequence[Tensor] | None, rows: Tensor | None) -> None:
    """Raise an error if beams share rows of the memory and `rows`, those of the memory to keep, are missing."""
    if rows is None and cached and memory and cached[0].shape[0] != memory[0].shape[0]:
        raise ValueError(
            f"{cached[0].shape[0]} rows share {memory[0].shape[0]} rows of memory; pass memory_rows, those to keep"
        )


def check_same_batch(cached: Tensor, new: Tensor) -> None:
    """Raise an error if the number of rows differs from that of the cache."""
    if cached.shape[0] != new.shape[0]:
        raise ValueError(f"the cache has {cached.shape[0]} rows, but the input has {new.shape[0]}; create a new cache")


def concat_rows(first: Tensor, second: Tensor, dim: int, *, at_the_end: bool = False) -> Tensor:
    """Concatenate the rows of two tensors; the shorter along `dim` gets zeros after it, or before it."""
    longest = max(first.shape[dim], second.shape[dim])

    def padded(x: Tensor) -> Tensor:
        missing = longest - x.shape[dim]
        if not missing:
            return x
        fill = x.new_zeros(*x.shape[:dim], missing, *x.shape[dim + 1 :])
        return torch.cat([fill, x] if at_the_end else [x, fill], dim=dim)

    return torch.cat([padded(first), padded(second)])


def broadcast_rows(cached: Tensor, new: Tensor) -> tuple[Tensor, Tensor]:
    """Expand two tensors of positions, (T,) or (B, T) each, to the same number of rows."""
    rows = torch.broadcast_shapes(cached.shape[:-1], new.shape[:-1])
    return cached.expand(*rows, -1), new.expand(*rows, -1)


def differ_by_row(positions: Tensor) -> bool:
    """Return True if the rows have different positions."""
    return positions.dim() == 2 and positions.shape[0] > 1


class KVCache(Cache):
    """A cache that grows. Its capacity is doubled when it is full, so most steps copy nothing.

    With gradients enabled, keys and values are concatenated instead of written in place, so that a cached prefix can
    be differentiated.
    """

    length: int

    def __init__(self) -> None:
        super().__init__()
        self.length = 0

    def begin(self, n_new: int) -> int:
        if not self._started:
            self.layers.clear()
            self.memories.clear()
        return self.length + n_new

    def append(self, layer: int, key: Tensor, value: Tensor) -> KeysValues:
        cached_key, cached_value = self.layers.get(layer, (None, None))
        total = self.length + key.shape[2]
        self.layers[layer] = key, value = self._write(cached_key, key, total), self._write(cached_value, value, total)
        return key[:, :, :total], value[:, :, :total]

    def _write(self, cached: Tensor | None, new: Tensor, total: int) -> Tensor:
        """Write `new` after the first `length` slots of `cached`, or of a larger copy of it."""
        if cached is None:
            return new
        check_same_batch(cached, new)
        if torch.is_grad_enabled():
            return torch.cat([cached[:, :, : self.length], new], dim=2)
        frozen = cached.is_inference() and not torch.is_inference_mode_enabled()
        if cached.shape[2] < total or frozen:
            batch, heads, _, width = cached.shape
            larger = new.new_empty(batch, heads, 2 * total, width)
            larger[:, :, : self.length] = cached[:, :, : self.length]
            cached = larger
        cached[:, :, self.length : total] = new
        return cached

    def _select_rows(self, cached: Tensor, rows: Tensor) -> Tensor:
        """Copy only the valid slots, and keep the capacity."""
        if torch.is_grad_enabled():
            return cached[:, :, : self.length].index_select(0, rows)
        copy = cached.new_empty(len(rows), *cached.shape[1:])
        torch.index_select(cached[:, :, : self.length], 0, rows, out=copy[:, :, : self.length])
        return copy

    def join(self, other: Self) -> None:
        """Append the rows of another cache. All rows end at the same slot, so shorter ones begin later.

        If the lengths differ, every further step needs `keep`, which marks the real keys.
        """
        if not (self._started and other._started):
            raise ValueError("only caches that have finished a step can be joined")
        ragged = self.length != other.length or self.needs_keep or other.needs_keep
        if ragged or self.has_positions or other.has_positions:
            self._positions = concat_rows(self._stored_positions(), other._stored_positions(), 1, at_the_end=True)
        for layer, pair in other.layers.items():
            key, value = (
                concat_rows(mine[:, :, : self.length], new[:, :, : other.length], 2, at_the_end=True)
                for mine, new in zip(self.layers[layer], pair, strict=True)
            )
            self.layers[layer] = key, value
        for layer, pair in other.memories.items():
            key, value = (concat_rows(mine, new, 2) for mine, new in zip(self.memories[layer], pair, strict=True))
            self.memories[layer] = key, value
        self.needs_keep, self.has_positions = ragged, self._positions is not None
        self.length = max(self.length, other.length)

    def drop(self, n: int) -> None:
        """Remove the first n slots, which `keep` must hide in every row."""
        self.layers = map_layers(self.layers, lambda cached: cached[:, :, n:])
        self._positions = None if self._positions is None else self._positions[..., n:]
        self.length -= n

    def _stored_positions(self) -> Tensor:
        """Return the position of every cached key: (B, Tk)."""
        key, _ = self.layers[0]
        stored = torch.arange(self.length, device=key.device) if self._positions is None else self._positions
        return stored.expand(key.shape[0], -1)

    def _append_positions(self, new: Tensor) -> Tensor:
        stored = torch.arange(self.length, device=new.device) if self._positions is None else self._positions
        return torch.cat(broadcast_rows(stored, new), dim=-1)

    def advance(self, n_new: int, key_positions: Tensor | None, *, needs_keep: bool, needs_positions: bool) -> None:
        super().advance(n_new, key_positions, needs_keep=needs_keep, needs_positions=needs_positions)
        self._positions = key_positions


class FixedKVCache(Cache):
    """A cache for `capacity` tokens that is allocated at the first step, with its length on the device.

    Its tensors never change shape or address, so a step that uses it can be captured and replayed. The causal mask
    hides keys that are not written yet. `keep`, if passed, covers the whole capacity. Writes are in place and cannot
    be differentiated: use it under torch.no_grad().
    """

    length: Tensor

    def __init__(self, capacity: int, *, device: torch.device | str | None = None) -> None:
        super().__init__()
        if capacity < 1:
            raise ValueError(f"the capacity of a cache must be at least 1, not {capacity}")
        self.capacity = capacity
        self.length = torch.zeros((), dtype=torch.long, device=device)
        self._used = 0  # the length as the host knows it; a replayed step does not change it
        self._unfinished = False  # a step has written but not advanced

    def begin(self, n_new: int) -> int:
        if not self._started:
            self.memories.clear()
        if self._unfinished and not self._started:
            self.layers.clear()
        elif self._unfinished:  # clear what a failed step wrote: hidden keys weigh zero, and zero times NaN is NaN
            behind = torch.arange(self.capacity, device=self.length.device)[:, None] >= self.length
            map_layers(self.layers, lambda buffer: buffer.masked_fill_(behind, 0.0))
        if self._used + n_new > self.capacity:
            raise ValueError(
                f"the cache has a capacity of {self.capacity} tokens and holds {self._used}; {n_new} more do not fit"
            )
        return self.capacity

    def append(self, layer: int, key: Tensor, value: Tensor) -> KeysValues:
        if torch.is_grad_enabled() and key.requires_grad:
            raise ValueError("a fixed cache is written in place and has no gradients; use it under torch.no_grad()")
        if layer not in self.layers:
            batch, heads, _, width = key.shape
            shape = batch, heads, self.capacity, width
            self.layers[layer] = key.new_zeros(shape), value.new_zeros(shape)
        slots = self._slots(key.shape[2])
        self._unfinished = True
        for buffer, new in zip(self.layers[layer], (key, value), strict=True):
            check_same_batch(buffer, new)
            buffer.index_copy_(2, slots, new)
        return self.layers[layer]

    def _append_positions(self, new: Tensor) -> Tensor:
        stored = torch.arange(self.capacity, device=new.device) if self._positions is None else self._positions
        stored, new = broadcast_rows(stored, new)
        if self._positions is None or stored.shape != self._positions.shape:
            self._positions = stored.clone()
        return self._positions.index_copy_(-1, self._slots(new.shape[-1]), new)

    def advance(self, n_new: int, key_positions: Tensor | None, *, needs_keep: bool, needs_positions: bool) -> None:
        super().advance(n_new, key_positions, needs_keep=needs_keep, needs_positions=needs_positions)
        self._used += n_new
        self._unfinished = False
        if key_positions is None:
            self._reset_positions()

    def reorder(self, rows: Tensor) -> None:
        for buffer in self._buffers():
            if rows.numel() != buffer.shape[0]:
                raise ValueError(f"reordering keeps the {buffer.shape[0]} rows of a fixed cache; use select for fewer")
            buffer.copy_(buffer.index_select(0, rows))  # in place: a captured step reads this address

    def reset(self) -> None:
        """Empty the cache and keep its memory allocated."""
        for buffer in self._buffers():
            buffer.zero_()  # hidden keys have the weight zero, and zero times NaN is NaN
        self.length.zero_()
        self._used = 0
        self.memories.clear()
        self._reset_positions()
        self.needs_keep = self.needs_positions = self.has_positions = self._started = self._unfinished = False

    def _reset_positions(self) -> None:
        """Set the positions back to the slots, in place."""
        if self._positions is not None:
            self._positions.copy_(torch.arange(self.capacity, device=self._positions.device))

    def _buffers(self) -> list[Tensor]:
        """Return all tensors that have a row per batch row."""
        buffers = [buffer for pair in self.layers.values() for buffer in pair]
        if self._positions is not None and differ_by_row(self._positions):
            buffers.append(self._positions)
        return buffers

    def _slots(self, n_new: int) -> Tensor:
        return torch.arange(n_new, device=self.length.device) + self.length
