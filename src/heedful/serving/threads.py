"""Runs what needs no model in a few threads beside the event loop, at a lower priority."""

import asyncio
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import get_native_id
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

NICENESS = 10  # relative to the event loop's thread
SHORT_WORK = 1000  # characters that take less time to process than to send to another thread


def lower_priority() -> None:
    """Raise this thread's niceness, so that the event loop's thread runs first. Only Linux has it for each thread."""
    if sys.platform == "linux":
        thread = get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, min(19, os.getpriority(os.PRIO_PROCESS, thread) + NICENESS))


# Python runs one thread at a time, so more threads would only make the event loop wait longer for its turn.
_executor = ThreadPoolExecutor(2, "text processing", initializer=lower_priority)
parser = ThreadPoolExecutor(1, "body parser", initializer=lower_priority)  # what it parses at once is limited


async def run_in_thread(size: int | None, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function that needs no model: in a thread, or directly if it processes few characters (`size`)."""
    if size is not None and size <= SHORT_WORK:
        return work(*args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_executor, partial(work, *args, **kwargs))
