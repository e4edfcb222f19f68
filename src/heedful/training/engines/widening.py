"""Gradients in bf16, brought to where the weights keep them in float32: in one launch, where a step is recorded.

The addresses come from a table on the device. Nothing can be brought there while a step is recorded, and what is made
then lies in the graph's own memory, which earlier parts of the step write into; so there is room for the table before,
and it is filled afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from ..kernels import over_tables


class Widening:
    """Of gradients which have the same sizes in every step."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._size: tuple[int, ...] | None = None  # of a table, once there was one
        self._room: Tensor | None = None  # while a step is recorded
        self._promised: Tensor | None = None

    @contextmanager
    def recorded(self) -> Iterator[Tensor | None]:
        """Around the recording of a step. What it gives is to be kept as long as the graph."""
        if self._size is not None:
            self._room = torch.empty(self._size, dtype=torch.int64, device=self.device)
        try:
            yield self._room
            if self._room is not None and self._promised is not None:
                self._room.copy_(self._promised.pin_memory(), non_blocking=True)
        finally:
            self._room = self._promised = None

    def __call__(self, given: Sequence[Tensor], have: Sequence[Tensor]) -> bool:
        """Copy what is given, if that can be done in this way. The first time is before any recording, during which no
        kernel can be loaded."""
        if not given or not all(map(_is_plain, given)) or not all(map(over_tables, have)):
            return False
        from ..kernels.many import Table, widen_to_float32

        if torch.cuda.is_current_stream_capturing():
            if self._room is None:
                return False
            table, promised = Table.promised(self._room, given, have)
            if promised.shape != self._room.shape:  # a weight has no gradient in this step
                return False
            self._promised = promised
        elif self._size is None:
            table = Table.of(given, have)
            self._size = tuple(table.rows.shape)
        else:
            return False
        widen_to_float32(table)
        return True


def _is_plain(gradient: Tensor) -> bool:
    return gradient.dtype == torch.bfloat16 and gradient.is_contiguous()
