"""What was read, kept and dropped, and where: one report for pairs, texts, documents, images and series.

A `SplitReport` describes one split, such as the training data, and is filled while its examples stream by. A
`DataReport` puts those of training and validation together; its `to_dict` is the content of a run's reading.json.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, ClassVar, Generic, TypeVar

FIRST_PLACES = 5
MAX_DROPPED = 0.02  # of the examples by a default setting without a warning
EXCERPT = 40  # characters of each text of an example


@dataclass
class Tally:
    """How often something happened, and where it happened first."""

    count: int = 0
    places: list[str] = field(default_factory=list)

    def add(self, place: str) -> None:
        self.count += 1
        if len(self.places) < FIRST_PLACES:
            self.places.append(place)

    def to_dict(self) -> dict[str, Any]:
        return {"count": self.count, "first": list(self.places)}

    def __str__(self) -> str:
        more = ", …" if self.count > len(self.places) else ""
        return f"{self.count} ({', '.join(self.places)}{more})"


def length_statistics(lengths: Counter[int]) -> dict[str, float]:
    """Return statistics of counted lengths; a counter takes no more memory for more data."""
    total = lengths.total()
    return {
        "mean": round(sum(length * count for length, count in lengths.items()) / total, 2) if total else 0.0,
        "median": quantile(lengths, 0.5),
        "p95": quantile(lengths, 0.95),
        "longest": quantile(lengths, 1.0),
    }


def quantile(values: Counter[int], fraction: float) -> int:
    """Return the smallest value that at least this fraction of all does not exceed."""
    counts, total = sorted((+values).items()), values.total()
    reached = accumulate(count for _, count in counts)
    return next((value for (value, _), n in zip(counts, reached, strict=True) if n >= fraction * total), 0)


@dataclass
class FileReport:
    """One file that was read: its format and the number of its examples, dropped ones included."""

    path: str
    format: str
    count: int = 0
    characters: int = 0  # of running text


class SplitReport:
    """What was read for one split. Every example that was found is kept or counted as dropped.

    Attributes:
        files: the files that were read.
        skipped: files of a folder that were not read, by the reason.
        dropped: examples that are not used, by the reason.
        noted: what is worth knowing of examples that are used.
        notes: further sentences for the person who reads the report.
        labels: how many examples of each class were kept.
        cautions: what is probably wrong.
        extra: what a task adds to the end of `to_dict`.
    """

    unit: ClassVar[str] = "examples"  # what an example is called, in the plural

    def __init__(self) -> None:
        self.files: list[FileReport] = []
        self.skipped: dict[str, Tally] = {}
        self.dropped: dict[str, Tally] = {}
        self.noted: dict[str, Tally] = {}
        self.notes: list[str] = []
        self.labels: Counter[str] = Counter()
        self.kept = 0
        self.cautions: list[str] = []
        self.extra: dict[str, Any] = {}
        self._advice: dict[str, tuple[str, int | str, str]] = {}  # by reason to drop: a setting, its value, an example

    @property
    def total(self) -> int:
        """The number of examples in all files so far, dropped ones included."""
        return sum(file.count for file in self.files)

    def skip(self, reason: str, file: str) -> None:
        """Count a file that is not read."""
        self.skipped.setdefault(reason, Tally()).add(file)

    def drop(self, reason: str, place: str) -> None:
        """Count an example that is not used."""
        self.dropped.setdefault(reason, Tally()).add(place)

    def note(self, what: str, place: str) -> None:
        """Count something noteworthy about an example that is used."""
        self.noted.setdefault(what, Tally()).add(place)

    def advise(self, reason: str, setting: str, value: int | str, texts: Sequence[str]) -> None:
        """Say which setting would have kept an example that a default drops: the largest value keeps all."""
        if (advice := self._advice.get(reason)) is None:
            excerpts = (f"{text[:EXCERPT]}{'…' * (len(text) > EXCERPT)}" for text in texts)
            self._advice[reason] = setting, value, " → ".join(excerpts)
        elif isinstance(value, int) and value > int(advice[1]):
            self._advice[reason] = setting, value, advice[2]

    @property
    def warnings(self) -> list[str]:
        """What is probably wrong with the data, and the reasons for which defaults drop more than a few examples."""
        total = self.kept + sum(tally.count for tally in self.dropped.values())
        return self.cautions + [
            f"{tally.count:,} of {total:,} {self.unit} ({tally.count / total:.1%}) are dropped: {reason}, "
            f"such as {tally.places[0]}: {example}; to keep them: --set {setting}={value}"
            for reason, (setting, value, example) in self._advice.items()
            if (tally := self.dropped.get(reason, Tally())).count > MAX_DROPPED * total and tally.places
        ]

    def forget(self, reason: str, count: int, place: str) -> None:
        """Undo `count` drops whose places begin with `place`."""
        tally = self.dropped[reason]
        tally.count -= count
        tally.places = [other for other in tally.places if not other.startswith(place)]
        if not tally.count:
            del self.dropped[reason]

    def explain_skipped(self) -> str:
        """Return in one line why files of the folders were not read."""
        return "; ".join(f"{reason}: {tally}" for reason, tally in self.skipped.items()) or "the folder is empty"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a JSON file."""
        return {
            "files": [{"path": file.path, "format": file.format, self.unit: file.count} for file in self.files],
            "skipped_files": tallies_to_dict(self.skipped),
            self.unit: self.total,
            "kept": self.kept,
            "dropped": tallies_to_dict(self.dropped),
            **({"warnings": warnings} if (warnings := self.warnings) else {}),
            **self._sections(),
            **self.extra,
        }

    def _sections(self) -> dict[str, Any]:
        """Return the entries that only this kind of data has."""
        return {}

    def _all_notes(self) -> list[str]:
        return [*self.notes, *(f"{what}: {tally}" for what, tally in self.noted.items())]


class TextReport(SplitReport):
    """Texts with or without labels: their lengths, the label counts, and a fingerprint of all texts."""

    unit = "texts"
    sides: ClassVar[tuple[str, ...]] = ("text",)

    def __init__(self) -> None:
        super().__init__()
        self.characters: dict[str, Counter[int]] = {side: Counter() for side in self.sides}
        self.words: dict[str, Counter[int]] = {side: Counter() for side in self.sides}
        self._hash = hashlib.sha256()

    @property
    def fingerprint(self) -> str:
        """A SHA-256 of the texts in their order: if it differs, the data changed."""
        return self._hash.hexdigest()

    def keep(self, *texts: str, label: str | None = None) -> None:
        """Count an example that is used: its text, or the texts of both sides."""
        self._count(1, texts, label)
        for text in self._hashed(texts, label):
            raw = text.encode()
            self._hash.update(b"%d:%b" % (len(raw), raw))  # the length in front: no two lists of texts read the same

    def drop_kept(self, reason: str, place: str, *texts: str, label: str | None = None) -> None:
        """Drop an example that was kept: the counts are as if it had never been kept. The fingerprint stays."""
        self._count(-1, texts, label)
        self.drop(reason, place)

    def _count(self, change: int, texts: tuple[str, ...], label: str | None) -> None:
        self.kept += change
        for side, text in zip(self.sides, texts, strict=True):
            self.characters[side][len(text)] += change
            self.words[side][len(text.split())] += change
        if label is not None:
            self.labels[label] += change

    def _hashed(self, texts: tuple[str, ...], label: str | None) -> tuple[str, ...]:
        return (*texts, label or "")

    def _sections(self) -> dict[str, Any]:
        sections: dict[str, Any] = {
            "characters": {side: length_statistics(lengths) for side, lengths in self.characters.items()},
            "words": {side: length_statistics(lengths) for side, lengths in self.words.items()},
            "fingerprint": self.fingerprint,
        }
        if self.labels:
            sections["labels"] = {label: count for label, count in sorted(self.labels.items()) if count}
        if notes := self._all_notes():
            sections["notes"] = notes
        return sections


class PairReport(TextReport):
    """Sentence pairs. `columns` are the languages of unnamed columns, in order."""

    unit = "pairs"
    sides = ("source", "target")

    def __init__(self) -> None:
        super().__init__()
        self.columns: tuple[str, ...] = ()

    def _hashed(self, texts: tuple[str, ...], label: str | None) -> tuple[str, ...]:
        return texts


class CorpusReport(SplitReport):
    """Running text: documents, characters, and distinct characters. `skipped` includes empty documents."""

    unit = "documents"

    def __init__(self) -> None:
        super().__init__()
        self.alphabet: set[str] = set()

    @property
    def characters(self) -> int:
        return sum(file.characters for file in self.files)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a JSON file."""
        return {
            "files": [
                {"path": file.path, "documents": file.count, "characters": file.characters} for file in self.files
            ],
            "skipped_files": tallies_to_dict(self.skipped),
            "documents": self.total,
            "characters": self.characters,
            "different_characters": len(self.alphabet),
            **self.extra,
        }


class ImageReport(SplitReport):
    """Images with their classes. `changed` counts those kept in another size or in other colors."""

    unit = "images"

    def __init__(self) -> None:
        super().__init__()
        self.changed: dict[str, Tally] = {}
        self.size = 0  # of the images that are kept
        self.n_channels = 0

    def keep(self, label: str) -> None:
        """Count an image that is used."""
        self.kept += 1
        self.labels[label] += 1

    def drop_kept(self, reason: str, place: str, label: str) -> None:
        """Drop an image that was kept."""
        self.kept -= 1
        self.labels[label] -= 1
        self.drop(reason, place)

    def change(self, what: str, place: str) -> None:
        """Count an image that is used after a change."""
        self.changed.setdefault(what, Tally()).add(place)

    def _sections(self) -> dict[str, Any]:
        return {
            "changed": tallies_to_dict(self.changed),
            "classes": dict(self.labels),
            "image": {"height": self.size, "width": self.size, "channels": self.n_channels},
            "notes": [f"{tally.count:,} images: {change}" for change, tally in self.changed.items()],
        }


class SeriesReport(SplitReport):
    """Series: one entry each, with length, times and the number of missing values."""

    unit = "steps"

    def __init__(self) -> None:
        super().__init__()
        self.columns: tuple[str, ...] = ()
        self.series: list[dict[str, Any]] = []

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a JSON file."""
        steps: Counter[str] = Counter()
        for series in self.series:
            steps[series["file"]] += series["steps"]
        return {
            "columns": list(self.columns),
            "files": [{"path": path, "format": "table", "steps": count} for path, count in steps.items()],
            "series": self.series,
            "notes": self.notes,
            **self.extra,
        }


R = TypeVar("R", bound=SplitReport)


@dataclass
class DataReport(Generic[R]):
    """What was read for training and for validation.

    If `valid` is None, `held_out` examples of `train` serve. If `held_out` is None too, series are divided by time, and
    only `train` is reported.
    """

    train: R
    valid: R | None = None
    held_out: int | None = 0

    def to_dict(self) -> dict[str, Any]:
        if self.held_out is None:
            return {"train": self.train.to_dict()}
        return {
            "train": self.train.to_dict(),
            "valid": None if self.valid is None else self.valid.to_dict(),
            "held_out": self.held_out,
        }


def tallies_to_dict(tallies: Mapping[str, Tally]) -> dict[str, Any]:
    """Return counts and first places by reason, for a JSON file."""
    return {reason: tally.to_dict() for reason, tally in tallies.items()}
