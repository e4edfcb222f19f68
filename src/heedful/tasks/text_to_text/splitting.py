"""Examples for training and for validation, with no source on both sides. They are read again for each pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...data.labeled_texts import text_digest
from ...data.validation_split import held_out
from ..run import Files, TooLittleDataError
from ..translation.prepare import Readings
from .examples import Example, ExampleReading, read_examples

EVERY = 20  # at most every twentieth pair is held out


@dataclass(frozen=True)
class ExampleReadings(Readings):
    """What was read for training and for validation."""

    train: ExampleReading
    valid: ExampleReading | None


@dataclass(frozen=True)
class Split:
    """`set_apart` holds the digests of the sources that are not trained on."""

    files: Files
    prefix: str
    set_apart: frozenset[bytes]

    def train(self) -> Iterator[Example]:
        """What is learned from."""
        return (one for one in self._read(self.files.train) if text_digest(one.text) not in self.set_apart)

    def valid(self) -> Iterator[Example]:
        """What is validated on: files of its own, whole, or what is held out."""
        if self.files.valid:
            return self._read(self.files.valid)
        return (one for one in self._read(self.files.train) if text_digest(one.text) in self.set_apart)

    def _read(self, paths: tuple[str, ...]) -> Iterator[Example]:
        return read_examples(paths, columns=self.files.columns, prefix=self.prefix)


def split(files: Files, prefix: str, wanted: int) -> tuple[Split, ExampleReadings]:
    """Read everything once: what there is, and which sources are set apart. Which they are hangs on no order."""
    reading = ExampleReading()
    found = read_examples(files.train, columns=files.columns, prefix=prefix, reading=reading)
    if not files.valid:
        set_apart = held_out((("", text_digest(one.text)) for one in found), wanted, EVERY)
        readings = ExampleReadings(reading, None)
        if not set_apart:
            raise TooLittleDataError(
                f"{reading.kept} usable pairs are too few to set some apart for validation; "
                "give more data, or validation pairs of your own (--valid)",
                readings,
            )
        return Split(files, prefix, set_apart), readings
    valid = ExampleReading()
    others = read_examples(files.valid, columns=files.columns, prefix=prefix, reading=valid)
    set_apart = frozenset(text_digest(one.text) for one in others)
    for one in found:
        if text_digest(one.text) in set_apart:  # a score on these would be of memory
            reading.drop_kept("also in validation", one.pair.place, *one.pair.texts)
    readings = ExampleReadings(reading, valid)
    for usable, paths, use in ((reading, files.train, "learn from"), (valid, files.valid, "validate on")):
        if not usable.kept:
            raise TooLittleDataError(f"{', '.join(paths)}: there is no pair to {use}", readings)
    return Split(files, prefix, set_apart), readings
