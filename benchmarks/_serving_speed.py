"""Requests a second and latency of several servers of one translator, turn by turn."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _serving_load import CLOSED, Load, Seen
from _serving_processes import Server, serving, under

OURS, ONE, CTRANSLATE2 = "heedful serve", "one at a time", "CTranslate2"
PEERS = str(Path(__file__).parent / "_serving_peers.py")
WAYS = (
    (1, 2, 64),
    (1, 2, 32),
    (2, 1, 32),
    (2, 1, 16),
)  # CTranslate2: batches at once, threads of each, requests in one


@dataclass(frozen=True)
class Work:
    """A translator in a precision, and what it is asked."""

    folder: Path
    exported: Path | None  # for CTranslate2, where it is installed
    precision: str
    bodies: list[str]
    threads: int
    seconds: float  # of each measurement

    def ours(self, *more: str) -> list[str]:
        """The command of `heedful serve`."""
        return ["-m", "heedful", "serve", str(self.folder), "--port", "PORT", "--precision", self.precision, *more]

    def peers(self) -> dict[str, list[str]]:
        """The commands of the others; of CTranslate2 one for each way it may be run."""
        common = ["--port", "PORT", "--precision", self.precision]
        found = {ONE: [PEERS, "one", str(self.folder), *common, "--threads", str(self.threads)]}
        if self.exported is not None:
            for translators, threads, batch in WAYS:
                way = f"--translators {translators} --threads {threads} --batch {batch}"
                command = [PEERS, "ctranslate2", str(self.folder), *common, "--exported", str(self.exported)]
                found[f"{CTRANSLATE2} ({way})"] = [*command, *way.split()]
        return found

    def load(self, server: Server, clients: int) -> Load:
        """So many clients that ask again and again."""
        return Load(port=server.port, kind=CLOSED, bodies=self.bodies, clients=clients, seconds=self.seconds)


def speeds(work: Work, crowds: Sequence[int], rounds: int) -> dict[str, Any]:
    """Every server under every crowd, once a round; who goes first rotates."""
    commands = {OURS: work.ours(), **_with_the_best_way(work, max(crowds))}
    with ExitStack() as stack:
        servers = [stack.enter_context(serving(name, command, work.threads)) for name, command in commands.items()]
        same = _same_answers(servers, work.bodies)
        found: dict[str, dict[int, list[dict[str, float]]]] = {s.name: {n: [] for n in crowds} for s in servers}
        for turn in range(rounds):
            first = turn % len(servers)
            for clients in crowds:
                for server in servers[first:] + servers[:first]:
                    found[server.name][clients].append(measured(work, server, clients))
    return {"servers": found, "ratios": _ratios(found), "same_answers": same}


def measured(work: Work, server: Server, clients: int) -> dict[str, float]:
    """One server under one crowd."""
    before = server.processor_seconds
    seen = under(work.load(server, clients))
    return {**figures(seen), "server_ms": 1e3 * (server.processor_seconds - before) / seen.sent}


def figures(seen: Seen) -> dict[str, float]:
    """Of one measurement: all must have been answered."""
    if set(seen.milliseconds) != {200}:
        raise RuntimeError(
            f"not all were answered: { ({code: len(times) for code, times in seen.milliseconds.items()}) }"
        )
    times = seen.milliseconds[200]
    return {
        "requests_per_second": len(times) / seen.seconds,
        "median_ms": statistics.median(times),
        "p99_ms": percentile(times, 99),
        "client_ms": 1e3 * seen.processor_seconds / seen.sent,
    }


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that so many per cent do not exceed."""
    return sorted(values)[max(0, math.ceil(len(values) * share / 100) - 1)]


def _with_the_best_way(work: Work, clients: int) -> dict[str, list[str]]:
    """The peers, CTranslate2 in the way that was quickest for the largest crowd."""
    peers = work.peers()
    ways = {name: command for name, command in peers.items() if name != ONE}
    tried: dict[str, float] = {}
    for name, command in ways.items():
        with serving(name, command, work.threads) as server:
            twice = [figures(under(work.load(server, clients)))["requests_per_second"] for _ in range(2)]
        tried[name] = max(twice)
        print(f"  {name}: {tried[name]:.1f} requests a second", flush=True)
    best = max(tried, key=tried.__getitem__, default=None)
    return {name: command for name, command in peers.items() if name in (ONE, best)}


def _same_answers(servers: Sequence[Server], bodies: Sequence[str]) -> dict[str, str]:
    """How many of some questions each answers as the first does; it is a rehearsal, too."""
    some = bodies[:16]
    answers = {server.name: [server.translate(body) for body in some] for server in servers}
    first = answers[servers[0].name]
    return {
        name: f"{sum(mine == his for mine, his in zip(first, own, strict=True))} of {len(some)}"
        for name, own in answers.items()
    }


def _ratios(found: Mapping[str, Mapping[int, list[dict[str, float]]]]) -> dict[str, dict[int, float]]:
    """How many times the throughput of each peer ours has: the median over the rounds."""
    ratios: dict[str, dict[int, float]] = {}
    for peer in found:
        if peer != OURS:
            ratios[peer] = {
                clients: statistics.median(
                    mine["requests_per_second"] / his["requests_per_second"]
                    for mine, his in zip(found[OURS][clients], theirs, strict=True)
                )
                for clients, theirs in found[peer].items()
            }
    return ratios
