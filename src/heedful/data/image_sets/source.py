"""Images with their classes, as every reader gives them, and what is told about reading them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ..pairs import Tally

Part = Literal["train", "test"]  # which one, where a set has both


class Labelled(NamedTuple):
    """An image as `data.images.pixels_of` takes it, its class, and where it stood."""

    image: object
    label: str
    place: str


@dataclass(frozen=True)
class ImageSource:
    """One set: its name, its format, every file it is read from, and its images, as often as one asks."""

    name: str
    format: str
    files: tuple[Path, ...]
    images: Callable[[], Iterator[Labelled]]
    passed_over: tuple[str, ...] = ()  # files that lie there and are no images by their names


@dataclass
class SetRead:
    """One set that was read, and how many images were found in it, dropped ones included."""

    path: str
    format: str
    images: int = 0


@dataclass
class ImageReading:
    """What was read, kept, changed and dropped: every image found is kept or counted as dropped."""

    files: list[SetRead] = field(default_factory=list)
    skipped: dict[str, Tally] = field(default_factory=dict)
    dropped: dict[str, Tally] = field(default_factory=dict)
    changed: dict[str, Tally] = field(default_factory=dict)  # kept, in another size or in other colours
    classes: Counter[str] = field(default_factory=Counter)
    size: int = 0  # of the images that are kept
    n_channels: int = 0

    @property
    def images(self) -> int:
        """How many were found, dropped ones included."""
        return sum(file.images for file in self.files)

    @property
    def kept(self) -> int:
        return self.classes.total()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a JSON file."""
        return {
            "files": [{"path": file.path, "format": file.format, "images": file.images} for file in self.files],
            "skipped_files": _counts(self.skipped),
            "images": self.images,
            "kept": self.kept,
            "dropped": _counts(self.dropped),
            "changed": _counts(self.changed),
            "classes": dict(self.classes),
            "image": {"height": self.size, "width": self.size, "channels": self.n_channels},
            "notes": [f"{tally.count:,} images: {change}" for change, tally in self.changed.items()],
        }


def note(tallies: dict[str, Tally], reason: str, place: str) -> None:
    """Count a place under a reason."""
    tallies.setdefault(reason, Tally()).add(place)


def _counts(tallies: dict[str, Tally]) -> dict[str, Any]:
    return {reason: tally.to_dict() for reason, tally in tallies.items()}
