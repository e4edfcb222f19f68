"""uvicorn around the app: sockets, signals, shutdown, and limits for connections that are slow or too many.

The admission middleware limits the time of a body. Only the connection sees headers that do not arrive, a body that
nobody waits for any more, and a response that is never read.
"""

import asyncio
import errno
import gc
import json
import os
import socket
import sys
import threading
import time
from functools import partial
from http import HTTPStatus
from types import FrameType
from typing import Any, cast

import h11
import uvicorn
from fastapi import FastAPI
from starlette.datastructures import Headers
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..errors import HeedfulError
from . import request_log
from .admission import is_open
from .keys import Keys
from .request_head import MAX_HEAD, head_error, plain_request
from .settings import Settings
from .state import ServerState

GRACE = 2.0  # seconds that the middleware has to send an error before the connection is closed


class TimeoutProtocol(H11Protocol):
    """Closes connections whose request does not arrive in time, and refuses connections beyond the maximum.

    While the server is at its capacity, plain requests are refused here, and so are those of a client that has sent too
    many invalid ones: parsing each of them and running it through the app would cost more time than is left for the
    requests that are being answered.
    """

    def __init__(self, *args: Any, server: ServerState, keys: Keys, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._server, self._settings, self._keys = server, server.settings, keys
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        if len(self.connections) > self._settings.max_connections:
            transport.write(raw_error(503, "there are too many connections; try again soon", "Retry-After: 1"))
            transport.close()
        self._set_timer(self._settings.receive_seconds)

    def data_received(self, data: bytes) -> None:
        self._server.metrics.n_open = len(self.tasks)
        if self._refuse(data):
            return
        if self._timer is None:  # the beginning of a request
            self._set_timer(self._settings.receive_seconds)
        previous = self.cycle
        super().data_received(data)
        if self._is_complete():
            self._set_timer(None)
        elif self.cycle is not previous:  # its headers have arrived
            self._set_timer(self._settings.receive_seconds + GRACE)

    def handle_events(self) -> None:
        buffered = self.conn.trailing_data[0] if self.conn.their_state is h11.IDLE else b""
        if error := head_error(buffered) if buffered else None:
            self.transport.write(raw_error(*error))
            self.transport.close()
            self._set_timer(GRACE)
        if not self.transport.is_closing():
            super().handle_events()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._limit_closing()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._limit_closing()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._set_timer(self._settings.seconds + GRACE)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._set_timer(None)

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._set_timer(None)

    def _refuse(self, data: bytes) -> bool:
        """Refuse a request for a model at once if the server is busy, or its client has sent too many invalid ones.

        Returns:
            False if it was not refused.
        """
        server, is_busy = self._server, self._server.is_busy
        idle = self.conn.our_state is self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]
        is_ready = idle and not self.flow.write_paused and not self.transport.is_closing()
        if not is_ready or not (is_busy or server.client_errors):
            return False
        scope = plain_request(data)
        if scope is None or is_open(scope["path"]):
            return False
        scope["client"] = self.client
        if not is_busy:
            client = self._keys.client(Headers(scope=scope)) or request_log.peer_of(scope, self._settings)
            if not server.is_flooded_by(client):
                return False
        self._set_timer(None)
        self._unset_keepalive_if_required()
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)
        self.transport.write(request_log.raw_refusal(self._server, scope, 503 if is_busy else 429))
        return True

    def _is_complete(self) -> bool:
        """Return whether all data of a request have arrived."""
        if self.conn.their_state is h11.IDLE:
            return not self.conn.trailing_data[0]
        return self.conn.their_state is not h11.SEND_BODY

    def _limit_closing(self) -> None:
        """Limit how long a closing connection waits for its client to read the rest of the response."""
        if self.transport.is_closing():
            self._set_timer(self._settings.receive_seconds)

    def _set_timer(self, seconds: float | None) -> None:
        """Close the connection after this time, in place of an earlier timer; None removes the timer."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self._time_out)

    def _time_out(self) -> None:
        is_partial_head = self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]
        if is_partial_head and not self.transport.is_closing():
            self.transport.write(raw_error(408, "the request did not arrive in time"))
            self.transport.close()
            self._set_timer(GRACE)
        else:
            self.transport.abort()


def raw_error(status: int, message: str, *headers: str) -> bytes:
    """Return a whole HTTP response for a connection that has no request yet."""
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
    errno.EADDRINUSE: "the port is in use; choose another with --port, or 0 for any free port",
    errno.EACCES: "permission denied; choose a port from 1024 up with --port",
    errno.EADDRNOTAVAIL: "this machine does not have this address; 127.0.0.1 is for this machine only, 0.0.0.0 for all",
}

SHUTDOWN_SECONDS = 2.0  # after the drain, until the process is ended
POLL_SECONDS = 0.05  # between two looks at the requests that are still running
OTHER_FILES = 256  # open files besides connections
# Of automatic garbage collections: the oldest objects are left to `Server.on_tick`, since many requests that wait, of
# long pages for example, have so many objects that a full collection would stop the server for 300 ms.
GC_THRESHOLDS = (5_000, 5, 1_000_000)
GC_SECONDS = 60.0  # until a full collection that does not wait for the server to be idle
SWITCH_INTERVAL = 0.0005  # seconds of Python until a model's thread yields to the event loop's


class ListenError(HeedfulError, OSError):
    """The server cannot listen on its address; the message has the reason."""


def listen(settings: Settings) -> socket.socket:
    """Open the listening socket; connections wait in it until the server has started."""
    host, port = settings.host, settings.port
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise ListenError(f"cannot listen on {host!r}: {getattr(error, 'strerror', None) or error}") from None
    dual_stack = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
    try:
        return socket.create_server(address, family=family, backlog=settings.max_connections, dualstack_ipv6=dual_stack)
    except OSError as error:
        reason = REASONS.get(error.errno or 0, error.strerror)
        raise ListenError(f"cannot listen on {host}, port {port}: {reason}") from None


def address(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Server(uvicorn.Server):
    """Drains on the first signal: running requests are answered within `drain_seconds`. The second ends it at once."""

    def __init__(self, app: FastAPI) -> None:
        self.state: ServerState = app.state.server
        self._last_collection = time.monotonic()
        settings = self.state.settings
        super().__init__(
            uvicorn.Config(
                app,
                http=cast("Any", partial(TimeoutProtocol, server=self.state, keys=Keys(settings.api_keys))),
                ws="none",
                loop="asyncio",
                lifespan="off",
                log_config=None,
                access_log=False,  # request_log writes it
                proxy_headers=False,  # request_log reads them, from trusted proxies only
                server_header=False,
                timeout_keep_alive=settings.keep_alive,
                timeout_graceful_shutdown=1,  # after `shutdown` has waited
                h11_max_incomplete_event_size=MAX_HEAD,
            )
        )

    async def on_tick(self, counter: int) -> bool:
        """Collect all garbage while no request runs, or once in a while; uvicorn calls this ten times a second."""
        if gc.get_threshold() == GC_THRESHOLDS:  # set by `run`
            now = time.monotonic()
            is_due = not self.state.metrics.running and gc.get_count()[2] > 0
            if is_due or now >= self._last_collection + GC_SECONDS:
                gc.collect()
                self._last_collection = now
        return await super().on_tick(counter)

    def stop(self) -> None:
        """Refuse new requests, answer the running ones, and stop. Any thread may call it."""
        self.state.draining.set()
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wait for the running requests, while new connections can still learn that the server is draining."""
        until = time.monotonic() + self.state.settings.drain_seconds
        while self.state.metrics.running and not self.force_exit and time.monotonic() < until:
            await asyncio.sleep(POLL_SECONDS)
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:
            _end(128 + sig)
        self.stop()
        # Even if something hangs, such as a model's thread, the process ends without another signal.
        last = threading.Timer(self.state.settings.drain_seconds + SHUTDOWN_SECONDS, _end, [0])
        last.daemon = True
        last.start()


def run(app: FastAPI, listener: socket.socket) -> None:
    """Handle requests until a signal comes, then stop the models' threads."""
    request_log.configure(as_json=app.state.server.settings.json_log)
    _raise_file_limit(app.state.server.settings.max_connections)
    # Existing objects stay alive. Without this, each full garbage collection would stop the server for 150 ms.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        Server(app).run(sockets=[listener])
    finally:
        app.state.server.models.close()


def _raise_file_limit(connections: int) -> None:
    """Allow as many open files as connections need: the soft limit is usually 1,024, the hard limit much higher."""
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
