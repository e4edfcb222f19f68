"""What the host learns of a step, a few steps later and without waiting for the device."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class StepValues:
    """Of one step: its loss sums, how many they are over, the norm of the gradient, and the batches it came from."""

    step: int
    epoch: int
    batches: Iterable[Any]
    total: float
    plain: float
    n: float
    norm: float
    finite: bool


class Arrivals:
    """A ring of steps whose values are on their way to the host. It knows their batches, to name the input."""

    def __init__(self, room: int = 8) -> None:
        self.room = room
        self._coming: deque[tuple[int, int, Iterable[Any], Tensor, torch.cuda.Event | None]] = deque()

    def put(self, step: int, epoch: int, batches: Iterable[Any], values: Tensor) -> None:
        """Send a step's values (total, plain, n, norm, finite) on their way."""
        copy = values.to("cpu", non_blocking=True, copy=True)  # from a GPU: into pinned memory
        arrived = torch.cuda.Event() if values.is_cuda else None
        if arrived is not None:
            arrived.record()
        self._coming.append((step, epoch, batches, copy, arrived))

    def take(self, *, wait: bool = False) -> Iterator[StepValues]:
        """The steps that have arrived, in order; all of them with `wait`. More than `room` never stay behind."""
        while self._coming:
            step, epoch, batches, copy, arrived = self._coming[0]
            if arrived is not None and not arrived.query():
                if not wait and len(self._coming) <= self.room:
                    return
                arrived.synchronize()
            self._coming.popleft()
            total, plain, n, norm, finite = copy.tolist()
            yield StepValues(step, epoch, batches, total, plain, n, norm, bool(finite))
