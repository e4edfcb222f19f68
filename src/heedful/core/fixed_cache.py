"""A cache whose shapes and addresses never change, so that a step which uses it can be captured and replayed."""

from __future__ import annotations

import torch
from torch import Tensor

from .cache import Cache, KeysValues, one_for_each_row, same_batch, same_rows


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
