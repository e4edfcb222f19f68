"""The processor's cores, shared evenly by the models that are at work."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from threading import Lock, get_native_id

import torch

NICER = 10  # than the thread that answers the door


class Cores:
    """Threads of torch's: a model at work has as many as any other, and divides them among its hands.

    More of them than cores would wait for each other, and burn time doing so.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self._at_work: Counter[Hashable] = Counter()  # hands, by whose they are
        self._lock = Lock()

    @contextmanager
    def at_work(self, owner: Hashable) -> Iterator[None]:
        """While this thread, a hand of the owner's, has something to compute."""
        with self._lock:
            self._at_work[owner] += 1
        try:
            yield
        finally:
            with self._lock:
                self._at_work[owner] -= 1
                self._at_work += Counter()  # who has none at work is not counted

    def take(self, owner: Hashable, *, alone: bool = False) -> None:
        """This thread's share, as things stand; the owner's whole share where its other hands must wait."""
        with self._lock:
            hands = 1 if alone else max(1, self._at_work[owner])
            share = self.total // max(1, len(self._at_work))
        torch.set_num_threads(max(1, share // hands))


CORES = Cores(torch.get_num_threads())


def give_way() -> None:
    """Let this thread compute only where the one that answers the door has nothing to do: of all that wait for a core,
    the system lets the nicer wait longer. Linux alone knows a thread's own niceness."""
    if sys.platform == "linux":
        own = get_native_id()
        os.setpriority(os.PRIO_PROCESS, own, min(19, os.getpriority(os.PRIO_PROCESS, own) + NICER))
