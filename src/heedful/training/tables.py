"""Tables of numbers on the device, addresses most of all, for kernels over many tensors.

Nothing can be brought to the device while a step is recorded, and what is made then lies in the graph's own memory,
which earlier parts of the step write into; so there is room for the tables before, and they are filled afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


class Tables:
    """Of one pass after another, which are begun. A pass of some shapes has run as it comes before it is recorded."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._used = self._most = 0  # numbers in the tables of this pass, and of the one that had most
        self._room: Tensor | None = None  # while a step is recorded
        self._promised: list[Tensor] = []

    def begin(self) -> None:
        """Before every pass."""
        self._used = 0

    @contextmanager
    def recorded(self) -> Iterator[Tensor]:
        """Around the recording of a step. What it gives is to be kept as long as the graph."""
        self.begin()
        self._room = room = torch.empty(self._most, dtype=torch.int64, device=self.device)
        try:
            yield room
            if self._promised:
                whole = torch.cat(self._promised)
                room[: len(whole)].copy_(whole.pin_memory(), non_blocking=True)
        finally:
            self._room, self._promised = None, []

    def put(self, rows: list[list[int]]) -> Tensor | None:
        """Rows of the same length; None where a step is recorded that needs more room than any that has run."""
        given = torch.tensor(rows)
        assert given.numel() % 2 == 0  # so that the next table begins at 16 bytes, too, for which kernels are compiled
        begin, end = self._used, self._used + given.numel()
        if not torch.cuda.is_current_stream_capturing():
            self._used, self._most = end, max(end, self._most)
            return given.pin_memory().to(self.device, non_blocking=True)
        if self._room is None or end > len(self._room):
            return None
        self._used = end
        self._promised.append(given.flatten())
        return self._room[begin:end].view(given.shape)
