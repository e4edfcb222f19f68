"""The time a run takes, over all its resumptions, and how fast it goes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Clock:
    """`ran_out` changes only with `tick`, so that all decisions between two steps see the same."""

    def __init__(self, seconds: float, step: int, *, limit: float = 0.0) -> None:
        self._start = time.monotonic() - seconds
        self._since = seconds, step  # where this process came in
        self._limit = limit
        self._lap, self._tokens = seconds, 0.0
        self.ran_out = 0 < limit <= seconds

    @property
    def now(self) -> float:
        """Seconds of the run so far."""
        return time.monotonic() - self._start

    def tick(self) -> None:
        """Look whether the time is over."""
        self.ran_out = 0 < self._limit <= self.now

    def count(self, tokens: float) -> None:
        """Tokens were trained on."""
        self._tokens += tokens

    def lap(self) -> float:
        """Tokens a second since the last time this was asked."""
        now = self.now
        speed = self._tokens / max(now - self._lap, 1e-9)
        self._lap, self._tokens = now, 0.0
        return speed

    @contextmanager
    def paused(self) -> Iterator[None]:
        """What happens inside does not slow the lap."""
        began = self.now
        try:
            yield
        finally:
            self._lap += self.now - began

    def left(self, step: int, total: int) -> float:
        """Seconds to go, at the speed since this process came in."""
        seconds, first = self._since
        steps_left = (total - step) * (self.now - seconds) / max(step - first, 1)
        return min(steps_left, max(self._limit - self.now, 0.0)) if self._limit else steps_left
