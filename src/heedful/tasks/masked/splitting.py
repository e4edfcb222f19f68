"""Plain text for training and for validation, with no text on both sides. It is read again for each pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ...data.corpus import Corpus, text_files
from ...data.pairs import FileRead
from ...data.text_reading import TextReading, TextReadings, digest
from ..run import Files, TooLittleDataError
from .config import CorpusConfig

LARGEST_SHARE = 10  # at most every tenth text is held out


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
    """The files, and which of the training files' texts are set apart."""

    train_files: Sequence[Path]
    valid_files: Sequence[Path]
    unit: str
    is_set_apart: Callable[[Text], bool]

    def train(self) -> Iterator[Text]:
        """What is learned from."""
        return (one for one in _used(self.train_files, self.unit) if not self.is_set_apart(one))

    def valid(self) -> Iterator[Text]:
        """What is validated on: files of its own, whole, or what is held out."""
        if self.valid_files:
            return _used(self.valid_files, self.unit)
        return (one for one in _used(self.train_files, self.unit) if self.is_set_apart(one))


def split(files: Files, config: CorpusConfig) -> tuple[Split, TextReadings]:
    """Read everything once: what there is, and which texts are set apart."""
    reading, train_files = TextReading(), text_files(files.train)
    if files.valid:
        other, valid_files = TextReading(), text_files(files.valid)
        seen = {digest(one.text) for one in _counted(valid_files, config.text, other)}
        found = Split(train_files, valid_files, config.text, lambda one: digest(one.text) in seen)
        for one in _counted(train_files, config.text, reading):
            if found.is_set_apart(one):  # a score on these would be of memory
                reading.give_back("also in validation", one.text, None, one.place)
        readings, held_out, left = TextReadings(reading, other), other.kept, reading.kept
    else:
        kept = sum(1 for _ in _counted(train_files, config.text, reading))
        edge = int(min(config.holdout / max(1, kept), 1 / LARGEST_SHARE) * 2**64)
        found = Split(train_files, (), config.text, lambda one: int.from_bytes(digest(one.text)) < edge)
        held_out = sum(1 for _ in found.valid())
        readings, left = TextReadings(reading, None, held_out), kept - held_out
    if not held_out or not left:
        raise TooLittleDataError(
            f"{reading.kept} usable texts are too few to train on some and validate on others; "
            "give more text, or validation text of your own (--valid)",
            readings,
        )
    return found, readings


def _used(files: Iterable[Path], unit: str) -> Iterator[Text]:
    return (one for one in texts_of(files, unit) if one.text.strip())


def _counted(files: Iterable[Path], unit: str, reading: TextReading) -> Iterator[Text]:
    """The texts that are used; the reading is told of them and of the others."""
    for path in files:
        found = FileRead(str(path), "text")
        reading.files.append(found)
        for one in texts_of([path], unit):
            found.pairs += 1
            if one.text.strip():
                reading.take(one.text)
                yield one
            else:
                reading.drop("empty", one.place)
