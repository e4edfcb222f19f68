"""A sentence pair, and what is told about reading many of them."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

FIRST_PLACES = 5


@dataclass(frozen=True, slots=True)
class Pair:
    """One sentence in both languages, and where it stood."""

    source: str
    target: str
    file: str
    line: int

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass
class Tally:
    """How often something happened, and the first places."""

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


class Lengths:
    """Statistics of lengths, from how often each occurred: memory does not grow with the data."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()

    def add(self, length: int) -> None:
        self.counts[length] += 1

    def remove(self, length: int) -> None:
        self.counts[length] -= 1
        if not self.counts[length]:
            del self.counts[length]

    @property
    def mean(self) -> float:
        total = self.counts.total()
        return sum(length * count for length, count in self.counts.items()) / total if total else 0.0

    @property
    def longest(self) -> int:
        return max(self.counts, default=0)

    def quantile(self, share: float) -> int:
        """The smallest length that at least this share of all does not exceed."""
        wanted, reached = share * self.counts.total(), 0
        for length, count in sorted(self.counts.items()):
            reached += count
            if reached >= wanted:
                return length
        return 0

    def to_dict(self) -> dict[str, float]:
        return {
            "mean": round(self.mean, 2),
            "median": self.quantile(0.5),
            "p95": self.quantile(0.95),
            "longest": self.longest,
        }


@dataclass
class FileRead:
    """One file that was read: in which format, and how many pairs were found in it, dropped ones included."""

    path: str
    format: str
    pairs: int = 0


class Reading:
    """What was read, kept and dropped, collected while pairs stream by: every pair found is kept or counted as dropped.

    `skipped` counts files of a folder that were not read; `columns` are the languages of unnamed columns, in order.
    """

    def __init__(self) -> None:
        self.files: list[FileRead] = []
        self.skipped: dict[str, Tally] = {}
        self.dropped: dict[str, Tally] = {}
        self.columns: tuple[str, ...] = ()
        self.kept = 0
        sides = ("source", "target")
        self.characters = {side: Lengths() for side in sides}
        self.words = {side: Lengths() for side in sides}
        self._hash = hashlib.sha256()

    @property
    def pairs(self) -> int:
        """Pairs found in all files so far."""
        return sum(file.pairs for file in self.files)

    @property
    def fingerprint(self) -> str:
        """A sha256 of the pairs in the order they were kept: another one means that the data changed."""
        return self._hash.hexdigest()

    def keep(self, pair: Pair) -> None:
        self.kept += 1
        for side, text in (("source", pair.source), ("target", pair.target)):
            self.characters[side].add(len(text))
            self.words[side].add(len(text.split()))
            raw = text.encode()
            self._hash.update(b"%d:%b" % (len(raw), raw))  # the length in front: no two lists of pairs read the same

    def drop(self, reason: str, place: str) -> None:
        self.dropped.setdefault(reason, Tally()).add(place)

    def drop_kept(self, reason: str, pair: Pair) -> None:
        """Drop a pair that was kept: the counts and lengths are as if it never had been. The fingerprint stays."""
        self.kept -= 1
        for side, text in (("source", pair.source), ("target", pair.target)):
            self.characters[side].remove(len(text))
            self.words[side].remove(len(text.split()))
        self.drop(reason, pair.place)

    def forget(self, reason: str, count: int, place: str) -> None:
        """Take back drops whose places begin so."""
        tally = self.dropped[reason]
        tally.count -= count
        tally.places = [kept for kept in tally.places if not kept.startswith(place)]
        if not tally.count:
            del self.dropped[reason]

    def skip(self, reason: str, file: str) -> None:
        self.skipped.setdefault(reason, Tally()).add(file)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a JSON file."""
        return {
            "files": [{"path": file.path, "format": file.format, "pairs": file.pairs} for file in self.files],
            "skipped_files": {reason: tally.to_dict() for reason, tally in self.skipped.items()},
            "pairs": self.pairs,
            "kept": self.kept,
            "dropped": {reason: tally.to_dict() for reason, tally in self.dropped.items()},
            "characters": {side: lengths.to_dict() for side, lengths in self.characters.items()},
            "words": {side: lengths.to_dict() for side, lengths in self.words.items()},
            "fingerprint": self.fingerprint,
        }
