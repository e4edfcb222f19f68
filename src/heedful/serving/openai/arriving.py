"""What arrives bit by bit: of several side by side, or as much as is there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import TypeVar

T = TypeVar("T")


async def merged(sources: Sequence[AsyncGenerator[T, None]]) -> AsyncGenerator[tuple[int, T], None]:
    """What several give, with the place of who gave it, as it comes. The first that fails ends them all."""
    arrived: asyncio.Queue[tuple[int, T | Exception | None]] = asyncio.Queue(len(sources))

    async def carry(index: int, source: AsyncGenerator[T, None]) -> None:
        try:
            async with aclosing(source):
                async for found in source:
                    await arrived.put((index, found))
            await arrived.put((index, None))
        except Exception as error:
            await arrived.put((index, error))

    carriers = [asyncio.create_task(carry(index, source)) for index, source in enumerate(sources)]
    going = len(carriers)
    try:
        while going:
            index, found = await arrived.get()
            if isinstance(found, Exception):
                raise found
            if found is None:
                going -= 1
            else:
                yield index, found
    finally:
        for carrier in carriers:
            carrier.cancel()
        await asyncio.gather(*carriers, return_exceptions=True)


async def gathered(source: AsyncIterator[T]) -> AsyncGenerator[list[T], None]:
    """All that came while the last ones were being dealt with, together."""
    came: list[T] = []
    bell = asyncio.Event()

    async def carry() -> None:
        try:
            async for found in source:
                came.append(found)
                bell.set()
        finally:
            bell.set()

    carrier = asyncio.create_task(carry())
    try:
        while came or not carrier.done():
            await bell.wait()
            bell.clear()
            batch, came[:] = came[:], []
            if batch:
                yield batch
        await carrier
    finally:
        carrier.cancel()
        await asyncio.gather(carrier, return_exceptions=True)
