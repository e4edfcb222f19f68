"""A crowd of HTTP clients in one process of its own, on bare sockets, so that it costs the servers little.

python benchmarks/_serving_load.py < load.json     prints what the clients saw, as JSON
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import cycle
from typing import Any

CLOSED, COUNTED, OPEN = "closed", "counted", "open"
AGAIN = 2  # answers for each client, at least, that are counted


@dataclass(frozen=True)
class Load:
    """What the clients ask for.

    closed: `clients` ask again as soon as they are answered, for at least `seconds`.
    counted: the same, until `requests` were answered. open: `rate` requests a second, answered or not.
    """

    port: int
    kind: str
    bodies: list[str]  # of POST requests, taken in turn; none: GET /health
    clients: int = 1
    seconds: float = 1.0
    requests: int = 0
    rate: float = 0.0
    path: str = "/translate"
    key: str = ""
    address: str = "127.0.0.1"  # of the clients; all of 127.0.0.0/8 are this machine


@dataclass
class Seen:
    """Milliseconds from the first byte sent to the last received, by status; 0 stands for no answer at all."""

    milliseconds: dict[int, list[float]] = field(default_factory=dict)
    seconds: float = 0.0  # that were counted
    processor_seconds: float = 0.0  # of this process, those included that were not counted
    sent: int = 0
    without_retry_after: int = 0  # refusals that do not say when to come again


class Connection:
    """One that is kept alive, and opened again where the server has closed it."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: bytes) -> tuple[int, Mapping[bytes, bytes]]:
        """Status and headers; the body is read to its end. Status 0 is a connection that broke."""
        try:
            if self._streams is None or self._streams[0].at_eof():
                self.close()
                self._streams = await asyncio.open_connection(
                    "127.0.0.1", self._load.port, local_addr=(self._load.address, 0)
                )
            reader, writer = self._streams
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
            headers = dict(line.lower().split(b": ", 1) for line in head[1:] if line)
            await reader.readexactly(int(headers[b"content-length"]))
        except (OSError, EOFError):
            self.close()
            return 0, {}
        if headers.get(b"connection") == b"close":
            self.close()
        return int(head[0].split()[1]), headers

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
        self._streams = None


class Crowd:
    """The clients, and what they have seen."""

    def __init__(self, load: Load) -> None:
        self.load, self.seen = load, Seen()
        self._requests = _requests(load)

    async def run(self) -> Seen:
        began, processor = time.perf_counter(), time.process_time()
        await {CLOSED: self._closed, COUNTED: self._counted, OPEN: self._open}[self.load.kind]()
        self.seen.seconds = self.seen.seconds or time.perf_counter() - began
        self.seen.processor_seconds = time.process_time() - processor
        return self.seen

    async def _closed(self) -> None:
        """Counts from when all have had an answer until all might have had so many more and the time is over.

        A server that answers in batches answers in bursts, so the time is cut where a burst ends. What is under way
        then is waited for, and not counted.
        """
        clients, answered, counting, over = self.load.clients, 0, False, False
        began = 0.0

        def counts() -> bool:
            return counting and not over

        async def client() -> None:
            nonlocal answered, counting, over, began
            connection = Connection(self.load)
            first = True
            while not over:
                await self._ask(connection, counts)
                answered += counting or first
                first, now = False, time.perf_counter()
                if not counting and answered == clients:
                    counting, answered, began = True, 0, now
                elif counts() and answered >= AGAIN * clients and not answered % clients:
                    over, self.seen.seconds = now - began >= self.load.seconds, now - began
            connection.close()

        await asyncio.gather(*(client() for _ in range(clients)))

    async def _counted(self) -> None:
        left = self.load.requests

        async def client() -> None:
            nonlocal left
            connection = Connection(self.load)
            while left > 0:
                left -= 1
                await self._ask(connection)
            connection.close()

        await asyncio.gather(*(client() for _ in range(self.load.clients)))

    async def _open(self) -> None:
        """Every request leaves when it is due, on a connection that is free or on a new one."""
        loop, free, tasks = asyncio.get_running_loop(), list[Connection](), set[asyncio.Task[None]]()

        async def one() -> None:
            connection = free.pop() if free else Connection(self.load)
            await self._ask(connection)
            free.append(connection)

        began = loop.time()
        for index in range(int(self.load.rate * self.load.seconds)):
            await asyncio.sleep(max(0.0, began + index / self.load.rate - loop.time()))
            task = loop.create_task(one())
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        self.seen.seconds = loop.time() - began
        await asyncio.gather(*tasks)
        for connection in free:
            connection.close()

    async def _ask(self, connection: Connection, counts: Callable[[], bool] = lambda: True) -> None:
        """Ask the next question, and note it if it counts when it is answered."""
        request = next(self._requests)
        self.seen.sent += 1
        began = time.perf_counter()
        status, headers = await connection.ask(request)
        if counts():
            self.seen.milliseconds.setdefault(status, []).append(1e3 * (time.perf_counter() - began))
            self.seen.without_retry_after += status in (429, 503) and b"retry-after" not in headers


def _requests(load: Load) -> Iterator[bytes]:
    where = f"Host: 127.0.0.1:{load.port}\r\n"
    if not load.bodies:
        return cycle([f"GET /health HTTP/1.1\r\n{where}\r\n".encode()])
    bodies = [body.encode() for body in load.bodies]
    key = f"Authorization: Bearer {load.key}\r\n" if load.key else ""
    head = f"POST {load.path} HTTP/1.1\r\n{where}{key}Content-Type: application/json\r\nContent-Length: "
    return cycle([f"{head}{len(body)}\r\n\r\n".encode() + body for body in bodies])


def main() -> None:
    """Read the load, be the crowd, say what it saw."""
    given: dict[str, Any] = json.load(sys.stdin)
    json.dump(asdict(asyncio.run(Crowd(Load(**given)).run())), sys.stdout)


if __name__ == "__main__":
    main()
