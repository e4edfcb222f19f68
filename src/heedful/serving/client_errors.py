"""Counts the requests of each client that were refused as invalid; a client with too many is refused cheaply.

To read and check a hostile body costs more than to answer some good requests. A client, which is an API key or an
address, may have a limited number of invalid requests in a second. After that, its requests are refused unread for a
while, as long as more than a few requests are open.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

MAX_ERRORS = 64  # of a client in a period
PERIOD = 1.0  # seconds
PENALTY = 5.0  # seconds for which a client is refused
MAX_CLIENTS = 10_000  # that are counted; with more, counting begins anew


class ClientErrors:
    """The numbers of invalid requests in this period, by client.

    Args:
        clock: Returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._period_end = 0.0
        self._counts = Counter[str]()
        self._refused_until: dict[str, float] = {}

    def __bool__(self) -> bool:
        """Return whether some client may have had too many."""
        return bool(self._refused_until)

    def add(self, client: str) -> None:
        """Count an invalid request of a client."""
        now = self._clock()
        if now >= self._period_end or len(self._counts) > MAX_CLIENTS:
            self._period_end = now + PERIOD
            self._counts.clear()
        self._counts[client] += 1
        if self._counts[client] >= MAX_ERRORS:
            self._refused_until[client] = now + PENALTY

    def has_exceeded(self, client: str) -> bool:
        """Return whether a client has had too many, not long ago."""
        until = self._refused_until.get(client)
        if until is not None and self._clock() >= until:
            del self._refused_until[client]
            until = None
        return until is not None
