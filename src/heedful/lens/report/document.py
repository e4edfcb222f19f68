"""The JSON document of a report: each section's data is selected and counted here, and drawn by the scripts.

A section that has nothing to show is absent from the document. Numbers of tables are written here, because JSON does
not tell 7 from 7.0; names and sentences are left to the page, which knows its language.
"""

import base64
import math
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import product
from typing import Any

import torch
from torch import Tensor

from ...errors import PictureError
from ..document import Arrays, position_vectors
from .data import AttentionMap, Confusion, ForecastPlot, ReportData, ScoredSample, ScoreRow, SeenImage

SAMPLES_EACH = 5
LONGEST_TEXT = 600  # characters of a sample
MOST_CELLS = 5000  # of all attention maps together: more are no help to a reader
MOST_POINTS = 300  # of a curve; more are averaged in groups
MOST_CLASSES = 30  # drawn as a map; the most frequent mistakes are listed whatever there are
MOST_MISTAKES = 12
MOST_ANSWERS = 4
MOST_ROWS = 40  # of a table about the data
LARGEST_IMAGE = 200_000  # bytes
NOT_CURVES = frozenset({"kind", "step", "epoch", "time", "loss"})
PIECES = re.compile(r"\s+|[^\w\s]|\w+")  # a full stop is no part of the word before it
# Neither HTML nor UTF-8 can hold these.
UNWRITABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")

Rows = Sequence[Mapping[str, Any]]
Point = tuple[float, float]


def report_document(data: ReportData) -> dict[str, Any]:
    """Return everything that the page shows, by section, and the arrays."""
    arrays = Arrays()
    sections = {
        "facts": [[name, cell(value)] for name, value in data.facts],
        "scores": [_score(row) for row in data.scores],
        "notes": data.notes,
        "constructions": data.constructions,
        "by_length": _by_length(data.by_length),
        "comparison": _table(data.comparison),
        "curves": [
            {
                "title": chart.title,
                "x": chart.x_label,
                "lines": [[name, averaged(xy)] for name, xy in chart.lines.items()],
            }
            for chart in data.curves
        ],
        "confusion": None if data.confusion is None else _confusion(data.confusion),
        "samples": _samples(data.samples),
        "continuations": [[clipped(item.prompt), clipped(item.text)] for item in data.continuations],
        "images": [_image(item) for item in data.images if len(item.png) <= LARGEST_IMAGE],
        "forecasts": [_forecast(item) for item in data.forecasts],
        "attention": _attention(data.attention, arrays),
        "training": _training(data.log),
        "reading": _reading(data.reading),
        "positions": None if data.positions is None else _positions(data.positions, arrays),
    }
    present = {name: content for name, content in sections.items() if content}
    document = {"format": 1, "kind": "report", "language": data.language, "title": data.title, **present}
    return {**_clean(document), "arrays": arrays.to_dict(with_data=True)}


def cell(value: object) -> str | bool:
    """Format a table cell; booleans are left to the page, which translates them."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return value
    if isinstance(value, float):
        return decimal(value)
    if isinstance(value, int):
        return number(value)
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(map(str, map(cell, value)))
    return str(value)


def number(value: float) -> str:
    """Format with thousands separators and at most four significant digits: 12,345, 0.1235, 3e-05."""
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return "–"
    return f"{value:,.0f}" if 10_000 <= abs(value) < 1e12 else f"{value:,.4g}"


def decimal(value: float) -> str:
    """Format with a fixed number of decimal places, as in a column: 94.10, 0.087."""
    if not 1 <= abs(value) < 10_000:
        return f"{value:.3f}" if 0.1 <= abs(value) < 1 or value == 0 else number(float(value))
    return f"{value:.2f}"


def clipped(text: str, longest: int = LONGEST_TEXT) -> str:
    """Cut a long text and append the number of omitted characters."""
    left_out = len(text) - longest
    return text if left_out <= 0 else f"{text[:longest]}… (+{left_out:,})"


def differences(reference: str, output: str) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    """Split both texts into pieces and mark the pieces that occur in only one of them."""
    expected, written = PIECES.findall(reference), PIECES.findall(output)
    sides: tuple[list[tuple[str, bool]], list[tuple[str, bool]]] = ([], [])
    for kind, a, b, c, d in SequenceMatcher(None, expected, written, autojunk=False).get_opcodes():
        for side, pieces in zip(sides, (expected[a:b], written[c:d]), strict=True):
            if text := "".join(pieces):
                side.append((text, kind != "equal" and bool(text.strip())))
    return sides


def averaged(points: Sequence[Point], most: int = MOST_POINTS) -> list[Point]:
    """Reduce a curve to at most this many points, each the mean of a group."""
    n = min(most, len(points))
    groups = (points[len(points) * i // n : len(points) * (i + 1) // n] for i in range(n))
    return [(sum(x for x, _ in group) / len(group), sum(y for _, y in group) / len(group)) for group in groups]


def attention_weights(data: AttentionMap) -> Tensor:
    """Return the maps (H, T, S) after checking their shape and values."""
    weights = _tensor(data.weights)
    maps = weights[None] if weights is not None and weights.ndim == 2 else weights
    n_rows, n_columns = len(data.target), len(data.source)
    if maps is None or not maps.numel() or maps.shape != (len(maps), n_rows, n_columns):
        raise PictureError(
            f"the attention map {data.title!r} names {n_rows} target and {n_columns} source words; "
            "its weights must be (T, S), or (H, T, S) for several heads, and none of them 0"
        )
    if data.heads is not None and len(data.heads) != len(maps):
        raise PictureError(f"the attention map {data.title!r} names {len(data.heads)} heads and has {len(maps)}")
    if not bool(((maps >= 0) & (maps <= 1.01)).all()):  # rounding may pass 1
        raise PictureError(f"the attention map {data.title!r} holds weights outside 0 to 1; were they scores?")
    return maps


def position_table(data: Any) -> Tensor:
    """Return the table (T, D) after checking its shape and values."""
    table = _tensor(data)
    if table is None or table.ndim != 2 or not table.numel() or not table.isfinite().all():
        raise PictureError("a positional table must be (T, D), of finite numbers, and neither T nor D is 0")
    return table


def _tensor(data: Any) -> Tensor | None:
    """Convert to a tensor; None if the rows differ in length or hold something that is not a number."""
    try:
        return torch.as_tensor(data, dtype=torch.float32).detach().cpu()
    except (TypeError, ValueError):
        return None


def _score(row: ScoreRow) -> dict[str, str]:
    interval = "" if row.interval is None else f" ({' – '.join(map(decimal, row.interval))})"
    return {
        "set": row.set_name,
        "metric": row.metric,
        "text": decimal(row.value) + interval,
        "signature": row.signature,
    }


def _by_length(data: Mapping[str, Sequence[tuple[str, int, float]]]) -> dict[str, Any] | None:
    """Return a line for each model over common length buckets: [score, number of sentences] or null."""
    buckets = list(dict.fromkeys(label for rows in data.values() for label, _, _ in rows))
    scores = {model: {label: (score, count) for label, count, score in rows} for model, rows in data.items()}
    lines = [(model, [points.get(label) for label in buckets]) for model, points in scores.items()]
    has_score = any(point and math.isfinite(point[0]) for _, points in lines for point in points)
    return {"buckets": buckets, "lines": lines} if has_score else None


def _table(rows: Rows, most: int | None = None) -> dict[str, Any] | None:
    """Return a table with the keys of all rows as columns; missing values are dashes."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    body = [[cell(row.get(key)) for key in keys] for row in rows[:most]]
    return {"keys": keys, "rows": body, "total": len(rows)} if keys else None


def _confusion(data: Confusion) -> dict[str, Any]:
    """Return the shares of each row, if few enough classes to draw, and the most frequent mistakes."""
    shares = [[count / max(1, sum(row)) for count in row] for row in data.counts]
    return {
        "labels": list(data.labels),
        "shares": shares if len(data.labels) <= MOST_CLASSES else None,
        "mistakes": frequent_mistakes(data),
    }


def frequent_mistakes(data: Confusion, most: int = MOST_MISTAKES) -> list[list[str]]:
    """Return the true class, the answer and the number of the most frequent mistakes."""
    pairs = product(enumerate(data.labels), repeat=2)
    errors = [(data.counts[row][column], truth, answer) for (row, truth), (column, answer) in pairs if row != column]
    mistakes = sorted((mistake for mistake in errors if mistake[0]), reverse=True)
    return [[truth, answer, number(count)] for count, truth, answer in mistakes[:most]]


def _samples(data: Sequence[ScoredSample]) -> dict[str, Any] | None:
    """Select the best, the worst and some random samples, each once; NaN counts as the worst score."""
    if not data:
        return None
    ranked = sorted(data, key=lambda sample: math.inf if math.isnan(sample.score) else -sample.score)
    each = min(SAMPLES_EACH, math.ceil(len(ranked) / 3))
    best, rest = ranked[:each], ranked[each:]
    worst, middle = rest[-each:][::-1], rest[:-each]
    chosen = random.Random(0).sample(middle, min(each, len(middle)))  # the same ones every time
    groups = {"worst": worst, "random": chosen, "best": best}
    return {
        "groups": {name: [_sample(sample) for sample in samples] for name, samples in groups.items() if samples},
        "shown": number(sum(map(len, groups.values()))),
        "total": number(len(data)),
    }


def _sample(sample: ScoredSample) -> dict[str, Any]:
    source, reference, output = map(clipped, (sample.source, sample.reference, sample.output))
    expected, written = differences(reference, output)
    same = sample.reference == sample.output
    texts = {"source": source, "reference": expected, "output": written, "same": same}
    return texts | {"score": number(sample.score), "exact": sample.exact}


def _image(data: SeenImage) -> dict[str, Any]:
    return {
        "title": data.title,
        "png": "data:image/png;base64," + base64.b64encode(data.png).decode("ascii"),
        "answers": data.answers[:MOST_ANSWERS],
        "truth": data.truth,
        "heads": [[list(row) for row in head] for head in data.heads],
    }


def _forecast(data: ForecastPlot) -> dict[str, Any]:
    if len(data.patches) != len(data.weights):
        raise PictureError(
            f"the forecast {data.title!r} has {len(data.patches)} patches and {len(data.weights)} weights; "
            "give a weight for each patch"
        )
    values = {name: list(getattr(data, name)) for name in ("context", "truth", "forecast", "patches", "weights")}
    return {"title": data.title, **values, "lines": {name: list(line) for name, line in data.lines.items()}}


def _attention(data: Sequence[AttentionMap], arrays: Arrays) -> dict[str, Any] | None:
    """Return the maps that fit, the mean of the heads first, and the titles of those left out."""
    maps: list[dict[str, Any]] = []
    left_out: list[list[Any]] = []
    room = MOST_CELLS
    for item in data:
        weights = attention_weights(item)
        large = weights[0].numel()
        small = weights.numel() if len(weights) > 1 else 0
        if large > room:
            left_out.append([item.title, False])
            continue
        has_heads = large + small <= room
        if not has_heads:
            left_out.append([item.title, True])
        room -= large + small * has_heads
        maps.append(
            {
                "title": item.title,
                "source": list(item.source),
                "target": list(item.target),
                "n_heads": len(weights),
                "names": None if item.heads is None else list(item.heads),
                "mean": arrays.put(weights.mean(dim=0)),
                "heads": [arrays.put(head) for head in weights] if has_heads and small else [],
            }
        )
    return {"maps": maps, "left_out": left_out} if data else None


def _training(log: Rows) -> dict[str, Any] | None:
    """Return a run's log as curves: the losses in one chart, every other quantity in its own."""
    rows_with_step = [row for row in log if _is_number(row.get("step"))]
    kinds = {kind: [row for row in rows_with_step if row.get("kind") == kind] for kind in ("train", "valid")}
    losses = [(kind, points) for kind, rows in kinds.items() if (points := _points(rows, "loss"))]
    charts: list[tuple[str, list[tuple[str, list[Point]]]]] = [("loss", losses)]
    for kind in ("valid", "train"):
        charts += [(key, [(kind, _points(kinds[kind], key))]) for key in _quantities(kinds[kind])]
    charts = [chart for chart in charts if any(math.isfinite(y) for _, points in chart[1] for _, y in points)]
    if not charts:
        return None
    measured = [(row["loss"], row["step"]) for row in kinds["valid"] if _is_number(row.get("loss"))]
    finite = [pair for pair in measured if math.isfinite(pair[0])]
    present = [
        row[key] for rows in kinds.values() for key in ["loss", *_quantities(rows)] for row in rows if key in row
    ]
    return {
        "charts": charts,
        "lowest": list(map(number, min(finite))) if finite else None,
        "averaged": MOST_POINTS if max(map(len, kinds.values())) > MOST_POINTS else None,
        "broken": sum(_is_number(value) and not math.isfinite(value) for value in present),
    }


def _points(rows: Rows, key: str) -> list[Point]:
    points = [(float(row["step"]), float(row[key])) for row in rows if _is_number(row.get(key))]
    return averaged(sorted(points, key=lambda point: point[0]))


def _quantities(rows: Rows) -> list[str]:
    """Return the keys with numeric values, in order of appearance."""
    keys = dict.fromkeys(key for row in rows for key, value in row.items() if _is_number(value))
    return [key for key in keys if key not in NOT_CURVES]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _reading(data: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return single values first, then each group: counts by reason as bars, everything else as tables."""
    if not data:
        return None
    values = {key: value for key, value in data.items() if not _is_group(value) and value not in ([], ())}
    facts = [[key, list(map(cell, value)) if isinstance(value, list) else cell(value)] for key, value in values.items()]
    groups = [[key, _group(value)] for key, value in data.items() if _is_group(value) and value]
    return {"facts": facts, "groups": groups}


def _is_group(value: object) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, list | tuple) and any(isinstance(v, Mapping) for v in value)
    )


def _group(group: Any) -> dict[str, Any]:
    if not isinstance(group, Mapping):
        return {"table": _table([dict(row) for row in group], MOST_ROWS)}
    tallies = dict(_tallies(group))
    if len(tallies) == len(group):
        total = sum(count for count, _ in tallies.values()) or 1
        return {"bars": [[name, n / total, number(n), places] for name, (n, places) in tallies.items()]}
    inner = [value if isinstance(value, Mapping) else {"": value} for value in group.values()]
    named = _table([{"": name, **row} for name, row in zip(group, inner, strict=True)], MOST_ROWS)
    return {"table": named, "named": True}


def _tallies(group: Mapping[str, Any]) -> Iterator[tuple[str, tuple[int, str]]]:
    """Yield the name, count and first places of each tally: 12, or {"count": 12, "first": ["a.tsv:3", …]}."""
    for name, value in group.items():
        count, places = (value.get("count"), value.get("first", ())) if isinstance(value, Mapping) else (value, ())
        if isinstance(count, int) and count >= 0:
            yield name, (count, ", ".join(map(str, places)))


def _positions(data: Any, arrays: Arrays) -> dict[str, Any]:
    table = position_table(data)
    return position_vectors("sinusoidal", table[:100], arrays) | {"size": list(table.shape)}


def _clean(value: Any) -> Any:
    """Make a value safe for JSON: replace unwritable characters, and numbers that are not finite by null."""
    if isinstance(value, str):
        return UNWRITABLE.sub("\ufffd", value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {_clean(str(key)): _clean(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(inner) for inner in value]
    return value
