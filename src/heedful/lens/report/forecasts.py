"""Forecasts beside what came, and which patches of the past they were made from."""

from __future__ import annotations

from collections.abc import Sequence

from .charts import LEFT, RIGHT, WIDTH, Point, Series, line_chart
from .data import ForecastPlot
from .markup import Html, join, tag
from .palette import level_of
from .words import Words, number

STRIP = 16.0  # the height of the patches


def forecasts(given: Sequence[ForecastPlot], words: Words) -> Html | None:
    """A chart each."""
    if not given:
        return None
    return join(
        tag("p", words("forecasts_reading"), class_="soft"),
        tag("div", *(_plot(one, words) for one in given), class_="charts"),
    )


def _plot(given: ForecastPlot, words: Words) -> Html:
    known = len(given.known)

    def after(values: Sequence[float]) -> list[Point]:
        """Joined to the last known value."""
        first = [Point(known - 1, given.known[-1])] if known else []
        return first + [Point(known + step, value) for step, value in enumerate(values)]

    series = [
        Series(words("known"), [Point(step, value) for step, value in enumerate(given.known)]),
        Series(words("forecast"), after(given.forecast)),
        Series(words("truth"), after(given.truth)),
        *(Series(words.name(name), after(values)) for name, values in given.lines.items()),
    ]
    chart = line_chart(given.title, series, words("step_in_time"))
    return tag("div", chart, _patches(given, words) if given.patches else None)


def _patches(given: ForecastPlot, words: Words) -> Html:
    """Under the axis, each from its first step to the next one's, the stronger the more it was looked at."""
    last = len(given.known) + len(given.truth) - 1
    scale = (WIDTH - LEFT - RIGHT) / max(1, last)
    top = max(given.weights, default=0.0) or 1.0
    ends = [*(start for start, _ in given.patches[1:]), given.patches[-1][1]]
    cells = (
        tag(
            "rect",
            tag("title", f"{start}–{stop - 1}: {number(weight)}"),
            class_=f"h{level_of(weight / top)}",
            x=round(LEFT + scale * start, 1),
            width=round(scale * (end - start), 1),
            height=STRIP,
        )
        for (start, stop), end, weight in zip(given.patches, ends, given.weights, strict=True)
    )
    caption = tag("figcaption", words("patches"))
    drawing = tag("svg", *cells, viewBox=f"0 0 {WIDTH:.0f} {STRIP:.0f}", class_="fluid", role="img")
    return tag("figure", caption, drawing, class_="chart")
