"""Signs of life between processes: where one has gone, the others end instead of waiting for it for ever."""

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

from torch.distributed import PrefixStore, Store  # type: ignore[attr-defined]  # it does, without saying so

INTERVAL = 2.0  # seconds between two beats
LIMIT = 30.0  # seconds of silence after which a process counts as gone
FAREWELL = 5.0  # seconds that a thread may take to end, once it has told the others


def end_at_once(words: str) -> NoReturn:
    """Say why, if there is something to say, and end: nothing else gets a thread out of a collective operation."""
    if words:
        shown = "\x1b[?25h" if sys.stderr.isatty() else ""  # a live view may have hidden the cursor
        print(shown + " ".join(words.splitlines()), file=sys.stderr, flush=True)
    os._exit(1)


def announce(store: Store, rank: int, host: str, why: str) -> None:
    """Say of a process that it has failed; the first to say something is believed."""
    failed = json.dumps({"rank": rank, "host": host, "why": why})
    _room(store).compare_set("failed", "", failed)


def _room(store: Store) -> Store:
    """Where in a store the heartbeats are: torchrun may use one for several attempts."""
    return PrefixStore(f"heartbeat/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)


class Heartbeat:
    """The beat of one process, which watches the next one in the ring of all.

    Whoever finds its neighbour silent tells all through the store, so that the work grows with the processes and
    not with their pairs. Clocks are never compared: a beat is a count, and silence is that it does not change.
    A process that `keeps_store` goes last: with it, the store goes.
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
        self.store, self.rank, self.size, self.interval, self.limit = _room(store), rank, size, interval, limit
        self.keeps_store = keeps_store
        self.advice = ""  # what to do when the run has ended so
        self._end, self._clock = end, clock
        self._count = 0
        self._heard: dict[int, tuple[bytes, float]] = {}  # of each neighbour: its last new beat, and when it came
        self._last = clock()  # when the store last answered
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self.store.set(f"host/{rank}", socket.gethostname())
        self._beat()

    def start(self) -> None:
        """From here on, in the background; every process must have its heartbeat by now."""
        for work in (self._go_round, self._watch_the_store):
            self._threads.append(threading.Thread(target=work, daemon=True))
            self._threads[-1].start()

    def fail(self, why: str) -> None:
        """Say that this process ends before its work is done; the others will end too.

        What goes wrong in all of them the first one says: it gets a moment for that.
        """
        if self._over.is_set():
            return
        if self.rank > 0:
            with suppress(RuntimeError):
                self.store.wait(["failed"], timedelta(seconds=self.interval))
        self._tell(self.rank, why)
        self.stop()

    def stop(self, *, without: int | None = None) -> None:
        """End in order: say so, and watch no longer. Nobody waits for a process that has gone."""
        if not self._over.is_set():
            self._over.set()
            others = [f"ended/{rank}" for rank in range(self.size) if rank not in (self.rank, without)]
            with suppress(RuntimeError):  # nobody is left who could miss a word
                self.store.set(f"ended/{self.rank}", "")
                if self.keeps_store and others:
                    self.store.wait(others, timedelta(seconds=3 * self.interval))
        # The interpreter must not end under a thread that waits in the store: it would abort the process.
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(3 * self.interval + FAREWELL)

    def end_with_another(self, why: str) -> None:
        """When a connection broke: the threads find out who has gone, and end this process."""
        with suppress(SystemExit, KeyboardInterrupt):  # whoever started the processes may not wait so long
            threading.Event().wait(self.limit + 3 * self.interval)
        self._end(f"the connection to another process broke ({_plain(why)}){self.advice}")

    def round(self) -> None:
        """Beat once, and look for one that failed and at the neighbour."""
        self._beat()
        if self.store.check(["failed"]):
            self._follow(json.loads(self.store.get("failed")))
            return
        others = [(self.rank + step) % self.size for step in range(1, self.size)]
        neighbour = next((other for other in others if not self.store.check([f"ended/{other}"])), None)
        if neighbour is None:  # all others have ended in order
            return
        beat, now = self.store.get(f"beat/{neighbour}"), self._clock()
        before, since = self._heard.get(neighbour, (b"", now))
        self._heard[neighbour] = (beat, now if beat != before else since)
        if now - self._heard[neighbour][1] > self.limit:
            self._tell(neighbour, f"has gone (no sign of life for {self.limit:g} s)")
            self._follow(json.loads(self.store.get("failed")))

    def _beat(self) -> None:
        self._count += 1
        self.store.set(f"beat/{self.rank}", str(self._count))
        self._last = self._clock()

    def _tell(self, rank: int, why: str) -> None:
        with suppress(RuntimeError):  # without a store, that is what the others will miss
            announce(self._base, rank, self.store.get(f"host/{rank}").decode(), why)

    def _follow(self, failed: dict[str, str | int]) -> None:
        """End as another did. The first process speaks for all, or where it is the one, the second."""
        self.stop(without=int(failed["rank"]))
        speaks = self.rank == (0 if failed["rank"] != 0 else 1)
        who = _plain(f"process {failed['rank']} of {self.size} on {failed['host']} {failed['why']}")
        self._end(f"{who}{self.advice}" if speaks and failed["why"] else "")

    def _go_round(self) -> None:
        while not self._over.wait(self.interval):
            try:
                self.round()
            except RuntimeError:  # the connection is closed
                if not self._over.is_set():
                    self._lost()

    def _watch_the_store(self) -> None:
        """A machine that vanished closes no connection: then the other thread waits for an answer."""
        while not self._over.wait(self.interval):
            if self._clock() - self._last > self.limit:
                self._lost()

    def _lost(self) -> None:
        self._over.set()
        self._end(f"process {self.rank} of {self.size} cannot reach the others any more{self.advice}")


def _plain(words: str) -> str:
    """What came from elsewhere, without anything that a terminal would obey."""
    return "".join(letter if letter.isprintable() else " " for letter in words)
