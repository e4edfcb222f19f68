"""A real server on a free port of the loopback, in a thread of this process, and what it is tested with."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from http.client import HTTPConnection
from queue import Queue
from typing import Any

from fastapi import FastAPI, Request

from heedful.serving.app import create_app
from heedful.serving.models import Models
from heedful.serving.server import Server, address, listen
from heedful.serving.settings import Settings
from heedful.serving.state import ServerState, cancel_on_disconnect

ENOUGH = 30  # seconds; more means that it hangs


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]  # their names in small letters
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Running:
    """Answers at `url` until it is stopped."""

    url: str
    app: FastAPI
    state: ServerState
    server: Server
    thread: threading.Thread

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def ask(self, path: str, body: Any = None, method: str | None = None, **headers: str) -> Answer:
        """One request over a connection of its own; a body that is not bytes is sent as JSON."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=ENOUGH)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None and not isinstance(body, bytes):
            body, named = json.dumps(body).encode(), {"Content-Type": "application/json", **named}
        try:
            connection.request(method or ("GET" if body is None else "POST"), path, body, named)
            found = connection.getresponse()
            return Answer(found.status, {name.lower(): value for name, value in found.getheaders()}, found.read())
        finally:
            connection.close()

    def connect(self) -> socket.socket:
        """A bare connection, for what no client would send."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=ENOUGH)

    def stop(self) -> None:
        self.server.stop()
        self.thread.join(ENOUGH)
        assert not self.thread.is_alive()
        self.state.models.close()


def start(models: Models, settings: Settings) -> Running:
    """The port of the settings should be 0."""
    listening = listen(settings)
    url = address(listening)
    app = create_app(models, settings)
    server = Server(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    assert server.ready.wait(ENOUGH)
    return Running(url, app, app.state.server, server, thread)


@dataclass(frozen=True)
class Held:
    """A route that answers when it is told to, as a model does that has much to do."""

    entered: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    released: Future[None] = field(default_factory=Future)

    async def route(self, request: Request) -> dict[str, str]:
        await request.body()
        return await cancel_on_disconnect(request, self._work())

    async def _work(self) -> dict[str, str]:
        self.entered.release()
        await asyncio.shield(asyncio.wrap_future(self.released))
        return {"held": "no more"}

    def wait(self) -> None:
        """Until a request is inside."""
        assert self.entered.acquire(timeout=ENOUGH)

    def release(self) -> None:
        self.released.set_result(None)


def hold(running: Running, path: str = "/hold") -> Held:
    """Such a route on a server that runs."""
    held = Held()
    running.app.add_api_route(path, held.route, methods=["POST"])
    return held


class Lines(logging.Handler):
    """The lines of the server's log, each when it is written."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: Queue[str] = Queue()

    def emit(self, record: logging.LogRecord) -> None:
        self.queue.put(self.format(record))

    def next(self) -> str:
        return self.queue.get(timeout=ENOUGH)


def received(connection: socket.socket) -> bytes:
    """All until the server closes."""
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


def later(function: Any, *given: Any, **named: Any) -> Future[Any]:
    """What a function gives in a thread of its own."""
    found: Future[Any] = Future()

    def run() -> None:
        try:
            found.set_result(function(*given, **named))
        except BaseException as error:
            found.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return found
