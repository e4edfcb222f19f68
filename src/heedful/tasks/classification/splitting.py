"""Labelled texts for training and for validation, with no text on both sides. They are read again for each pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...data.labeled_texts import LabeledText, read_labeled_texts, sorted_labels, text_digest
from ...data.report import DataReport, TextReport
from ...data.validation_split import held_out
from ...errors import DataError
from ..run import Files, TooLittleDataError


@dataclass(frozen=True)
class Split:
    """`set_apart` holds the digests of the texts that are not trained on."""

    files: Files
    set_apart: frozenset[bytes]

    def train(self) -> Iterator[LabeledText]:
        """What is learned from."""
        found = read_labeled_texts(self.files.train, columns=self.files.columns)
        return (one for one in found if text_digest(*one.texts) not in self.set_apart)

    def valid(self) -> Iterator[LabeledText]:
        """What is validated on: files of its own, whole, or what is held out."""
        if self.files.valid:
            return read_labeled_texts(self.files.valid, columns=self.files.columns)
        found = read_labeled_texts(self.files.train, columns=self.files.columns)
        return (one for one in found if text_digest(*one.texts) in self.set_apart)


def split(files: Files, wanted: int) -> tuple[Split, DataReport[TextReport]]:
    """Read everything once: what there is, and which texts are set apart."""
    reading = TextReport()
    found = read_labeled_texts(files.train, columns=files.columns, reading=reading)
    if not files.valid:
        set_apart = held_out(((one.label, text_digest(*one.texts)) for one in found), wanted)
        readings = DataReport(reading, None, len(set_apart))
        if not set_apart:
            raise TooLittleDataError(
                f"{reading.kept} labelled texts are too few to set some apart for validation; "
                "give more data, or validation texts of your own (--valid)",
                readings,
            )
        return Split(files, set_apart), readings
    valid = TextReport()
    others = read_labeled_texts(files.valid, columns=files.columns, reading=valid)
    set_apart = frozenset(text_digest(*one.texts) for one in others)
    for one in found:
        if text_digest(*one.texts) in set_apart:  # a score on these would be of memory
            reading.drop_kept("also in validation", one.place, "\t".join(one.texts), label=one.label)
    readings = DataReport(reading, valid)
    if not valid.kept:
        raise TooLittleDataError(f"{', '.join(files.valid)}: there is no labelled text to validate on", readings)
    return Split(files, set_apart), readings


def labels_of(readings: DataReport[TextReport]) -> tuple[str, ...]:
    """The classes to learn, two at least: every one that is read, since none is held out whole."""
    labels = sorted_labels(label for label, count in readings.train.labels.items() if count)
    if len(labels) < 2:
        what = f"only the class {labels[0]!r}" if labels else "no labelled text"
        raise TooLittleDataError(f"there is {what} to learn from; a classifier needs two classes or more", readings)
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
