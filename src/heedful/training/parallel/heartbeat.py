"""Heartbeats between processes: if one has failed, the others end instead of waiting for it forever."""

import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import NoReturn

from torch.distributed import PrefixStore, Store  # type: ignore[attr-defined]  # not listed in its __all__

INTERVAL = 2.0  # seconds between two beats
LIMIT = 30.0  # seconds of silence after which a process counts as failed
JOIN_SECONDS = 5.0  # that a thread may take to end beyond its intervals


def end_at_once(message: str) -> NoReturn:
    """Print a message, if there is one, and end the process: a thread in a collective operation cannot be stopped."""
    if message:
        show_cursor = "\x1b[?25h" if sys.stderr.isatty() else ""  # a live view may have hidden it
        print(show_cursor + " ".join(message.splitlines()), file=sys.stderr, flush=True)
    os._exit(1)


def announce_failure(store: Store, rank: int, host: str, why: str) -> None:
    """Report to all processes that one has failed. Only the first report counts."""
    failed = json.dumps({"rank": rank, "host": host, "why": why})
    _namespace(store).compare_set("failed", "", failed)


def _namespace(store: Store) -> Store:
    """Return the part of a store for heartbeats; torchrun may use one store for several attempts."""
    return PrefixStore(f"heartbeat/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)


class Heartbeat:
    """The heartbeat of one process, which also watches the next process in the ring of all.

    A process that finds its neighbor silent tells all others through the store. The work thus grows with the number of
    processes, not of pairs. Clocks are never compared: a beat is a count, and silence means that it does not change.
    A process that `keeps_store` ends last, since the store ends with it.
    """

    def __init__(
        self,
        store: Store,
        rank: int,
        size: int,
        *,
        keeps_store: bool = False,
        interval: float = INTERVAL,
        limit: float = LIMIT,
        end: Callable[[str], None] = end_at_once,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._base = store
        self.store, self.rank, self.size, self.interval, self.limit = _namespace(store), rank, size, interval, limit
        self.keeps_store = keeps_store
        self.advice = ""  # what the user can do after the failure of a process
        self._end, self._clock = end, clock
        self._count = 0
        self._last_beats: dict[int, tuple[bytes, float]] = {}  # of each neighbor: its last new beat, and its time
        self._last = clock()  # when the store last answered
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []
        self.store.set(f"host/{rank}", socket.gethostname())
        self._beat()

    def start(self) -> None:
        """Start the background threads. Every process must have created its heartbeat before."""
        for work in (self._run, self._watch_store):
            self._threads.append(threading.Thread(target=work, daemon=True))
            self._threads[-1].start()

    def fail(self, why: str) -> None:
        """Report that this process has failed; the others will end too.

        An error that occurs in all processes is reported by the first one, for which the others wait a moment.
        """
        if self._stopped.is_set():
            return
        if self.rank > 0:
            with suppress(RuntimeError):
                self.store.wait(["failed"], timedelta(seconds=self.interval))
        self._announce(self.rank, why)
        self.stop()

    def stop(self, *, without: int | None = None) -> None:
        """Announce the regular end of this process, and stop watching. `without` is the rank of a failed process."""
        if not self._stopped.is_set():
            self._stopped.set()
            others = [f"ended/{rank}" for rank in range(self.size) if rank not in (self.rank, without)]
            with suppress(RuntimeError):  # without a store, no other process is left
                self.store.set(f"ended/{self.rank}", "")
                if self.keeps_store and others:
                    self.store.wait(others, timedelta(seconds=3 * self.interval))
        # The interpreter must not end under a thread that waits in the store: it would abort the process.
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(3 * self.interval + JOIN_SECONDS)

    def wait_for_failure(self, why: str) -> None:
        """Wait, after a connection broke, until the threads find out which process failed and end this one."""
        with suppress(SystemExit, KeyboardInterrupt):  # the parent of the processes may not wait so long
            threading.Event().wait(self.limit + 3 * self.interval)
        self._end(f"the connection to another process broke ({_printable(why)}){self.advice}")

    def check(self) -> None:
        """Beat once, and check for failures and for the neighbor's beat."""
        self._beat()
        if self.store.check(["failed"]):
            self._end_after(json.loads(self.store.get("failed")))
            return
        others = [(self.rank + step) % self.size for step in range(1, self.size)]
        neighbor = next((other for other in others if not self.store.check([f"ended/{other}"])), None)
        if neighbor is None:  # all others have ended regularly
            return
        beat, now = self.store.get(f"beat/{neighbor}"), self._clock()
        before, since = self._last_beats.get(neighbor, (b"", now))
        self._last_beats[neighbor] = (beat, now if beat != before else since)
        if now - self._last_beats[neighbor][1] > self.limit:
            self._announce(neighbor, f"has gone (no sign of life for {self.limit:g} s)")
            self._end_after(json.loads(self.store.get("failed")))

    def _beat(self) -> None:
        self._count += 1
        self.store.set(f"beat/{self.rank}", str(self._count))
        self._last = self._clock()

    def _announce(self, rank: int, why: str) -> None:
        with suppress(RuntimeError):  # without a store, the others notice that themselves
            announce_failure(self._base, rank, self.store.get(f"host/{rank}").decode(), why)

    def _end_after(self, failed: dict[str, str | int]) -> None:
        """End because another process failed. The first process prints why; the second if the first has failed."""
        self.stop(without=int(failed["rank"]))
        prints = self.rank == (0 if failed["rank"] != 0 else 1)
        message = _printable(f"process {failed['rank']} of {self.size} on {failed['host']} {failed['why']}")
        self._end(f"{message}{self.advice}" if prints and failed["why"] else "")

    def _run(self) -> None:
        while not self._stopped.wait(self.interval):
            try:
                self.check()
            except RuntimeError:  # the connection is closed
                if not self._stopped.is_set():
                    self._end_without_store()

    def _watch_store(self) -> None:
        """End if the store is silent: a machine that vanished closes no connection, so the other thread would wait."""
        while not self._stopped.wait(self.interval):
            if self._clock() - self._last > self.limit:
                self._end_without_store()

    def _end_without_store(self) -> None:
        self._stopped.set()
        self._end(f"process {self.rank} of {self.size} cannot reach the others any more{self.advice}")


def _printable(text: str) -> str:
    """Replace control characters, which a terminal would interpret."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
