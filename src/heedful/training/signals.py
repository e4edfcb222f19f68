"""SIGTERM and SIGINT: after the first one the run saves itself and ends; a second one ends the process at once.

Of several processes, each may get a signal twice, from the system and from their parent process: that counts as one.
"""

import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Self, TypeVar

from .parallel import world

HANDLED = (signal.SIGTERM, signal.SIGINT)

ECHO_SECONDS = 5.0  # in which several processes may get the same signal again

T = TypeVar("T")


class _InterruptedWorkError(Exception):
    """Raised by the signal handler to interrupt work that may stay unfinished."""


class Signals:
    """A context in which `caught` is the signal that ends the run. It handles signals only in the main thread."""

    def __init__(self) -> None:
        self.caught: signal.Signals | None = None
        self._previous_handlers: dict[signal.Signals, Any] = {}
        self._caught_at = 0.0
        self._may_interrupt = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._previous_handlers = {number: signal.signal(number, self._handle) for number in HANDLED}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous_handlers.items():
            signal.signal(number, handler)

    def until_caught(self, work: Callable[[], T]) -> T | None:
        """Return the result of `work`, or None if a signal came, which interrupts the work at once."""
        if self.caught is not None:
            return None
        self._may_interrupt = True
        try:
            result = work()
            self._may_interrupt = False
            return result
        except _InterruptedWorkError:
            return None
        finally:
            self._may_interrupt = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.caught is not None:
            if world().size > 1 and time.monotonic() - self._caught_at < ECHO_SECONDS:
                return
            os._exit(exit_code(number))
        self.caught, self._caught_at = signal.Signals(number), time.monotonic()
        if self._may_interrupt:
            raise _InterruptedWorkError


def exit_code(number: int) -> int:
    """Return the exit code of a process that a signal ended: 143 for SIGTERM, 130 for SIGINT."""
    return 128 + number
