"""Which classes there are, and which images are for training and which for validation."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from ...data.image_sets.store import TRAIN, UNUSED, VALID
from ...data.images import Pixels
from ...data.report import ImageReport
from ...data.validation_split import held_out
from ...errors import DataError

NAMED = 20  # classes that a message lists


class Rows:
    """What is known of each image: its class, what it is for, where it stood, and a digest to know it again by."""

    def __init__(self) -> None:
        self.labels: list[str] = []
        self.parts: list[int] = []
        self.places: list[str] = []
        self.digests: list[bytes] = []

    def add(self, pixels: Pixels, label: str, place: str, part: int) -> None:
        self.labels.append(label)
        self.parts.append(part)
        self.places.append(place)
        self.digests.append(hashlib.blake2b(np.ascontiguousarray(pixels).data, digest_size=8).digest())

    def of(self, part: int) -> list[int]:
        return [row for row, found in enumerate(self.parts) if found == part]


def drop_twice(rows: Rows, reading: ImageReport) -> None:
    """An image that validation uses is none to train on: the score would be of memory."""
    seen = {rows.digests[row] for row in rows.of(VALID)}
    for row in rows.of(TRAIN):
        if rows.digests[row] in seen:
            rows.parts[row] = UNUSED
            reading.drop_kept("also in validation", rows.places[row], rows.labels[row])


def hold_out(rows: Rows, wanted: int) -> int:
    """Of each class its share becomes validation, chosen by pixels, so that no image is on both sides; how many."""
    chosen = held_out(zip(rows.labels, rows.digests, strict=True), wanted)
    for row, digest in enumerate(rows.digests):
        if digest in chosen:
            rows.parts[row] = VALID
    return len(rows.of(VALID))


def in_order(labels: Mapping[str, int]) -> tuple[str, ...]:
    """The classes that have images: numbers by their size, names by the alphabet."""
    there = [label for label, n in labels.items() if n > 0]
    numbers = all(label.isascii() and label.removeprefix("-").isdecimal() for label in there)
    return tuple(sorted(there, key=lambda label: (int(label) if numbers else 0, label)))


def check_labels(found: Counter[str], known: Sequence[str], what: str) -> None:
    """Refuse classes that the model does not know."""
    unseen = {label: n for label, n in found.items() if n > 0 and label not in known}
    if unseen:
        named = ", ".join(f"{label!r} ({n:,} images)" for label, n in sorted(unseen.items())[:NAMED])
        raise DataError(
            f"the {what} images have classes that were not trained: {named}; the model knows {', '.join(known[:NAMED])}"
            f"{', …' if len(known) > NAMED else ''}. Leave these images out, or train on all classes"
        )
