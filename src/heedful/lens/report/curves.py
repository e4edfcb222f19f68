"""A run's log as charts: the losses together, and every other quantity on its own."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .charts import Point, Series, line_chart
from .markup import Html
from .words import Words, number

Rows = Sequence[Mapping[str, Any]]
MOST_POINTS = 300  # of a curve; more are averaged in groups
NOT_CURVES = frozenset({"kind", "step", "epoch", "time", "loss"})


def training_charts(log: Rows, words: Words) -> tuple[list[Html], list[str]]:
    """The charts of a log, and what a reader must know about them."""
    curves = {
        kind: [row for row in log if row.get("kind") == kind and _is_number(row.get("step"))]
        for kind in ("train", "valid")
    }
    losses = [Series(words(kind), points) for kind, rows in curves.items() if (points := _points(rows, "loss"))]
    charts = [line_chart(words("loss"), losses, words("step"))]
    for kind in ("valid", "train"):
        for key in _quantities(curves[kind]):
            series = Series(words(kind), _points(curves[kind], key))
            charts.append(line_chart(words.name(key), [series], words("step"), y_label=words(kind)))
    charts = [chart for chart in charts if chart]
    return charts, list(_remarks(curves, words)) if charts else []


def averaged(points: Sequence[Point], most: int = MOST_POINTS) -> list[Point]:
    """At most so many points, each the mean of its group."""
    n = min(most, len(points))
    groups = (points[len(points) * i // n : len(points) * (i + 1) // n] for i in range(n))
    return [Point(_mean([p.x for p in group]), _mean([p.y for p in group])) for group in groups]


def _points(rows: Rows, key: str) -> list[Point]:
    points = [Point(float(row["step"]), float(row[key])) for row in rows if _is_number(row.get(key))]
    return averaged(sorted(points, key=lambda point: point.x))


def _quantities(rows: Rows) -> list[str]:
    """The keys that hold numbers, in the order of their coming."""
    found = dict.fromkeys(key for row in rows for key, value in row.items() if _is_number(value))
    return [key for key in found if key not in NOT_CURVES]


def _remarks(curves: Mapping[str, Rows], words: Words) -> Iterator[str]:
    losses = [(row["loss"], row["step"]) for row in curves["valid"] if _is_number(row.get("loss"))]
    finite = [pair for pair in losses if math.isfinite(pair[0])]
    if finite:
        value, step = min(finite)
        yield words("lowest_loss", value=number(value), step=number(step))
    if max(map(len, curves.values())) > MOST_POINTS:
        yield words("averaged", n=MOST_POINTS)
    shown = [row[key] for rows in curves.values() for key in ["loss", *_quantities(rows)] for row in rows if key in row]
    broken = sum(_is_number(value) and not math.isfinite(value) for value in shown)
    if broken:
        yield words("not_finite", n=broken)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
