"""Plain text for training and for validation, with no text on both sides. It is read again for each pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ...data.corpus import Corpus, text_files
from ...data.labeled_texts import text_digest
from ...data.report import DataReport, FileReport, TextReport
from ...data.validation_split import held_out
from ..run import Files, TooLittleDataError
from .config import CorpusConfig


class Text(NamedTuple):
    """A text, and where it begins."""

    text: str
    file: str
    line: int

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


def texts_of(files: Iterable[Path], unit: str) -> Iterator[Text]:
    """The lines of files, empty ones too, or their paragraphs."""
    begun: list[Text] = []  # of a paragraph

    def paragraph() -> Iterator[Text]:
        if begun:
            yield begun[0]._replace(text="\n".join(line.text for line in begun))
            begun.clear()

    for passage in Corpus(tuple(files)):
        if passage.begins:
            yield from paragraph()
        for number, words in enumerate(passage.text.removesuffix("\n").split("\n"), passage.line):
            line = Text(words, passage.file, number)
            if unit == "line":
                yield line
            elif words.strip():
                begun.append(line)
            else:
                yield from paragraph()
    yield from paragraph()


@dataclass(frozen=True)
class Split:
    """`set_apart` holds the digests of the texts that are not trained on."""

    train_files: Sequence[Path]
    valid_files: Sequence[Path]
    unit: str
    set_apart: frozenset[bytes]

    def train(self) -> Iterator[Text]:
        """What is learned from."""
        return (one for one in _used(self.train_files, self.unit) if text_digest(one.text) not in self.set_apart)

    def valid(self) -> Iterator[Text]:
        """What is validated on: files of its own, whole, or what is held out."""
        if self.valid_files:
            return _used(self.valid_files, self.unit)
        return (one for one in _used(self.train_files, self.unit) if text_digest(one.text) in self.set_apart)


def split(files: Files, config: CorpusConfig) -> tuple[Split, DataReport[TextReport]]:
    """Read everything once: what there is, and which texts are set apart."""
    reading, train_files = TextReport(), text_files(files.train)
    if files.valid:
        other, valid_files = TextReport(), text_files(files.valid)
        set_apart = frozenset(text_digest(one.text) for one in _counted(valid_files, config.text, other))
        found = Split(train_files, valid_files, config.text, set_apart)
        for one in _counted(train_files, config.text, reading):
            if text_digest(one.text) in set_apart:  # a score on these would be of memory
                reading.drop_kept("also in validation", one.place, one.text)
        readings, n_valid, n_train = DataReport(reading, other), other.kept, reading.kept
    else:
        texts = _counted(train_files, config.text, reading)
        set_apart = held_out((("", text_digest(one.text)) for one in texts), config.holdout)
        found = Split(train_files, (), config.text, set_apart)
        n_valid = sum(1 for _ in found.valid())
        readings, n_train = DataReport(reading, None, n_valid), reading.kept - n_valid
    if not n_valid or not n_train:
        raise TooLittleDataError(
            f"{reading.kept} usable texts are too few to train on some and validate on others; "
            "give more text, or validation text of your own (--valid)",
            readings,
        )
    return found, readings


def _used(files: Iterable[Path], unit: str) -> Iterator[Text]:
    return (one for one in texts_of(files, unit) if one.text.strip())


def _counted(files: Iterable[Path], unit: str, reading: TextReport) -> Iterator[Text]:
    """The texts that are used; the reading is told of them and of the others."""
    for path in files:
        found = FileReport(str(path), "text")
        reading.files.append(found)
        for one in texts_of([path], unit):
            found.count += 1
            if one.text.strip():
                reading.keep(one.text)
                yield one
            else:
                reading.drop("empty", one.place)
