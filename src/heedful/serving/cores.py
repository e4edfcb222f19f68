"""The processor's cores, shared evenly by the models that are at work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import torch


class Cores:
    """Threads of torch's, so many in all: more of them than cores would wait for each other, and burn time doing so."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._at_work = 0
        self._lock = Lock()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """While this thread has something to compute."""
        with self._lock:
            self._at_work += 1
        try:
            yield
        finally:
            with self._lock:
                self._at_work -= 1

    def take(self) -> None:
        """This thread's share, as things stand."""
        torch.set_num_threads(max(1, self.total // max(1, self._at_work)))


CORES = Cores(torch.get_num_threads())
