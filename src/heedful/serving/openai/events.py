"""Server-sent events: what is sent while it is written."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from fastapi import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from ..leaving import LEFT, while_here
from ..refusals import Json, Refusal, as_refusal, response
from .completions import Completions
from .replies import Completion

INTERNAL = Refusal(500, "internal error")


class Events(StreamingResponse):
    """The first event, which is there, and the rest. It lets go of the model as soon as its client leaves."""

    media_type = "text/event-stream"

    def __init__(self, first: bytes, rest: AsyncGenerator[bytes, None]) -> None:
        super().__init__(_after(first, rest), headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})
        self._rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await while_here(Request(scope, receive), self.stream_response(send))
        except Refusal as refusal:
            if refusal.status != LEFT:
                raise
        finally:
            await self._rest.aclose()


async def events(request: Request, completions: Completions, *, usage: bool) -> Events:
    """The response; what is refused before the first event is refused by its status."""
    lines = _lines(request.url.path, completions, usage=usage)
    try:
        return Events(await while_here(request, anext(lines)), lines)
    except BaseException:
        await lines.aclose()
        raise


async def _lines(path: str, completions: Completions, *, usage: bool) -> AsyncGenerator[bytes, None]:
    begun = False
    try:
        async with aclosing(completions.events()) as found:
            async for event in found:
                yield _line(event, usage=usage)
                begun = True
    except Exception as error:
        if not begun:
            raise
        refusal = as_refusal(error)
        yield _data(bytes(response(path, refusal or INTERNAL).body))
        if refusal is None:
            raise
        return
    if usage:
        yield _line(completions.last(), usage=True)
    yield _data(b"[DONE]")


def _line(event: Completion, *, usage: bool) -> bytes:
    """Where the usage is asked for, every event has the field, and all but the last have null."""
    return _data(bytes(Json(event.model_dump(exclude=None if usage else {"usage"})).body))


def _data(content: bytes) -> bytes:
    return b"data: " + content + b"\n\n"


async def _after(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for event in rest:
        yield event
