"""From pixels to what a model reads: resized, cut out of the middle, and moved to the range it was trained on.

Shapes: H height, W width, C channels.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ...config import Config
from ...data.images import Pixels, resized
from ...errors import DataError


@dataclass(frozen=True, kw_only=True)
class ImageSettings(Config):
    """The names of the classes, in the order of the model's output, and how pixels are prepared, in this order.

    `resize`: to (height, width); or to one number, which the shorter side becomes; empty: not at all. `crop`: the
    middle (height, width); empty: all of it. Then pixel · `rescale`, less `mean`, over `std`, for each channel.
    """

    title: ClassVar[str] = "images"

    labels: tuple[str, ...]
    resize: tuple[int, ...]
    crop: tuple[int, ...] = ()
    resample: Literal["nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"] = "bilinear"
    rescale: float = 1 / 255
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def check(self) -> None:
        twice = sorted(label for label, times in Counter(self.labels).items() if times > 1)
        self.require(not twice, f"the labels {', '.join(twice)} stand there twice")
        self.require(len(self.resize) <= 2, f"resize is (height, width), one number or nothing, not {self.resize}")
        self.require(len(self.crop) in (0, 2), f"crop is (height, width) or nothing, not {self.crop}")
        self.require(
            all(size >= 1 for size in self.resize + self.crop),
            f"resize and crop are at least 1, not {self.resize} and {self.crop}",
        )
        self.require(
            len(self.resize) != 1 or bool(self.crop),
            "where resize sets the shorter side alone, crop must say what is cut out of the middle",
        )
        sides = self.resize if len(self.resize) == 2 else self.resize * 2
        self.require(
            all(cut <= side for cut, side in zip(self.crop, sides, strict=False)),
            f"a crop of {self.crop} is larger than what resize={self.resize} gives",
        )
        self.require(len(self.mean) == len(self.std), "mean and std have one number each for every channel")
        self.require(all(std > 0 for std in self.std), f"std must be above 0, not {self.std}")


def prepare(pixels: Pixels, settings: ImageSettings, height: int, width: int) -> NDArray[np.float32]:
    """(H, W, C) → (C, height, width), the size that the model reads."""
    pixels = resized(pixels, *_target(settings.resize, *pixels.shape[:2]), settings.resample)
    if settings.crop:
        pixels = _middle(pixels, *settings.crop)
    if pixels.shape[:2] != (height, width):
        raise DataError(f"it has {_size(pixels)} pixels, and this model, which resizes none, reads {height} x {width}")
    values = (pixels * np.float64(settings.rescale)).astype(np.float32)
    mean, std = (np.asarray(numbers, dtype=np.float32) for numbers in (settings.mean, settings.std))
    return np.moveaxis((values - mean) / std, -1, 0)


def _target(resize: tuple[int, ...], height: int, width: int) -> tuple[int, int]:
    if not resize:
        return height, width
    if len(resize) == 2:
        return resize[0], resize[1]
    short, (shorter, longer) = resize[0], sorted((height, width))
    long = int(short * longer / shorter)
    return (short, long) if height < width else (long, short)


def _middle(pixels: Pixels, height: int, width: int) -> Pixels:
    top, left = (pixels.shape[0] - height) // 2, (pixels.shape[1] - width) // 2
    if top < 0 or left < 0:
        raise DataError(f"it has {_size(pixels)} pixels, and {height} x {width} are to be cut out of its middle")
    return pixels[top : top + height, left : left + width]


def _size(pixels: Pixels) -> str:
    return f"{pixels.shape[0]} x {pixels.shape[1]}"
