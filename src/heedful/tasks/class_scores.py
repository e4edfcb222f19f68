"""Scores of classification: accuracy, precision, recall, F1, the confusion matrix and calibration.

All of them are in percent, and pure functions of label ids and probabilities. Shapes: N examples, C classes.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .scoring import Score, calibration_error

Confusion = NDArray[np.int64]  # (C, C): the row is the true class, the column the predicted one
SURE = 1.959964  # standard deviations around a mean that hold 95 %


@dataclass(frozen=True)
class ClassScore:
    """The scores of one class in percent, and how many examples it has; 0 where a ratio is undefined."""

    label: str
    n: int
    precision: float
    recall: float
    f1: float

    @classmethod
    def of(cls, label: str, right: int, predicted: int, true: int) -> Self:
        """Return the scores of a class from how many examples are of it, predicted as it, and both."""
        precision = 100.0 * right / predicted if predicted else 0.0
        recall = 100.0 * right / true if true else 0.0
        return cls(label, true, precision, recall, 200.0 * right / (predicted + true) if predicted + true else 0.0)


@dataclass(frozen=True, eq=False)
class ClassScores:
    """The scores of a set of examples."""

    confusion: Confusion
    scores: dict[str, Score]
    classes: list[ClassScore]
    calibration: float

    def to_dict(self) -> dict[str, Any]:
        return {
            "n": int(self.confusion.sum()),
            "scores": {name: score.to_dict() for name, score in self.scores.items()},
            "labels": [row.label for row in self.classes],
            "classes": [asdict(row) for row in self.classes],
            "confusion": self.confusion.tolist(),
            "calibration": self.calibration,
        }


def class_scores(true: Sequence[int], probabilities: NDArray[np.floating[Any]], labels: Sequence[str]) -> ClassScores:
    """Return all scores of the true class ids (N) and the predicted probabilities (N, C)."""
    shares = np.asarray(probabilities, dtype=np.float64).reshape(-1, len(labels))
    ids, predicted = np.asarray(true, dtype=np.int64), shares.argmax(axis=1)
    confusion = confusion_matrix(ids, predicted, len(labels))
    right = accuracy(confusion)
    return ClassScores(
        confusion,
        {
            "accuracy": Score("accuracy", right, interval=share_interval(right, len(ids))),
            "macro_f1": Score("macro F1", macro_f1(confusion)),
        },
        each_class(confusion, labels),
        calibration_error(shares.max(axis=1).tolist(), (predicted == ids).tolist()),
    )


def confusion_matrix(
    true: Sequence[int] | Confusion, predicted: Sequence[int] | Confusion, n_classes: int
) -> Confusion:
    """Return (C, C): how many examples of the row's class were predicted as the column's."""
    rows, columns = np.asarray(true, dtype=np.int64), np.asarray(predicted, dtype=np.int64)
    if rows.shape != columns.shape or rows.ndim != 1:
        raise ValueError(f"as many predictions as true classes are needed, not {columns.shape} for {rows.shape}")
    for ids in (rows, columns):
        if len(ids) and not 0 <= ids.min() <= ids.max() < n_classes:
            raise ValueError(f"classes are numbered from 0 to {n_classes - 1}; here from {ids.min()} to {ids.max()}")
    return np.bincount(rows * n_classes + columns, minlength=n_classes * n_classes).reshape(n_classes, n_classes)


def accuracy(confusion: Confusion) -> float:
    """Return the percentage of examples that were predicted right."""
    return 100.0 * float(np.trace(confusion)) / max(1, int(confusion.sum()))


def each_class(confusion: Confusion, labels: Sequence[str]) -> list[ClassScore]:
    """Return precision, recall and F1 of each class."""
    counts = np.diag(confusion).tolist(), confusion.sum(axis=0).tolist(), confusion.sum(axis=1).tolist()
    return [ClassScore.of(*row) for row in zip(labels, *counts, strict=True)]


def class_table(classes: Sequence[Mapping[str, Any]], label: str, count: str) -> list[str]:
    """Return the scores of each class, as metrics.json has them, as the lines of a Markdown table."""
    lines = [f"| {label} | {count} | precision | recall | F1 |", "|---|---|---|---|---|"]
    for row in classes:
        name = " ".join(row["label"].replace("|", "\\|").split())
        lines.append(f"| {name} | {row['n']:,} | {row['precision']:.1f} | {row['recall']:.1f} | {row['f1']:.1f} |")
    return lines


def macro_f1(confusion: Confusion) -> float:
    """Return the mean of F1 over the classes that occur, true or predicted, however rare each is."""
    occurs = confusion.sum(axis=0) + confusion.sum(axis=1)
    present = occurs > 0
    return float(np.mean(200.0 * np.diag(confusion)[present] / occurs[present])) if present.any() else 0.0


def share_interval(share: float, n: int) -> float:
    """Return half of Wilson's 95 % interval of a percentage over n examples; it is never empty."""
    if not n:
        return 100.0
    p, z = share / 100.0, SURE
    return 100.0 * z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
