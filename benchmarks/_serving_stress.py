"""What is asked of a server beside speed: to refuse, to recover, and to hold no more memory than it needs."""

from __future__ import annotations

import statistics
import time
from typing import Any

from _serving_load import COUNTED, OPEN, Load
from _serving_processes import crowd, seen, serving, under
from _serving_speed import OURS, Work, figures, percentile

TIMES = 10  # capacity


def overload(work: Work, clients: int, seconds: float) -> dict[str, Any]:
    """Ten times what it can do, while somebody asks for /health; before and after, one quiet client."""
    with serving(OURS, work.ours(), work.threads) as server:
        capacity = figures(under(work.load(server, clients)))["requests_per_second"]
        before = figures(under(work.load(server, 1)))
        flood = Load(port=server.port, kind=OPEN, bodies=work.bodies, rate=TIMES * capacity, seconds=seconds)
        pulse = Load(port=server.port, kind=OPEN, bodies=[], rate=20, seconds=seconds - 0.5)
        with crowd(flood) as many, crowd(pulse) as one:
            healthy, got = seen(one), seen(many)
        began = time.perf_counter()
        server.translate(work.bodies[0])
        first = time.perf_counter() - began
        after = figures(under(work.load(server, 1)))
    total = sum(map(len, got.milliseconds.values()))
    answered = got.milliseconds.get(200, [])
    refused = [time for status in (429, 503) for time in got.milliseconds.get(status, [])]
    health = healthy.milliseconds.get(200, [])
    return {
        "capacity_per_second": capacity,
        "sent_per_second": got.sent / got.seconds,
        "statuses": {str(status): len(times) for status, times in sorted(got.milliseconds.items())},
        "share_refused": len(refused) / total,
        "refusals_without_retry_after": got.without_retry_after,
        "refusal_ms": {"median": statistics.median(refused), "p99": percentile(refused, 99), "max": max(refused)},
        "answered_per_second": len(answered) / got.seconds,
        "answer_ms": {"median": statistics.median(answered), "p99": percentile(answered, 99)},
        "health": {
            "asked": healthy.sent,
            "answered": len(health),
            "median_ms": statistics.median(health),
            "p99_ms": percentile(health, 99),
            "max_ms": max(health),
        },
        "one_client_before": before,
        "first_answer_after_ms": 1e3 * first,
        "one_client_after": after,
    }


def memory(work: Work, clients: int, requests: int, every: int) -> dict[str, Any]:
    """What the server holds after so many requests, no two of which are the same."""
    resident: list[float] = []
    with serving(OURS, work.ours(), work.threads) as server:
        began = time.perf_counter()
        for done in range(0, requests, every):
            bodies = [
                work.bodies[index % len(work.bodies)].replace('"q": "', f'"q": "{index} ', 1)
                for index in range(done, done + every)
            ]
            got = under(Load(port=server.port, kind=COUNTED, bodies=bodies, clients=clients, requests=every))
            figures(got)
            resident.append(server.resident_mib)
            print(f"  after {done + every:6,} requests: {resident[-1]:.1f} MiB", flush=True)
        seconds = time.perf_counter() - began
    warm = len(resident) // 4  # the first quarter warms it up
    return {
        "requests": requests,
        "requests_per_second": requests / seconds,
        "every": every,
        "resident_mib": [round(value, 2) for value in resident],
        "slope_mib_per_1000": 1000 / every * slope(resident[warm:]),
    }


def slope(values: list[float]) -> float:
    """Of the line that fits them best."""
    return statistics.linear_regression(range(len(values)), values).slope
