"""Work that ends when nobody waits for it any more."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from fastapi import Request

from .refusals import Refusal

T = TypeVar("T")

LEFT = 499  # for the log: no client sees it


async def while_here(request: Request, work: Awaitable[T]) -> T:
    """What the work gives; it is cancelled when the client leaves, or the request's time is over.

    Call it once the body has been read.
    """
    doing = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait({doing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise Refusal(LEFT, "the client has left")
        return doing.result()
    finally:
        doing.cancel()
        leaving.cancel()
        await asyncio.gather(doing, leaving, return_exceptions=True)  # its place is free before the next is let in


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
