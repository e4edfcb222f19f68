"""Memory that is freed stays with the process: what a step needs, the next one needs again."""

from __future__ import annotations

import ctypes
import sys

TRIM, PAD, MAP = -1, -2, -3  # as malloc.h numbers them
MIB = 1 << 20


def keep_memory() -> None:
    """Give back only what is free beyond 256 MiB.

    Left to itself, the C library gives large blocks back when they are free, and the system clears them, page by page,
    when they are asked for again: 1 to 5 % of what writing with a beam costs. Where there is no such library, nothing
    happens.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(MAP, 32 * MIB)  # smaller blocks come out of what is kept
        mallopt(TRIM, 256 * MIB)
        mallopt(PAD, 64 * MIB)  # what a thread has comes in heaps of so much; an empty one stays, too
