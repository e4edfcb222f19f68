"""The data of a report. A part that is empty or None is absent from the page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ScoreRow:
    """One score of one set. The signature says how it was measured, so that others can compare."""

    set_name: str
    metric: str
    value: float
    interval: tuple[float, float] | None = None
    signature: str = ""


@dataclass(frozen=True)
class ScoredSample:
    """An input with its reference, the model's output and the output's score."""

    source: str
    reference: str
    output: str
    score: float
    exact: bool = False


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """Weights between words: one map (T, S), or one for each head (H, T, S), as a tensor or nested lists."""

    title: str
    source: Sequence[str]
    target: Sequence[str]
    weights: Any
    heads: Sequence[str] | None = None  # what the H maps are called: "head 0" and so on unless given


@dataclass(frozen=True)
class Confusion:
    """A confusion matrix: rows of `counts` are true classes, columns are predicted classes."""

    labels: Sequence[str]
    counts: Sequence[Sequence[int]]


@dataclass(frozen=True, eq=False)
class SeenImage:
    """An image as the bytes of a PNG, its predicted classes, and each head's weight for each patch."""

    title: str
    png: bytes
    answers: Sequence[tuple[str, float]]  # classes with their probabilities, the likeliest first
    truth: str
    heads: Sequence[Sequence[Sequence[float]]] = ()  # (H, rows, columns)


@dataclass(frozen=True, eq=False)
class ForecastPlot:
    """The context of a series, its true continuation and its forecast; `lines` are other forecasts by name.

    `patches` are (first step, one past the last) of each patch, and `weights` how much each was looked at.
    """

    title: str
    context: Sequence[float]
    truth: Sequence[float]
    forecast: Sequence[float]
    lines: Mapping[str, Sequence[float]] = field(default_factory=dict)
    patches: Sequence[tuple[int, int]] = ()
    weights: Sequence[float] = ()


@dataclass(frozen=True)
class CurveChart:
    """Curves over a common x: points (x, y) by the name of the line."""

    title: str
    x_label: str
    lines: Mapping[str, Sequence[tuple[float, float]]]


@dataclass(frozen=True)
class Continuation:
    """A prompt and the model's continuation of it."""

    prompt: str
    text: str


@dataclass(frozen=True, kw_only=True, eq=False)
class ReportData:
    """Everything a report can show, in the order of the page."""

    title: str
    language: str = "en"
    facts: Sequence[tuple[str, object]] = ()
    scores: Sequence[ScoreRow] = ()
    constructions: Sequence[tuple[str, int, int]] = ()  # name, correct, total
    by_length: Mapping[str, Sequence[tuple[str, int, float]]] = field(default_factory=dict)
    # by model: bucket, how many sentences, score
    comparison: Sequence[Mapping[str, object]] = ()  # a row for each run, under the same headings
    curves: Sequence[CurveChart] = ()
    confusion: Confusion | None = None
    samples: Sequence[ScoredSample] = ()
    continuations: Sequence[Continuation] = ()
    images: Sequence[SeenImage] = ()
    forecasts: Sequence[ForecastPlot] = ()
    attention: Sequence[AttentionMap] = ()
    log: Sequence[Mapping[str, Any]] = ()  # rows of log.jsonl, of the kinds "train" and "valid"
    reading: Mapping[str, Any] | None = None  # what was read and what was dropped: numbers, and counts by reason
    positions: Any = None  # (T, D) the sinusoids, where the model uses them
    notes: Sequence[str] = ()
