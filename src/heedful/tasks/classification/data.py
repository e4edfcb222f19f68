"""Texts with a class each: which are for training, which classes there are, and their rows in a token store."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.labeled_texts import LabeledText, read_labeled_texts, sorted_labels, text_digest
from ...data.published_tokenizer import PublishedTokenizer, truncate
from ...data.report import TextReport
from ...data.store import Encoded, TokenStore
from ...errors import DataError
from ..run import DataReport, Files, TooLittleDataError
from ..run.task import Split, split_examples


def split_labelled(files: Files, holdout: int) -> tuple[Split[LabeledText], DataReport[TextReport]]:
    """Read everything once: what there is, and which texts are set apart, of each class its share."""

    def read(paths: Sequence[str], reading: TextReport | None) -> Iterator[LabeledText]:
        return read_labeled_texts(paths, columns=files.columns, reading=reading)

    def drop(reading: TextReport, reason: str, example: LabeledText) -> None:
        reading.drop_kept(reason, example.place, "\t".join(example.texts), label=example.label)

    split, report = split_examples(
        files,
        read,
        TextReport,
        digest=lambda example: text_digest(*example.texts),
        drop=drop,
        wanted=holdout,
        label=lambda example: example.label,
    )
    if report.valid is None and not split.set_apart:
        raise TooLittleDataError(
            f"{report.train.kept} labelled texts are too few to set some apart for validation; "
            "give more data, or validation texts of your own (--valid)",
            report,
        )
    if report.valid is not None and not report.valid.kept:
        raise TooLittleDataError(f"{', '.join(files.valid)}: there is no labelled text to validate on", report)
    return split, report


def labels_of(report: DataReport[TextReport]) -> tuple[str, ...]:
    """The classes to learn, two at least: every one that is read, since none is held out whole."""
    labels = sorted_labels(label for label, count in report.train.labels.items() if count)
    if len(labels) < 2:
        what = f"only the class {labels[0]!r}" if labels else "no labelled text"
        raise TooLittleDataError(f"there is {what} to learn from; a classifier needs two classes or more", report)
    return labels


def number_of(one: LabeledText, numbers: Mapping[str, int]) -> int:
    """The number of a class; one that was not learned is an error."""
    if one.label not in numbers:
        known = ", ".join(map(repr, list(numbers)[:10])) + (", …" if len(numbers) > 10 else "")
        raise DataError(
            f"{one.place}: the label {one.label!r} does not occur in the training data, which has {known}; "
            "correct it, or leave the line out"
        )
    return numbers[one.label]


def targets(store: TokenStore) -> NDArray[np.integer[Any]]:
    """(N, 2): of every row its label and where its second text begins."""
    ends = np.cumsum(store.lengths.sum(axis=1, dtype=np.int64))
    return store.flat[ends[:, None] - [2, 1]]


def encoded(
    examples: Iterable[LabeledText],
    tokenizer: PublishedTokenizer,
    labels: Sequence[str],
    limit: int,
    reading: TextReport,
) -> Iterator[Encoded]:
    """What `TokenStore.write` takes. A text that is too long is cut and counted; two that are, are left out."""
    numbers = {label: number for number, label in enumerate(labels)}
    for one in examples:
        ids, segments = tokenizer.encode_pair(one.text, one.second)
        label = number_of(one, numbers)
        if not ids or (len(ids) > limit and one.second is not None):
            why = "too many tokens" if ids else "no tokens"
            reading.drop_kept(why, one.place, "\t".join(one.texts), label=one.label)
            continue
        if len(ids) > limit:
            ids = truncate(tokenizer, ids, limit)
            reading.note(f"texts cut at {limit} tokens", one.place)
        yield ids, (label, _second(tokenizer, one, ids, segments)), (one.file, one.line)


def _second(tokenizer: PublishedTokenizer, one: LabeledText, ids: Sequence[int], segments: Sequence[int]) -> int:
    """Where the second text begins, if there is one. Some tokenisers give both the same number (RoBERTa)."""
    if one.second is None:
        return len(ids)
    return segments.index(1) if 1 in segments else len(tokenizer.encode(one.text))
