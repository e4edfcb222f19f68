"""SIGTERM and SIGINT: the first is noticed and the run saves itself; a second one ends the process at once.

Several processes may get a signal twice, from the system and from whoever started them: that counts as one.
"""

import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Self, TypeVar

from .parallel import world

NOTICED = (signal.SIGTERM, signal.SIGINT)

ECHO = 5.0  # seconds in which several processes may get the same signal again

T = TypeVar("T")


class _BrokenOffError(Exception):
    """Thrown into work that may be left undone."""


class Signals:
    """While entered, `caught` is the signal that asked the run to end. Outside the main thread it never is."""

    def __init__(self) -> None:
        self.caught: signal.Signals | None = None
        self._before: dict[signal.Signals, Any] = {}
        self._when = 0.0
        self._may_break_off = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._notice) for number in NOTICED}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def until_caught(self, work: Callable[[], T]) -> T | None:
        """What `work`, which may be left undone, gives; None where a signal came: it ends there and then."""
        if self.caught is not None:
            return None
        self._may_break_off = True
        try:
            result = work()
            self._may_break_off = False
            return result
        except _BrokenOffError:
            return None
        finally:
            self._may_break_off = False

    def _notice(self, number: int, frame: FrameType | None) -> None:
        if self.caught is not None:
            if world().size > 1 and time.monotonic() - self._when < ECHO:
                return
            os._exit(exit_code(number))
        self.caught, self._when = signal.Signals(number), time.monotonic()
        if self._may_break_off:
            raise _BrokenOffError


def exit_code(number: int) -> int:
    """What a shell expects of a process that a signal ended: 143 for SIGTERM, 130 for SIGINT."""
    return 128 + number
