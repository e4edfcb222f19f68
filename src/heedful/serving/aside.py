"""Work on what was sent that is not the model's: reading texts, spelling answers, decoding images."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

LITTLE = 1000  # characters, which take less time than the way to another thread and back


async def aside(size: int, work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Do it in a thread, so that nobody waits for it; or here, where there is little of it."""
    return work(*given, **named) if size <= LITTLE else await asyncio.to_thread(work, *given, **named)
