"""How good a classifier is on texts whose classes are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from ...data.labeled_texts import LabeledText, read_labeled_texts
from ...data.report import TextReport
from ...errors import ConfigError, DataError
from ..class_scores import ClassScores, class_scores
from ..predictor import ItemError
from .classifier import Classifier
from .splitting import number_of

CHUNK = 1024  # texts asked about at once


def evaluate_files(
    classifier: Classifier, paths: Sequence[str], columns: Sequence[str] | None = None
) -> dict[str, Any]:
    """On every text of the files, as a user would ask; what is left out is said."""
    reading = TextReport()
    scores = evaluate(classifier, read_labeled_texts(paths, columns=columns, reading=reading))
    left_out = [f"left out: {reason}: {tally}" for reason, tally in reading.dropped.items()]
    return {**scores.to_dict(), **({"verdict": left_out} if left_out else {})}


def evaluate(classifier: Classifier, examples: Iterable[LabeledText]) -> ClassScores:
    """One that cannot be read is refused, as is a class that was not learned: the score would be of another set."""
    labels = classifier.settings.labels
    if classifier.settings.means != "one":
        raise ConfigError("this classifier's classes do not exclude each other; it is not scored by the likeliest one")
    numbers = {label: number for number, label in enumerate(labels)}
    true, shares = list[int](), list[list[float]]()
    for several in _chunks(iter(examples)):
        true += [number_of(one, numbers) for one in several]
        shares += [[answer[label] for label in labels] for answer in _answers(classifier, several)]
    if not true:
        raise DataError("there is no labelled text to evaluate on")
    return class_scores(true, np.array(shares), labels)


def _answers(classifier: Classifier, several: Sequence[LabeledText]) -> list[dict[str, float]]:
    asked = [one.text if one.second is None else (one.text, one.second) for one in several]
    try:
        return classifier.predict(asked)
    except ItemError as error:
        raise DataError(f"{several[error.index].place}: {error.reason}") from None


def _chunks(examples: Iterator[LabeledText]) -> Iterator[list[LabeledText]]:
    while several := list(islice(examples, CHUNK)):
        yield several
