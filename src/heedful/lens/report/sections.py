"""The report's sections: each takes the data and gives its part of the page, or None where there is nothing to show."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .charts import Bar, Point, Series, bar_table, line_chart
from .classes import confusion
from .curves import training_charts
from .data import AttentionMap, Continuation, ReportData, Sample, ScoreRow
from .differences import marked
from .forecasts import forecasts
from .heatmap import attention_figure, n_cells
from .images import images
from .markup import Html, clipped, join, tag
from .positions import positional_map, table_of, waves
from .reading import reading
from .tables import facts, table
from .words import Words, decimal, number

SAMPLES_EACH = 5
MOST_ACROSS = 5  # scores side by side; more stand one below the other
LONGEST_TEXT = 600  # characters of a sample
MOST_CELLS = 5000  # of all attention maps together; a cell is about a hundred bytes


@dataclass(frozen=True)
class Section:
    """A part of the page; `name` is its address in it."""

    name: str
    heading: str
    body: Html


def sections(data: ReportData, words: Words) -> list[Section]:
    """Those that have something to show, in the page's order."""
    bodies = {
        "facts": facts(data.facts, words),
        "scores": scores(data.scores, words),
        "notes": notes(data.notes),
        "constructions": constructions(data.constructions, words),
        "by_length": by_length(data.by_length, words),
        "comparison": comparison(data.comparison, words),
        "confusion": confusion(data.confusion, words),
        "samples": samples(data.samples, words),
        "continuations": continuations(data.continuations, words),
        "images": images(data.images, words),
        "forecasts": forecasts(data.forecasts, words),
        "attention": attention(data.attention, words),
        "training": training(data.log, words),
        "reading": reading(data.reading, words),
        "positions": positions(data.positions, words),
    }
    return [Section(name, words(name), body) for name, body in bodies.items() if body]


def scores(given: Sequence[ScoreRow], words: Words) -> Html | None:
    """A row for each set and a column for each metric, with the intervals, and how each was measured."""
    if not given:
        return None
    metrics, sets = (dict.fromkeys(names) for names in zip(*((row.metric, row.set_name) for row in given), strict=True))
    found = {(row.set_name, row.metric): _score(row) for row in given}
    headings = [words("set"), *map(words.name, metrics)]
    rows = [[words.name(name), *(found.get((name, metric), "–") for metric in metrics)] for name in sets]
    if len(metrics) > MOST_ACROSS:
        headings = [words("score"), *map(words.name, sets)]
        rows = [[words.name(metric), *(found.get((name, metric), "–") for name in sets)] for metric in metrics]
    signatures = dict.fromkeys((row.metric, row.signature) for row in given if row.signature)
    listed = (
        tag("div", tag("dt", words.name(metric)), tag("dd", signature, class_="mono"))
        for metric, signature in signatures
    )
    below = join(tag("h3", words("signature")), tag("dl", *listed, class_="signatures")) if signatures else None
    return join(table(headings, rows, numbers=1), below)


def _score(row: ScoreRow) -> str:
    interval = "" if row.interval is None else f" ({' – '.join(map(decimal, row.interval))})"
    return decimal(row.value) + interval


def constructions(given: Sequence[tuple[str, int, int]], words: Words) -> Html | None:
    """How often each construction came out right."""
    bars = []
    for name, correct, total in given:
        share = correct / total if total else 0.0
        written = f"{100 * share:.1f} % ({correct:,}/{total:,})" if total else "– (0)"
        bars.append(Bar(words.name(name), share, written))
    return bar_table((words("construction"), words("share_correct")), bars) if bars else None


def by_length(given: Mapping[str, Sequence[tuple[str, int, float]]], words: Words) -> Html | None:
    """A line for each model over the same buckets of source length."""
    buckets = list(dict.fromkeys(label for rows in given.values() for label, _, _ in rows))
    series = []
    for model, rows in given.items():
        found = {label: (count, score) for label, count, score in rows}
        points = []
        for place, label in enumerate(buckets):
            count, score = found.get(label, (0, math.nan))
            points.append(Point(float(place), score, f"{label} ({words('sentences', n=number(count))})"))
        series.append(Series(model, points))
    chart = line_chart(words("score"), series, words("length"), x_names=buckets)
    return tag("div", chart, class_="single") if chart else None


def comparison(given: Sequence[Mapping[str, object]], words: Words) -> Html | None:
    """A row for each run; a value that a run does not have is a dash."""
    keys = list(dict.fromkeys(key for row in given for key in row))
    if not keys:
        return None
    rows = [[words.value(row.get(key)) for key in keys] for row in given]
    return table([words.name(key) for key in keys], rows, numbers=1)


def samples(given: Sequence[Sample], words: Words) -> Html | None:
    """The best, the worst and some at random, each sentence once."""
    if not given:
        return None
    legend = tag("p", tag("del", words("missing_words")), " · ", tag("ins", words("extra_words")), class_="soft")
    parts: list[Html] = []
    shown = 0
    for name, chosen in _chosen(given).items():
        if chosen:
            parts += [tag("h3", words(name)), *(_sample(sample, words) for sample in chosen)]
        shown += len(chosen)
    count = tag("p", words("out_of", shown=number(shown), total=number(len(given))), class_="soft")
    return join(legend, *parts, count)


def continuations(given: Sequence[Continuation], words: Words) -> Html | None:
    """Each text, and what the model made of it."""
    entries = (
        tag("div", tag("dl", _term(words("prompt"), one.prompt), _term(words("output"), one.text)), class_="sample")
        for one in given
    )
    return join(*entries) if given else None


def _term(name: str, text: str) -> Html:
    return join(tag("dt", name), tag("dd", clipped(text, LONGEST_TEXT), dir="auto"))


def attention(given: Sequence[AttentionMap], words: Words) -> Html | None:
    """Maps while there is room for them; what is left out is named."""
    if not given:
        return None
    figures: list[Html] = []
    left_out: list[str] = []
    room = MOST_CELLS
    for one in given:
        large, small = n_cells(one)
        if large > room:
            left_out.append(one.title)
            continue
        all_fit = large + small <= room
        if not all_fit:
            left_out.append(f"{one.title} ({words('each_head')})")
        figures.append(attention_figure(one, words, heads=all_fit))
        room -= large + small * all_fit
    note = tag("p", words("maps_left_out", titles=", ".join(left_out)), class_="note") if left_out else None
    return join(tag("p", words("attention_reading"), class_="soft"), *figures, note)


def training(log: Sequence[Mapping[str, Any]], words: Words) -> Html | None:
    """The curves of the log."""
    charts, remarks = training_charts(log, words)
    if not charts:
        return None
    return join(tag("div", *charts, class_="charts"), *(tag("p", remark, class_="soft") for remark in remarks))


def positions(given: Any, words: Words) -> Html | None:
    """The table as a picture, and its waves."""
    if given is None:
        return None
    table = table_of(given)
    figures = tag("div", positional_map(table, words), waves(table, words), class_="charts")
    return join(tag("p", words("positions_reading"), class_="soft"), figures)


def notes(given: Sequence[str]) -> Html | None:
    """What else a reader should know."""
    return join(*(tag("p", note, dir="auto") for note in given)) if given else None


def _chosen(given: Sequence[Sample]) -> dict[str, list[Sample]]:
    """By score; one that is not a number counts as the worst. The random ones are the same every time."""
    ranked = sorted(given, key=lambda sample: math.inf if math.isnan(sample.score) else -sample.score)
    each = min(SAMPLES_EACH, math.ceil(len(ranked) / 3))
    best, rest = ranked[:each], ranked[each:]
    worst, middle = rest[-each:][::-1], rest[:-each]
    return {"worst": worst, "random": random.Random(0).sample(middle, min(each, len(middle))), "best": best}


def _sample(sample: Sample, words: Words) -> Html:
    source, reference, output = (
        clipped(text, LONGEST_TEXT) for text in (sample.source, sample.reference, sample.output)
    )
    verdict = " · ".join([number(sample.score), *([words("exact")] if sample.exact else [])])
    entries: list[tuple[str, object]] = [(words("source"), source)]
    if sample.reference == sample.output:
        entries.append((words("output"), output))
        verdict += f" · {words('same_as_reference')}"
    else:
        theirs, ours = marked(reference, output)
        entries += [(words("reference"), theirs), (words("output"), ours or words("nothing"))]
    rows = (join(tag("dt", name), tag("dd", text, dir="auto")) for name, text in entries)
    score = join(tag("dt", words("score")), tag("dd", verdict, class_="soft"))
    return tag("div", tag("dl", *rows, score), class_="sample")
