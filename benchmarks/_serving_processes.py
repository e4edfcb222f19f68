"""Servers and crowds as processes: started, watched, ended."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from _serving_load import Load, Seen

HERE = Path(__file__).parent
PATIENCE = 120  # seconds a server has to load its model


@dataclass(frozen=True)
class Server:
    """One that answers."""

    name: str
    port: int
    pid: int

    @property
    def resident_mib(self) -> float:
        """The memory it holds."""
        return self._memory("VmRSS")

    @property
    def peak_mib(self) -> float:
        """The most memory it has held."""
        return self._memory("VmHWM")

    @property
    def processor_seconds(self) -> float:
        """The time it has had of all cores."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def translate(self, body: str) -> str:
        """One question."""
        status, answer = self._ask("POST", "/translate", body)
        if status != 200:
            raise RuntimeError(f"{self.name} answered {status}: {answer}")
        return str(answer["translatedText"])

    def health(self) -> int:
        """The status of /health; 0 where nobody listens."""
        try:
            return self._ask("GET", "/health")[0]
        except OSError:
            return 0

    def _memory(self, name: str) -> float:
        lines = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024

    def _ask(self, method: str, path: str, content: str | None = None) -> tuple[int, Any]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, content, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()


@contextmanager
def serving(
    name: str, command: Sequence[str], threads: int, cores: Sequence[int] = (), log: int | None = None
) -> Iterator[Server]:
    """A server while it is needed, on these cores; `PORT` in the command is a free one, `log` takes its errors."""
    port = _free_port()
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    words = [str(port) if word == "PORT" else word for word in command]
    process = subprocess.Popen(
        [sys.executable, *words], env=environment, stdout=subprocess.DEVNULL, stderr=log, preexec_fn=lambda: pin(cores)
    )
    try:
        server = Server(name, port, process.pid)
        until = time.monotonic() + PATIENCE
        while server.health() != 200:
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"{name} does not answer: {' '.join(words)}")
            time.sleep(0.2)
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def crowd(load: Load, cores: Sequence[int] = ()) -> Iterator[subprocess.Popen[str]]:
    """A crowd at work on these cores; `seen` says what it saw once it has gone."""
    process = subprocess.Popen(
        [sys.executable, str(HERE / "_serving_load.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: pin(cores),
    )
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps(asdict(load)))
        process.stdin.close()
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def seen(process: subprocess.Popen[str]) -> Seen:
    """Waits until the crowd has gone."""
    assert process.stdout is not None
    found: dict[str, Any] = json.loads(process.stdout.read())
    found["milliseconds"] = {int(status): times for status, times in found["milliseconds"].items()}
    return Seen(**found)


def under(load: Load, cores: Sequence[int] = ()) -> Seen:
    """What a crowd saw."""
    with crowd(load, cores) as process:
        return seen(process)


def pin(cores: Sequence[int]) -> None:
    """Let this process run on these cores only; on all of them where none is named."""
    if cores:
        os.sched_setaffinity(0, cores)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
