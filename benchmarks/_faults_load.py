"""Faults of load: one client's largest legal request beside small ones, and ten times the capacity of a server."""

from __future__ import annotations

import json
import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any

from _faults import Bench, Seen, fault
from _faults_server import (
    KEY,
    MAX_HEALTH_MS,
    OTHER_ADDRESS,
    OTHER_KEY,
    Answer,
    ask,
    at_once,
    counted,
    percentile,
    served,
    statuses,
)
from _serving_load import CLOSED, OPEN, Load
from _serving_load import Seen as Crowd
from _serving_processes import Server, crowd, seen, under

GROUP = "Load"
MAX_WAIT = 2.0  # seconds that a small request may take beside the largest legal one
LARGE = (200, 429, 503)  # statuses of large requests: answered, or more than the client or the time allows
SMALL = {"q": "ba be bi", "source": "en", "target": "ko"}
TIMES = 10  # the capacity
CLIENTS = 64
SECONDS = 6.0  # of a measurement
MIN_GOODPUT = 0.5  # of the capacity


def beside(server: Server, small: Callable[[], Answer], large: Sequence[Callable[[], Answer]]) -> Seen:
    """Send small requests one after another while large ones run, and judge how long each takes."""
    ask_small = small()  # the first takes longer
    results: list[list[Answer]] = []
    thread = threading.Thread(target=lambda: results.append(at_once(large)))
    thread.start()
    time.sleep(0.3)
    answers: list[Answer] = []
    while thread.is_alive() and len(answers) < 60:
        answers.append(small())
        time.sleep(0.2)
    thread.join()
    slowest = max((answer.seconds for answer in answers), default=ask_small.seconds)
    longest = max(answer.seconds for answer in results[0])
    right = all(answer.status == 200 for answer in answers) and all(answer.status in LARGE for answer in results[0])
    refused = next((f" ({answer.error})" for answer in results[0] if answer.status != 200), "")
    text = (
        f"the large ones: {statuses(results[0])}{refused}, up to {longest:.1f} s; {len(answers)} small ones: "
        f"{statuses(answers)}, at most {slowest:.2f} s"
    )
    return Seen(right and slowest <= MAX_WAIT, text)


@fault(
    GROUP,
    "fair-texts",
    "50 different texts of 20,000 characters, a megabyte, to /translate; small requests beside it",
    "a small request waits at most 2 s",
)
def _texts(bench: Bench) -> Seen:
    words, random = (bench.sound / "data" / "sentences.txt").read_text().split(), Random(0)
    large = {**SMALL, "q": [sentences_of(words, random, 20_000) for _ in range(50)]}
    with served(bench, "translator") as server:
        return beside(server, lambda: ask(server, "/translate", SMALL), [lambda: ask(server, "/translate", large)])


def sentences_of(words: Sequence[str], random: Random, n_characters: int) -> str:
    """Return random sentences of together this many characters."""
    text = ""
    while len(text) < n_characters:
        text += " ".join(random.choices(words, k=random.randint(5, 30))) + ". "
    return text[:n_characters].rstrip()


@fault(
    GROUP,
    "fair-beam",
    "128 inputs with beam 4 and `min_new_tokens` 1,000 to /v1/predict; small requests beside it",
    "a small request waits at most 2 s",
)
def _beam(bench: Bench) -> Seen:
    large = {"inputs": ["the cat reads"] * 128, "beam": 4, "min_new_tokens": 1000, "max_new_tokens": 1024}
    small = {"model": "lm", "prompt": "the cat", "max_tokens": 4}
    with served(bench, "lm", options=["--seconds", "30"]) as server:
        return beside(
            server,
            lambda: ask(server, "/v1/completions", small),
            [lambda: ask(server, "/v1/predict/lm", large)],
        )


@fault(
    GROUP,
    "fair-classifier",
    "eight requests of 128 texts to a classifier, each as long as it reads; small requests beside them",
    "a small request waits at most 2 s",
)
def _classifier(bench: Bench) -> Seen:
    large, small = {"inputs": ["the cat " * 30] * 128}, {"inputs": ["the cat"]}
    path = "/v1/predict/classifier"
    with served(bench, "classifier") as server:
        return beside(server, lambda: ask(server, path, small), [lambda: ask(server, path, large)] * 8)


@contextmanager
def apart(bench: Bench) -> Iterator[tuple[Bench, list[int]]]:
    """Yield a bench for the server on one core, and the core of the clients, if there are two."""
    cores = sorted(os.sched_getaffinity(0))
    if bench.cores or len(cores) < 2:
        yield bench, list(bench.cores)
    else:
        yield Bench(bench.folder, bench.sound, cores[:1]), cores[1:]


def legal(bench: Bench) -> list[str]:
    """Return the bodies of small requests."""
    lines = (bench.sound / "data" / "sentences.txt").read_text().splitlines()
    return [json.dumps({**SMALL, "q": line}) for line in lines]


def hostile() -> list[str]:
    """Return bodies that are refused, and cost a parser much."""
    return [
        json.dumps({**SMALL, "q": ["a"] * 5000}),
        '{"q":' + "[" * 20_000 + "]" * 20_000 + "}",
        '{"q":"' + "\\u0041" * 3_000 + '","source":"en","target":"' + "x" * 2_000 + '"}',
        '{"q":"<b>' + "<i>" * 7_000 + '","format":"html","source":"en","target":"xx"}',
    ]


def overloaded(bench: Bench, *, bodies: list[str] | None, key: str, keyed_server: bool) -> Seen:
    """Measure the capacity, then offer ten times as much while /health is asked.

    Hostile bodies come from another address, and another key, than legal ones.

    Args:
        bench: Where the server runs.
        bodies: Hostile bodies that are sent beside legal ones; without them, all are legal.
        key: The key of the flood.
        keyed_server: Whether the server needs keys; the legal clients have one.
    """
    mine = KEY if keyed_server else ""
    with apart(bench) as (there, here), served(there, "translator", keys=keyed_server) as server:
        common: dict[str, Any] = {"port": server.port, "seconds": SECONDS}
        clients = Load(kind=CLOSED, bodies=legal(bench), clients=CLIENTS, key=mine, **common)
        capacity = good(under(clients, here))
        address = OTHER_ADDRESS if bodies else "127.0.0.1"
        flood = Load(
            kind=OPEN, bodies=bodies or legal(bench), rate=TIMES * capacity, key=key, address=address, **common
        )
        pulse = Load(kind=OPEN, bodies=[], rate=20, port=server.port, seconds=SECONDS)
        before = server.resident_mib
        with crowd(flood, here) as many, crowd(pulse, here) as one:
            beside = None
            if bodies is not None:
                with crowd(clients, here) as legal_clients:
                    beside = seen(legal_clients)
            health, flooded = seen(one), seen(many)
        peak = server.peak_mib
    goodput = good(flooded if beside is None else beside)
    times = health.milliseconds.get(200, [])
    p99 = percentile(times, 99)
    counts = {status: len(each) for status, each in flooded.milliseconds.items()}
    text = (
        f"capacity {capacity:.0f}/s; offered {flooded.sent / flooded.seconds:.0f}/s ({counted(counts)}); "
        f"goodput {goodput:.0f}/s ({goodput / capacity:.0%}); /health median "
        f"{statistics.median(times or [0]):.0f} ms, 99th percentile {p99:.0f} ms; {peak:.0f} MiB, {before:.0f} before"
    )
    passed = p99 < MAX_HEALTH_MS and goodput > MIN_GOODPUT * capacity and peak < 2 * (before + CLIENTS)
    return Seen(passed and len(times) > 0.9 * health.sent, text)


def good(found: Crowd) -> float:
    """Return the answers with status 200 per second."""
    return len(found.milliseconds.get(200, [])) / found.seconds


EXPECTED = "/health within 100 ms (99th percentile), goodput above half the capacity"


@fault(GROUP, "overload-legal", "ten times the capacity, legal requests, no keys", EXPECTED)
def _legal(bench: Bench) -> Seen:
    return overloaded(bench, bodies=None, key="", keyed_server=False)


@fault(GROUP, "overload-legal-keyed", "ten times the capacity, legal requests, with a key", EXPECTED)
def _legal_keyed(bench: Bench) -> Seen:
    return overloaded(bench, bodies=None, key=KEY, keyed_server=True)


@fault(
    GROUP,
    "overload-strangers",
    "ten times the capacity, without a key where keys are needed, beside 64 clients that have one",
    EXPECTED,
)
def _strangers(bench: Bench) -> Seen:
    return overloaded(bench, bodies=legal(bench), key="", keyed_server=True)


@fault(
    GROUP,
    "overload-hostile",
    "ten times the capacity in hostile bodies of 5 to 40 KB, no keys, beside 64 legal clients of another address",
    EXPECTED,
)
def _hostile(bench: Bench) -> Seen:
    return overloaded(bench, bodies=hostile(), key="", keyed_server=False)


@fault(GROUP, "overload-hostile-keyed", "the same hostile bodies with another key, beside 64 legal clients", EXPECTED)
def _hostile_keyed(bench: Bench) -> Seen:
    return overloaded(bench, bodies=hostile(), key=OTHER_KEY, keyed_server=True)


@fault(
    GROUP,
    "overload-hostile-strangers",
    "the same hostile bodies without a key where keys are needed, beside 64 legal clients",
    EXPECTED,
)
def _hostile_strangers(bench: Bench) -> Seen:
    return overloaded(bench, bodies=hostile(), key="", keyed_server=True)
