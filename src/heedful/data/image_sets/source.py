"""Images with their classes, as every reader gives them, and what is told about reading them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

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
