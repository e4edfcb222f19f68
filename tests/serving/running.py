"""A real server on a free loopback port, in a thread of this process, with a client and other test helpers."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
import time
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

ENOUGH = 30  # seconds; beyond this, something hangs


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]  # by lower-case name
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Running:
    """A server that runs at `url` until it is stopped."""

    url: str
    app: FastAPI
    state: ServerState
    server: Server
    thread: threading.Thread

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def ask(self, path: str, body: Any = None, method: str | None = None, **headers: str) -> Answer:
        """Send a request over a new connection; a body that is not bytes is sent as JSON."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=ENOUGH)
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None and not isinstance(body, bytes):
            body, fields = json.dumps(body).encode(), {"Content-Type": "application/json", **fields}
        try:
            connection.request(method or ("GET" if body is None else "POST"), path, body, fields)
            response = connection.getresponse()
            headers = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, headers, response.read())
        finally:
            connection.close()

    def connect(self) -> socket.socket:
        """Open a socket, to send what no HTTP client would send."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=ENOUGH)

    def stop(self) -> None:
        self.server.stop()
        self.thread.join(ENOUGH)
        assert not self.thread.is_alive()
        self.state.models.close()


def start(models: Models, settings: Settings) -> Running:
    """Start a server; the port of the settings should be 0."""
    listener = listen(settings)
    url = address(listener)
    app = create_app(models, settings)
    server = Server(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    in_time = time.monotonic() + ENOUGH
    while not server.started:
        assert time.monotonic() < in_time
        time.sleep(0.01)
    return Running(url, app, app.state.server, server, thread)


@dataclass(frozen=True)
class BlockingRoute:
    """A route that waits until it is released, like a busy model."""

    entered: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    released: Future[None] = field(default_factory=Future)

    async def route(self, request: Request) -> dict[str, str]:
        await request.body()
        return await cancel_on_disconnect(request, self._work())

    async def _work(self) -> dict[str, str]:
        self.entered.release()
        await asyncio.shield(asyncio.wrap_future(self.released))
        return {"blocked": "no more"}

    def wait(self) -> None:
        """Wait until a request has reached the route."""
        assert self.entered.acquire(timeout=ENOUGH)

    def release(self) -> None:
        self.released.set_result(None)


def add_blocking_route(running: Running, path: str = "/hold") -> BlockingRoute:
    """Add a blocking route to a running server."""
    route = BlockingRoute()
    running.app.add_api_route(path, route.route, methods=["POST"])
    return route


class Lines(logging.Handler):
    """A queue of the lines of the server's log."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: Queue[str] = Queue()

    def emit(self, record: logging.LogRecord) -> None:
        self.queue.put(self.format(record))

    def next(self) -> str:
        return self.queue.get(timeout=ENOUGH)


def received(connection: socket.socket) -> bytes:
    """Read until the server closes the connection."""
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


def in_thread(function: Any, *arguments: Any, **options: Any) -> Future[Any]:
    """Call a function in a new thread and return the future of its result."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(function(*arguments, **options))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future
