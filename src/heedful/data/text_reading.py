"""What is told about reading texts one by one, with a class each or without."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from typing import Any

from .pairs import Lengths, Reading, Tally


class TextReading(Reading):
    """As of pairs, of which a text has one side; how often each label was kept; and which texts were cut short."""

    def __init__(self) -> None:
        super().__init__()
        self.characters, self.words = {"text": Lengths()}, {"text": Lengths()}
        self.labels: Counter[str] = Counter()
        self.cut: dict[int, Tally] = {}

    def take(self, text: str, label: str | None = None) -> None:
        """Count a text that is used."""
        self.kept += 1
        self.characters["text"].add(len(text))
        self.words["text"].add(len(text.split()))
        if label is not None:
            self.labels[label] += 1
        for part in (text, label or ""):
            raw = part.encode()
            self._hash.update(b"%d:%b" % (len(raw), raw))

    def give_back(self, reason: str, text: str, label: str | None, place: str) -> None:
        """Drop a text that was used: the counts are as if it never had been. The fingerprint stays."""
        self.kept -= 1
        self.characters["text"].remove(len(text))
        self.words["text"].remove(len(text.split()))
        if label is not None:
            self.labels[label] -= 1
        self.drop(reason, place)

    def shorten(self, limit: int, place: str) -> None:
        """Count a text of which only the first `limit` tokens are used."""
        self.cut.setdefault(limit, Tally()).add(place)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a JSON file."""
        read = super().to_dict()
        read["files"] = [{"path": file.path, "format": file.format, "texts": file.pairs} for file in self.files]
        read = {"texts" if name == "pairs" else name: value for name, value in read.items()}
        if self.labels:
            read["labels"] = {label: count for label, count in sorted(self.labels.items()) if count}
        if self.cut:
            read["notes"] = [f"texts cut at {limit} tokens: {tally}" for limit, tally in self.cut.items()]
        return read


@dataclass(frozen=True)
class TextReadings:
    """What was read for training and for validation. Where `valid` is None, `held_out` texts of `train` serve."""

    train: TextReading
    valid: TextReading | None
    held_out: int = 0

    def to_dict(self) -> dict[str, Any]:
        """For a file."""
        return {
            "train": self.train.to_dict(),
            "valid": None if self.valid is None else self.valid.to_dict(),
            "held_out": self.held_out,
        }


def digest(*texts: str) -> bytes:
    """By which texts are told apart, and by which some of them are held out. Several are never the same as one."""
    raw = [text.encode() for text in texts]
    if len(raw) == 1:
        return hashlib.blake2b(raw[0], digest_size=8).digest()
    told = b"".join(b"%d:%b" % (len(one), one) for one in raw)
    return hashlib.blake2b(told, digest_size=8, person=b"several").digest()
