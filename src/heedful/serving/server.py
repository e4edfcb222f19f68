"""uvicorn around the app: sockets, signals, and an end within seconds."""

from __future__ import annotations

import errno
import gc
import os
import socket
import sys
import threading
from types import FrameType

import uvicorn
from fastapi import FastAPI

from ..errors import HeedfulError
from . import request_log
from .house import House
from .protocol import MAX_HEAD, Punctual
from .settings import Settings

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
    found = socket.socket(family, kind, protocol)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(settings.max_connections)
    except OSError as error:
        found.close()
        reason = REASONS.get(error.errno or 0, error.strerror)
        raise ListenError(f"cannot listen at {host}, port {port}: {reason}") from None
    return found


def address(listening: socket.socket) -> str:
    """Where it listens, as browsers write it."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Server(uvicorn.Server):
    """Ends well on the first signal: what runs is answered, within `drain_seconds`; at once on the second."""

    def __init__(self, app: FastAPI) -> None:
        self.house: House = app.state.house
        settings = self.house.settings
        super().__init__(
            uvicorn.Config(
                app,
                http=Punctual.of(settings),
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
        self.house.draining.set()
        self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:
            _end(128 + sig)
        self.stop()
        # Whatever hangs, a model's thread among them: who asked for the end need not come back with a harder signal.
        last = threading.Timer(self.house.settings.drain_seconds + LAST, _end, [0])
        last.daemon = True
        last.start()


def serve(app: FastAPI, listening: socket.socket) -> None:
    """Answer until a signal comes, and end the models' threads."""
    request_log.configure(as_json=app.state.house.settings.json_log)
    app.openapi()  # kept; made when first asked for, it would keep everyone waiting
    _open_files(app.state.house.settings.max_connections)
    # What is here now stays. Looked through for garbage with every so many requests, it would stop everyone for 150 ms.
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(TURN)
    try:
        Server(app).run(sockets=[listening])
    finally:
        app.state.house.models.close()


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
