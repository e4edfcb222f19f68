"""What a report is made from: plain data. A part that is empty or None is simply absent from the page."""

from __future__ import annotations

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
class Sample:
    """One sentence, what it should become and what it became."""

    source: str
    reference: str
    output: str
    score: float
    exact: bool = False


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """Weights between words: one map (T, S), or one for each head (H, T, S); a tensor or nested lists."""

    title: str
    source: Sequence[str]
    target: Sequence[str]
    weights: Any
    heads: Sequence[str] | None = None  # what the H maps are called: "head 0" and so on unless given


@dataclass(frozen=True, kw_only=True, eq=False)
class ReportData:
    """Everything a report may show, in the order in which it shows it."""

    title: str
    language: str = "en"
    facts: Sequence[tuple[str, object]] = ()
    scores: Sequence[ScoreRow] = ()
    constructions: Sequence[tuple[str, int, int]] = ()  # name, correct, total
    by_length: Mapping[str, Sequence[tuple[str, int, float]]] = field(default_factory=dict)
    # by model: bucket, how many sentences, score
    comparison: Sequence[Mapping[str, object]] = ()  # a row for each run, under the same headings
    samples: Sequence[Sample] = ()
    attention: Sequence[AttentionMap] = ()
    log: Sequence[Mapping[str, Any]] = ()  # rows of log.jsonl, of the kinds "train" and "valid"
    reading: Mapping[str, Any] | None = None  # what was read and what was dropped: numbers, and counts by reason
    positions: Any = None  # (T, D)
    notes: Sequence[str] = ()
