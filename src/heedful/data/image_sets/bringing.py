"""Images of all kinds brought to one size and one number of channels; what was changed or dropped is counted.

Shapes: H height, W width.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

import numpy as np

from ...errors import DataError
from ..images import Pixels, pixels_of, resized
from ..report import FileReport, ImageReport
from .source import ImageSource, Labelled

RESAMPLE: Final = "bilinear"
BROKEN = "broken or no image"


def common_shape(
    sources: Sequence[ImageSource], size: int | None, n_channels: int | None, largest: int
) -> tuple[int, int]:
    """The side of the square and the channels that all images shall have, where these are not given.

    The side is the longer one of the images, where all are alike and it is no more than `largest`; else `largest`.
    Channels are 3 where any image has colour, else 1. No more images are looked at than it takes to tell.
    """
    sizes: set[tuple[int, int]] = set()
    colour = n_channels is not None
    for labelled in chain.from_iterable(source.images() for source in sources):
        if size is not None and colour:
            break
        try:
            pixels, grey = _seen(labelled.image)
        except DataError:
            continue
        sizes.add((pixels.shape[0], pixels.shape[1]))
        colour = colour or not grey
        if len(sizes) > 1 or max(pixels.shape[:2]) > largest:
            size = size or largest
    own = max(sizes.pop()) if sizes else largest
    return size or own, n_channels or (3 if colour else 1)


def brought(
    sources: Sequence[ImageSource], size: int, n_channels: int, reading: ImageReport
) -> Iterator[tuple[Pixels, str, str]]:
    """Every image that can be used as (size, size, n_channels), its class and its place; the reading keeps count."""
    reading.size, reading.n_channels = size, n_channels
    for source in sources:
        read = FileReport(source.name, source.format)
        reading.files.append(read)
        for path in source.passed_over:
            reading.skip("no image by its name", path)
        for labelled in source.images():
            read.count += 1
            try:
                pixels, grey = _seen(labelled.image)
            except DataError as error:
                reading.drop(BROKEN, _why(labelled, error))
                continue
            if grey != (n_channels == 1):
                reading.change("grey made colour" if grey else "colour made grey", labelled.place)
            if pixels.shape[:2] != (size, size):
                reading.change(f"resized to {size} x {size}", labelled.place)
            reading.keep(labelled.label)
            yield (
                resized(pixels_of(pixels, n_channels), size, size, RESAMPLE),
                labelled.label,
                labelled.place,
            )


def _seen(image: object) -> tuple[Pixels, bool]:
    """An image (H, W, 1) or (H, W, 3), and whether it is grey."""
    if isinstance(image, np.ndarray) and (image.ndim == 2 or image.shape[2:] == (1,)):
        return pixels_of(image, 1), True
    pixels = pixels_of(image, 3)
    return pixels, bool((pixels == pixels[..., :1]).all())


def _why(labelled: Labelled, error: DataError) -> str:
    """The place, and what is wrong there."""
    return f"{labelled.place} ({str(error).removeprefix(f'{labelled.image}: ')})"
