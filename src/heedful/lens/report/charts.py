"""Curves and bars as inline SVG. Sizes are those of a phone's column, so that letters stay readable there.

The text around a chart is HTML, which wraps; only what must stand at a place is inside the SVG.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from .markup import Html, join, tag
from .palette import DASHES
from .words import number

WIDTH, HEIGHT = 360.0, 210.0
LEFT, RIGHT, TOP, BOTTOM = 46.0, 8.0, 10.0, 36.0
MOST_DOTS = 40  # a longer curve is a line alone


class Point(NamedTuple):
    """A place on a curve; the note is shown when one points at it."""

    x: float
    y: float
    note: str = ""


class Bar(NamedTuple):
    """A share from 0 to 1, and what is written beside it and below its name."""

    name: str
    share: float
    written: str
    note: str = ""


@dataclass(frozen=True)
class Series:
    """A named curve. Where y is not a finite number, the curve has a gap."""

    name: str
    points: Sequence[Point]


@dataclass(frozen=True)
class Axis:
    """Numbers laid along a stretch of the page, with round numbers marked."""

    low: float
    high: float
    start: float
    end: float
    ticks: list[float] = field(default_factory=list)

    @classmethod
    def over(cls, values: Sequence[float], start: float, end: float, *, rounded: bool) -> Axis:
        """Around these values; `rounded` out to the next marks, or else as wide as the values."""
        low, high = min(values), max(values)
        if rounded and 0 < low < high / 2:
            low = 0.0  # close enough to zero to be seen beside it
        if high - low <= 1e-9 * abs(high):
            low, high = low - (abs(low) / 2 or 0.5), high + (abs(high) / 2 or 0.5)
        step = _round_step((high - low) / 4)
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        ticks = [float(f"{n * step:.10g}") for n in range(first, last + 1)]
        if rounded:
            low, high = ticks[0], ticks[-1]
        return cls(low, high, start, end, [tick for tick in ticks if low <= tick <= high])

    def at(self, value: float) -> float:
        """Where on the page a value stands."""
        return round(self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start), 1)


def line_chart(
    title: str, series: Sequence[Series], x_label: str, *, x_names: Sequence[str] = (), y_label: str = ""
) -> Html:
    """Curves over a common x; where `x_names` are given, x counts them from 0. Empty without a finite point."""
    finite = [point for one in series for point in one.points if math.isfinite(point.y)]
    if not finite:
        return Html("")
    xs = [-0.5, len(x_names) - 0.5] if x_names else [point.x for point in finite]
    across = Axis.over(xs, LEFT, WIDTH - RIGHT, rounded=False)
    up = Axis.over([point.y for point in finite], HEIGHT - BOTTOM, TOP, rounded=True)
    label = f"{title}: " + ", ".join(one.name for one in series)
    drawing = tag(
        "svg",
        _axes(across, up, x_label, x_names),
        *(_curve(one, place, across, up) for place, one in enumerate(series)),
        viewBox=f"0 0 {WIDTH:.0f} {HEIGHT:.0f}",
        class_="fluid",
        role="img",
        aria_label=label,
    )
    keys = [_key(one.name, place) for place, one in enumerate(series)] if len(series) > 1 else []
    unit = tag("span", y_label, class_="key") if y_label else None
    return tag("figure", tag("figcaption", tag("b", title), unit, *keys), drawing, class_="chart")


def bar_table(headings: tuple[str, str], bars: Sequence[Bar]) -> Html:
    """A row for each bar, with its name before it and its value behind."""
    rows = [
        tag(
            "tr",
            tag("th", bar.name, tag("div", bar.note, class_="mono") if bar.note else None, scope="row", dir="auto"),
            tag("td", _bar(bar.share, f"{bar.name}: {bar.written}"), class_="wide"),
            tag("td", bar.written, class_="number"),
        )
        for bar in bars
    ]
    head = tag("tr", tag("th", headings[0], scope="col"), tag("th", headings[1], scope="col", colspan=2))
    return tag("div", tag("table", tag("thead", head), tag("tbody", *rows)), class_="scroll")


def _bar(share: float, label: str) -> Html:
    width = round(100 * min(1.0, max(0.0, share)), 2)
    return tag(
        "svg",
        tag("title", label),
        tag("rect", class_="track", width=100, height=10),
        tag("rect", class_="fill", width=width, height=10),
        viewBox="0 0 100 10",
        preserveAspectRatio="none",
        class_="bar",
        role="img",
        aria_label=label,
    )


def _axes(across: Axis, up: Axis, x_label: str, x_names: Sequence[str]) -> Html:
    """Quiet lines behind the round values of y, the values themselves, and x below."""
    lines = [tag("line", class_="grid", x1=LEFT, x2=WIDTH - RIGHT, y1=up.at(y), y2=up.at(y)) for y in up.ticks]
    marks = [tag("text", number(y), class_="y", x=LEFT - 7, y=up.at(y) + 4, text_anchor="end") for y in up.ticks]
    below = HEIGHT - BOTTOM + 16
    names = list(enumerate(x_names)) if x_names else [(x, number(x)) for x in across.ticks]
    every = math.ceil(len(names) / 9)
    marks += [
        tag("text", name, class_="x", x=across.at(x), y=below, text_anchor="middle") for x, name in names[::every]
    ]
    middle = (LEFT + WIDTH - RIGHT) / 2
    return join(*lines, *marks, tag("text", x_label, x=middle, y=HEIGHT - 3, text_anchor="middle"))


def _curve(series: Series, place: int, across: Axis, up: Axis) -> Html:
    hue = f"c{place % len(DASHES)}"
    pieces = [list(run) for whole, run in groupby(series.points, lambda point: math.isfinite(point.y)) if whole]
    lines = [
        tag("polyline", class_=f"line {hue}", points=" ".join(f"{across.at(p.x)},{up.at(p.y)}" for p in piece))
        for piece in pieces
    ]
    drawn = [point for piece in pieces for point in piece]
    dots = drawn if len(drawn) <= MOST_DOTS else drawn[-1:]
    return join(*lines, *(_dot(series.name, point, hue, across, up) for point in dots))


def _dot(name: str, point: Point, hue: str, across: Axis, up: Axis) -> Html:
    note = point.note or number(point.x)
    title = tag("title", f"{name} · {note}: {number(point.y)}")
    return tag("circle", title, class_=f"dot {hue}", cx=across.at(point.x), cy=up.at(point.y), r=2.6)


def _key(name: str, place: int) -> Html:
    hue = f"c{place % len(DASHES)}"
    stroke = tag("line", class_=f"line {hue}", x1=1, x2=23, y1=5, y2=5)
    return tag("span", tag("svg", stroke, width=24, height=10, aria_hidden="true"), name, class_="key")


def _round_step(rough: float) -> float:
    """The next round number: 1, 2, 2.5, 5 or 10 of its size."""
    size = 10.0 ** math.floor(math.log10(rough))
    return next(size * times for times in (1, 2, 2.5, 5, 10) if size * times >= rough * (1 - 1e-9))
