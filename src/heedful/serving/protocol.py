"""HTTP by uvicorn and h11, for clients that are in no hurry, or too many.

The guards see a body arrive. Of a head that does not, of a body that nobody waits for any more, and of an answer that
is never read, only the connection knows.
"""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from .settings import Settings

MAX_HEAD = 16_384  # bytes of a request line and its headers
GRACE = 2.0  # seconds that the guards, which can say what is wrong, have before a connection is cut


class Punctual(H11Protocol):
    """Cuts connections whose request does not arrive in time, and refuses those that are too many."""

    def __init__(self, *given: Any, settings: Settings, **named: Any) -> None:
        super().__init__(*given, **named)
        self._settings = settings
        self._limit: asyncio.TimerHandle | None = None

    @classmethod
    def of(cls, settings: Settings) -> Any:
        """The class, as uvicorn takes it."""
        return partial(cls, settings=settings)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        if len(self.connections) > self._settings.max_connections:
            transport.write(answer(503, "there are too many connections; try again soon", "Retry-After: 1"))
            transport.close()
        self._limited(self._settings.receive_seconds)

    def data_received(self, data: bytes) -> None:
        if self._limit is None:  # the first of a request
            self._limited(self._settings.receive_seconds)
        before = self.cycle
        super().data_received(data)
        if self._arrived():
            self._limited(None)
        elif self.cycle is not before:  # its head is here
            self._limited(self._settings.receive_seconds + GRACE)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._until_read()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._until_read()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._limited(self._settings.seconds + GRACE)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._limited(None)

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._limited(None)

    def _arrived(self) -> bool:
        """Whether nothing of a request is outstanding."""
        if self.conn.their_state is h11.IDLE:
            return not self.conn.trailing_data[0]
        return self.conn.their_state is not h11.SEND_BODY

    def _until_read(self) -> None:
        """A connection that is closed still waits until the last of its answer has been read, if need be for ever."""
        if self.transport.is_closing():
            self._limited(self._settings.receive_seconds)

    def _limited(self, seconds: float | None) -> None:
        """Cut the connection after so long, unless it is told otherwise before."""
        if self._limit is not None:
            self._limit.cancel()
        self._limit = None if seconds is None else self.loop.call_later(seconds, self._cut)

    def _cut(self) -> None:
        half_a_head = self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]
        if half_a_head and not self.transport.is_closing():
            self.transport.write(answer(408, "the request did not arrive in time"))
            self.transport.close()
            self._limited(GRACE)
        else:
            self.transport.abort()


def answer(status: int, message: str, *headers: str) -> bytes:
    """One to a connection that has no request yet."""
    body = json.dumps({"error": message})
    words = {408: "Request Timeout", 503: "Service Unavailable"}
    lines = [
        f"HTTP/1.1 {status} {words[status]}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *headers,
    ]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()
