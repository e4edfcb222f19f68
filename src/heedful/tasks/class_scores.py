"""Scores of classes, of tagged entities (entity-level F1) and of answers to questions (exact match and F1).

All of them are in percent, and pure functions of labels, probabilities, tags or texts. Shapes: N examples, C classes.
"""

import math
import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from .scoring import Score, calibration_error

Integers = NDArray[np.integer[Any]]
Confusion = NDArray[np.int64]  # (C, C): the row is the true class, the column the predicted one
SURE = 1.959964  # standard deviations around a mean that hold 95 %

ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)
KOREAN_QUOTES = str.maketrans("", "", "'\"《》<>〈〉‘’()")  # what KorQuAD's script removes besides
UNSPACED = re.compile("[\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u3400-\u9fff\uac00-\ud7a3]")  # Hangul, kana, Han


def evaluation(n: int, scores: Mapping[str, Score], **values: Any) -> dict[str, Any]:
    """Return the scores of n examples as metrics.json has them, with further values."""
    return {"n": n, "scores": {name: score.to_dict() for name, score in scores.items()}, **values}


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
        return evaluation(
            int(self.confusion.sum()),
            self.scores,
            labels=[row.label for row in self.classes],
            classes=[asdict(row) for row in self.classes],
            confusion=self.confusion.tolist(),
            calibration=self.calibration,
        )


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


def baseline_scores(
    train: Integers, true: Integers, labels: Sequence[str], linear: Integers, name: str, n_fitted: int
) -> dict[str, Any]:
    """Return the accuracy of always answering the class most common in training, and of a linear model's answers.

    `name` says what the linear model reads, and `n_fitted` how many of the training examples it was fitted on.
    """
    commonest = int(np.bincount(train).argmax())
    constant, right = 100.0 * float((true == commonest).mean()), 100.0 * float((true == linear).mean())
    fitted = f"fitted on {n_fitted:,} of {len(train):,} examples" if n_fitted < len(train) else ""
    return {
        "commonest": Score(f"accuracy of always answering {labels[commonest]!r}", constant).to_dict(),
        "linear": Score(f"accuracy of a linear model over {name}", right, signature=fitted).to_dict(),
    }


def confusion_matrix(
    true: Sequence[int] | Confusion, predicted: Sequence[int] | Confusion, n_classes: int
) -> Confusion:
    """Return (C, C): how many examples of the row's class were predicted as the column's."""
    rows, columns = np.asarray(true, dtype=np.int64), np.asarray(predicted, dtype=np.int64)
    return np.bincount(rows * n_classes + columns, minlength=n_classes * n_classes).reshape(n_classes, n_classes)


def accuracy(confusion: Confusion) -> float:
    """Return the percentage of examples that were predicted right."""
    return 100.0 * float(np.trace(confusion)) / max(1, int(confusion.sum()))


def each_class(confusion: Confusion, labels: Sequence[str]) -> list[ClassScore]:
    """Return precision, recall and F1 of each class."""
    counts = np.diag(confusion).tolist(), confusion.sum(axis=0).tolist(), confusion.sum(axis=1).tolist()
    return [ClassScore.of(*row) for row in zip(labels, *counts, strict=True)]


def escaped_markdown(text: str) -> str:
    """Return a text on one line as Markdown that shows it as it is; labels may hold anything, HTML too."""
    return re.sub(r"([\\`*_{}\[\]<>#|!&~])", r"\\\1", " ".join(text.split()))


def class_table(classes: Sequence[Mapping[str, Any]], label: str, count: str) -> list[str]:
    """Return the scores of each class, as metrics.json has them, as the lines of a Markdown table."""
    lines = [f"| {label} | {count} | precision | recall | F1 |", "|---|---|---|---|---|"]
    for row in classes:
        name = escaped_markdown(row["label"])
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


def normalize_answer(text: str) -> str:
    """Return a text as answers are compared: lower-case, without punctuation and extra spaces.

    English loses its articles, as in SQuAD's script; a text with Hangul, kana or Han loses its quotation marks instead,
    as in KorQuAD's.
    """
    if UNSPACED.search(text):
        return " ".join(text.translate(KOREAN_QUOTES).lower().translate(PUNCTUATION).split())
    return " ".join(ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split())


def answer_tokens(text: str) -> list[str]:
    """Return the tokens that F1 counts: words (SQuAD), or characters for Hangul, kana and Han (KorQuAD)."""
    tokens = normalize_answer(text).split()
    return list("".join(tokens)) if UNSPACED.search(text) else tokens


def exact_match(prediction: str, references: Sequence[str]) -> float:
    """Return 1.0 if the prediction equals a reference after normalization. No references: there is no answer."""
    normalized = normalize_answer(prediction)
    return float(any(normalized == normalize_answer(reference) for reference in references or ("",)))


def token_f1(prediction: str, references: Sequence[str]) -> float:
    """Return the best F1, from 0 to 1, of the tokens that the prediction shares with a reference."""
    return max(_f1(answer_tokens(prediction), answer_tokens(reference)) for reference in references or ("",))


def _f1(predicted: list[str], true: list[str]) -> float:
    if not predicted or not true:  # an empty answer is right where there is none, and nowhere else
        return float(predicted == true)
    common = sum((Counter(predicted) & Counter(true)).values())
    return 2 * common / (len(predicted) + len(true))


def answer_scores(predictions: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, Score]:
    """Exact match and F1 over all questions; with unanswerable ones, also over each kind on its own.

    Args:
        predictions: An answer for each question, "" where the model gives none.
        references: The right answers to each question, none where it cannot be answered.
    """
    exact = [exact_match(*pair) for pair in zip(predictions, references, strict=True)]
    shared = [token_f1(*pair) for pair in zip(predictions, references, strict=True)]
    value = _percent(exact)
    scores = {
        "exact_match": Score("exact match", value, share_interval(value, len(exact)), "squad"),
        "f1": Score("F1", _percent(shared), signature="squad; characters for Hangul, kana and Han"),
    }
    if not all(references) and any(references):
        answerable = [f1 for f1, right in zip(shared, references, strict=True) if right]
        refused = [f1 for f1, right in zip(shared, references, strict=True) if not right]
        scores["answerable_f1"] = Score("F1 of answerable questions", _percent(answerable))
        scores["unanswerable"] = Score("refused unanswerable questions", _percent(refused))
    return scores


def _percent(values: Sequence[float]) -> float:
    return 100.0 * sum(values) / max(1, len(values))


class EntitySpan(NamedTuple):
    """An entity in a sequence of tags: words from `start` up to, not including, `stop`."""

    label: str
    start: int
    stop: int


def entity_spans(tags: Sequence[str]) -> list[EntitySpan]:
    """Return the entities that IOB1, IOB2, IOE or IOBES tags mark, as CoNLL's script reads them.

    An entity begins at B- or S-, or where the label changes or an O or an end stood before.
    """
    spans: list[EntitySpan] = []
    start, label, prefix = 0, "", "O"
    for place, tag in enumerate((*tags, "O")):
        next_prefix, _, next_label = tag.partition("-")
        if tag == "O" or not next_label:
            next_prefix, next_label = "O", ""
        begins = next_label and (next_label != label or next_prefix in "BS" or prefix in "ESO")
        if label and (begins or not next_label):
            spans.append(EntitySpan(label, start, place))
        start, label, prefix = place if begins else start, next_label, next_prefix
    return spans


def marks_entities(tags: Sequence[str]) -> bool:
    """True if a tag set marks spans (B-PER, I-PER …), False if every word has a tag of its own (NOUN, VERB …)."""
    return "O" in tags and any(re.match(r"[BIESLU]-.", tag) for tag in tags)


def entity_scores(
    predicted: Sequence[Sequence[str]], true: Sequence[Sequence[str]]
) -> tuple[dict[str, Score], list[ClassScore]]:
    """Micro-averaged F1, precision and recall of whole entities over all sentences, and the same of each label.

    Args:
        predicted: The tags of each sentence, as many as in `true`.
        true: The right tags.
    """
    right, guessed, wanted = Counter[str](), Counter[str](), Counter[str]()
    for predicted_tags, true_tags in zip(predicted, true, strict=True):
        if len(predicted_tags) != len(true_tags):
            raise ValueError(f"a sentence has {len(true_tags)} words and {len(predicted_tags)} predicted tags")
        spans, true_spans = set(entity_spans(predicted_tags)), set(entity_spans(true_tags))
        guessed.update(span.label for span in spans)
        wanted.update(span.label for span in true_spans)
        right.update(span.label for span in spans & true_spans)
    total = ClassScore.of("all", right.total(), guessed.total(), wanted.total())
    scores = {
        "f1": Score("entity F1", total.f1, signature="micro-averaged, whole entities (CoNLL)"),
        "precision": Score("entity precision", total.precision),
        "recall": Score("entity recall", total.recall),
    }
    labels = sorted({*wanted, *guessed})
    return scores, [ClassScore.of(label, right[label], guessed[label], wanted[label]) for label in labels]


def tag_scores(
    predicted: Sequence[Sequence[str]], true: Sequence[Sequence[str]], labels: Sequence[str]
) -> dict[str, Any]:
    """Return entity-level F1 if the tags mark entities, otherwise accuracy and macro F1 of the words' tags."""
    names = list(dict.fromkeys((*labels, *chain.from_iterable(true))))
    numbers = {name: number for number, name in enumerate(names)}
    true_ids, predicted_ids = ([numbers[tag] for tags in side for tag in tags] for side in (true, predicted))
    matrix = confusion_matrix(true_ids, predicted_ids, len(names))
    right = Score("accuracy of words", accuracy(matrix))
    if marks_entities(labels):
        scores, classes = entity_scores(predicted, true)
        scores["accuracy"] = right
    else:
        scores = {"accuracy": right, "macro_f1": Score("macro F1", macro_f1(matrix))}
        classes = each_class(matrix, names)
    rows = [asdict(label) for label in classes]
    return evaluation(len(true), scores, classes=rows, labels=names, confusion=matrix.tolist())
