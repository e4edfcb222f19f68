"""Servers and clients for the faults of requests: what no HTTP client would send, and how long /health takes."""

from __future__ import annotations

import json
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from _faults import Bench
from _serving_processes import Server, serving

KEY, OTHER_KEY = "k" * 32, "o" * 32
OTHER_ADDRESS = "127.0.0.2"
PULSE = 0.05  # seconds between two requests to /health
PATIENCE = 60.0  # seconds
MAX_HEALTH_MS = 100.0


@dataclass(frozen=True)
class Answer:
    """A response; the status is 0 where there was none."""

    status: int
    body: bytes
    seconds: float

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The message of an error."""
        try:
            error = self.json["error"]
        except (ValueError, KeyError, TypeError):
            return self.body[:100].decode(errors="replace")
        return str(error["message"] if isinstance(error, dict) else error)


@contextmanager
def served(bench: Bench, *models: str | Path, keys: bool = False, options: Sequence[str] = ()) -> Iterator[Server]:
    """Run `heedful serve` with undamaged models by name, or with folders, until the context ends."""
    folders = [str(bench.sound / model if isinstance(model, str) else model) for model in models]
    more = [*options]
    if keys:
        (bench.folder / "keys").write_text(f"{KEY}\n{OTHER_KEY}\n")
        more += ["--api-key-file", str(bench.folder / "keys")]
    command = ["-m", "heedful", "serve", *folders, "--port", "PORT", *more]
    with (bench.folder / "log").open("wb") as log, serving("heedful", command, 1, bench.cores, log.fileno()) as server:
        yield server


def ask(server: Server, path: str, body: Any = None, method: str | None = None, **headers: str) -> Answer:
    """Send a request on a new connection. A body that is not bytes is sent as JSON."""
    began = time.monotonic()
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
    if body is not None:
        fields.setdefault("Content-Type", "application/json")
    connection = HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    try:
        connection.request(method or ("GET" if body is None else "POST"), path, body, fields)
        response = connection.getresponse()
        return Answer(response.status, response.read(), time.monotonic() - began)
    except (OSError, HTTPException):
        return Answer(0, b"", time.monotonic() - began)
    finally:
        connection.close()


def raw(server: Server, *parts: bytes, pause: float = 0.0, seconds: float = PATIENCE) -> Answer:
    """Send bytes, with a pause between the parts, and read until the server closes the connection."""
    began, received = time.monotonic(), b""
    with socket.create_connection(("127.0.0.1", server.port), timeout=seconds) as connection:
        try:
            for number, part in enumerate(parts):
                time.sleep(pause if number else 0.0)
                connection.sendall(part)
            while data := connection.recv(65536):
                received += data
        except OSError:
            pass
    line = received.split(b" ", 2)
    status = int(line[1]) if len(line) > 1 and line[1].isdigit() else 0
    return Answer(status, received, time.monotonic() - began)


def at_once(calls: Sequence[Callable[[], Answer]]) -> list[Answer]:
    """Make calls at the same time, each in a thread of its own."""
    with ThreadPoolExecutor(len(calls)) as threads:
        return [future.result() for future in [threads.submit(call) for call in calls]]


class Pulse:
    """Requests /health again and again, on a connection that is kept, while other requests run."""

    def __init__(self, server: Server) -> None:
        self.milliseconds: list[float] = []
        self._server = server
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Pulse:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def p99(self) -> float:
        """The milliseconds that 99 of 100 requests do not exceed."""
        return percentile(self.milliseconds, 99)

    def _run(self) -> None:
        connection = HTTPConnection("127.0.0.1", self._server.port, timeout=PATIENCE)
        while not self._over.is_set():
            began = time.monotonic()
            try:
                connection.request("GET", "/health")
                connection.getresponse().read()
            except (OSError, HTTPException):
                connection.close()
                continue
            self.milliseconds.append(1e3 * (time.monotonic() - began))
            time.sleep(PULSE)
        connection.close()


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that so many per cent do not exceed."""
    return sorted(values)[max(0, math.ceil(len(values) * share / 100) - 1)] if values else math.inf


def statuses(answers: Sequence[Answer]) -> str:
    """Count answers by status, for a message."""
    counts: dict[int, int] = {}
    for answer in answers:
        counts[answer.status] = counts.get(answer.status, 0) + 1
    return counted(counts)


def counted(counts: Mapping[int, int]) -> str:
    """Describe numbers of answers by their status."""
    return ", ".join(f"{count} × {status or 'none'}" for status, count in sorted(counts.items()))
