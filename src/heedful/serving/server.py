"""uvicorn around the app: sockets, signals, an end within seconds; and connections that are slow, or too many.

The admission middleware sees a body arrive. Of a head that does not, of a body that nobody waits for any more, and of
an answer that is never read, only the connection knows.
"""

import asyncio
import errno
import gc
import json
import os
import socket
import sys
import threading
from functools import partial
from http import HTTPStatus
from types import FrameType
from typing import Any, cast

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..errors import HeedfulError
from . import request_log
from .settings import Settings
from .state import ServerState

MAX_HEAD = 16_384  # bytes of a request line and its headers
GRACE = 2.0  # seconds that the middleware, which can say what is wrong, have before a connection is cut


class TimeoutProtocol(H11Protocol):
    """Cuts connections whose request does not arrive in time, and refuses those that are too many."""

    def __init__(self, *args: Any, settings: Settings, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._settings = settings
        self._limit: asyncio.TimerHandle | None = None

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
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *headers,
    ]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


REASONS = {
    errno.EADDRINUSE: "the port is in use; choose another with --port, or 0 for any that is free",
    errno.EACCES: "this user may not listen there; choose a port from 1024 on with --port",
    errno.EADDRNOTAVAIL: "this machine has no such address; 127.0.0.1 is itself alone, 0.0.0.0 all it has",
}

LAST = 2.0  # seconds after the drain in which everything else must end
OTHER_FILES = 256
TURN = 0.0005  # seconds of Python before a model's thread lets another one go on


class ListenError(HeedfulError, OSError):
    """A place where the server cannot listen, and why."""


def listen(settings: Settings) -> socket.socket:
    """A socket at the place that was asked for; connections wait in it until the server has started."""
    host, port = settings.host, settings.port
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise ListenError(f"cannot listen at {host!r}: {getattr(error, 'strerror', None) or error}") from None
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(settings.max_connections)
    except OSError as error:
        listener.close()
        reason = REASONS.get(error.errno or 0, error.strerror)
        raise ListenError(f"cannot listen at {host}, port {port}: {reason}") from None
    return listener


def address(listening: socket.socket) -> str:
    """Where it listens, as browsers write it."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Server(uvicorn.Server):
    """Ends well on the first signal: what runs is answered, within `drain_seconds`; at once on the second."""

    def __init__(self, app: FastAPI) -> None:
        self.state: ServerState = app.state.server
        settings = self.state.settings
        super().__init__(
            uvicorn.Config(
                app,
                http=cast("Any", partial(TimeoutProtocol, settings=settings)),
                ws="none",
                loop="asyncio",
                lifespan="off",
                log_config=None,
                access_log=False,  # we write our own
                proxy_headers=False,  # and believe whom we were told to
                server_header=False,
                timeout_keep_alive=settings.keep_alive,
                timeout_graceful_shutdown=max(1, round(settings.drain_seconds)),
                h11_max_incomplete_event_size=MAX_HEAD,
            )
        )
        self.ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    def stop(self) -> None:
        """Begin no more, answer what runs, and end; from any thread."""
        self.state.draining.set()
        self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:
            _end(128 + sig)
        self.stop()
        # Whatever hangs, a model's thread among them: who asked for the end need not come back with a harder signal.
        last = threading.Timer(self.state.settings.drain_seconds + LAST, _end, [0])
        last.daemon = True
        last.start()


def serve(app: FastAPI, listening: socket.socket) -> None:
    """Answer until a signal comes, and end the models' threads."""
    request_log.configure(as_json=app.state.server.settings.json_log)
    app.openapi()  # kept; made when first asked for, it would keep everyone waiting
    _open_files(app.state.server.settings.max_connections)
    # What is here now stays. Looked through for garbage with every so many requests, it would stop everyone for 150 ms.
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(TURN)
    try:
        Server(app).run(sockets=[listening])
    finally:
        app.state.server.models.close()


def _open_files(connections: int) -> None:
    """As many as connections need, where the system lets us: it usually grants 1,024 and allows many more."""
    try:
        import resource
    except ImportError:  # only Unix has it
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _end(code: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)
