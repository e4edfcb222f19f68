"""Counts in Prometheus' text form, written by hand: the format is a page of rules."""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from .models import Models, Served

TYPE = "text/plain; version=0.0.4; charset=utf-8"
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)  # seconds, of the histogram
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

Labels = Mapping[str, str]


class Metrics:
    """What has been asked and answered since the start. For the event loop alone: nothing here is locked."""

    def __init__(self) -> None:
        self._began = time.time()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._histograms: defaultdict[str, Histogram] = defaultdict(Histogram)
        self._items: Counter[str] = Counter()
        self._tokens: Counter[str] = Counter()
        self.running = 0  # requests that models are working on

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request by its route's template: what clients write into a path must not become labels."""
        self._requests[route, method if method in METHODS else "other", status] += 1
        self._histograms[route].add(seconds)

    def answered(self, model: str, *, items: int = 0, tokens: int = 0) -> None:
        """Count what a model has answered, and the tokens it wrote for that."""
        self._items[model] += items
        self._tokens[model] += tokens

    def text(self, models: Models) -> str:
        """All of it, as it is now."""
        return "".join(f"{line}\n" for line in self._lines(models))

    def _lines(self, models: Models) -> Iterator[str]:
        requests = [
            ({"route": route, "method": method, "status": str(status)}, count)
            for (route, method, status), count in sorted(self._requests.items())
        ]
        yield from family("heedful_requests_total", "counter", "Requests answered or refused.", requests)
        yield from described("heedful_request_seconds", "histogram", "From a request's head to its answer's end.")
        for route, histogram in sorted(self._histograms.items()):
            yield from histogram.lines("heedful_request_seconds", {"route": route})
        by_model: dict[str, tuple[str, str, Callable[[Served], int]]] = {
            "waiting_items": ("gauge", "Items that wait for a model.", lambda model: model.desk.waiting),
            "running_items": ("gauge", "Items that a model is working on.", lambda model: model.desk.running),
            "answered_items_total": (
                "counter",
                "Items that a model has answered.",
                lambda model: self._items[model.name],
            ),
            "answered_tokens_total": (
                "counter",
                "Tokens that a model has written.",
                lambda model: self._tokens[model.name],
            ),
        }
        for name, (kind, told, value) in by_model.items():
            samples = [({"model": model.name}, value(model)) for model in models.values()]
            yield from family(f"heedful_{name}", kind, told, samples)
        yield from single("heedful_running_requests", "Requests that models are working on.", self.running)
        yield from single("process_start_time_seconds", "When the server started, in unix time.", self._began)
        if memory := resident_bytes():
            yield from single("process_resident_memory_bytes", "Memory in use.", memory)


class Histogram:
    """How many took how long."""

    def __init__(self) -> None:
        self._counts = [0] * len(BOUNDS)  # of those within each bound, the lower ones among them
        self._count, self._sum = 0, 0.0

    def add(self, seconds: float) -> None:
        self._count += 1
        self._sum += seconds
        for place, bound in enumerate(BOUNDS):
            self._counts[place] += seconds <= bound

    def lines(self, name: str, labels: Labels) -> Iterator[str]:
        bounds = [*map(str, BOUNDS), "+Inf"]
        for bound, count in zip(bounds, [*self._counts, self._count], strict=True):
            yield sample(f"{name}_bucket", {**labels, "le": bound}, count)
        yield sample(f"{name}_sum", labels, self._sum)
        yield sample(f"{name}_count", labels, self._count)


def family(name: str, kind: str, told: str, samples: Iterable[tuple[Labels, float]]) -> Iterator[str]:
    """All samples of one name, with what they are."""
    yield from described(name, kind, told)
    for labels, value in samples:
        yield sample(name, labels, value)


def single(name: str, told: str, value: float) -> Iterator[str]:
    """A gauge that has no labels."""
    yield from family(name, "gauge", told, [({}, value)])


def described(name: str, kind: str, told: str) -> Iterator[str]:
    """The two lines before a family's samples."""
    yield f"# HELP {name} {told}"
    yield f"# TYPE {name} {kind}"


def sample(name: str, labels: Labels, value: float) -> str:
    """One line; in a label's value backslash, quote and line feed are escaped."""
    escapes = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
    inside = ",".join(f'{label}="{text.translate(escapes)}"' for label, text in labels.items())
    return f"{name}{{{inside}}} {value!r}" if inside else f"{name} {value!r}"


def resident_bytes() -> int | None:
    """What this process has in memory, where the system says so."""
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    except OSError:
        return None
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
