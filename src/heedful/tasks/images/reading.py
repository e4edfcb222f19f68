"""From sets of images to a store in a run's folder, and what a model must know of them: classes, size, mean.

Shapes: N images, H height, W width, C channels.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...config import read_mapping
from ...data.image_sets import RESAMPLE, ImageSource, common_shape, image_sources, resized_images
from ...data.image_sets.store import TRAIN, VALID, ImageStore, write_images
from ...data.report import ImageReport
from ...errors import ConfigError, DataError
from ..run import Files, TooLittleDataError
from .config import ImagesConfig
from .preparing import ImageSettings
from .splitting import Rows, check_labels, drop_twice, hold_out, in_order

IMAGES, SETTINGS = "images", "images.json"
CHUNK = 4096  # images whose pixels are counted at once


@dataclass(frozen=True)
class Prepared:
    """Everything training needs from the data."""

    settings: ImageSettings
    store: ImageStore

    @classmethod
    def open(cls, folder: Path) -> Prepared:
        """What `read_images` has written."""
        return cls(kept_settings(folder), ImageStore(folder / IMAGES))

    @property
    def shape(self) -> tuple[int, int, int]:
        """(H, W, C)."""
        height, width, n_channels = self.store.pixels.shape[1:]
        return height, width, n_channels

    def identity(self) -> dict[str, str]:
        """What must stay the same for a run to go on."""
        settings = str(sorted(self.settings.to_dict().items()))
        return {"images": self.store.fingerprint[:16], "classes": hashlib.sha256(settings.encode()).hexdigest()[:16]}


@dataclass
class ImageReadings:
    """What was read for training and for validation. Where `valid` is None, `held_out` images of `train` serve."""

    train: ImageReport = field(default_factory=ImageReport)
    valid: ImageReport | None = None
    held_out: int = 0

    def to_dict(self) -> dict[str, Any]:
        """For a file."""
        return {
            "train": self.train.to_dict(),
            "valid": None if self.valid is None else self.valid.to_dict(),
            "held_out": self.held_out,
        }


def kept_settings(folder: Path) -> ImageSettings:
    """The classes and the preparation that a run's weights were trained with."""
    try:
        return ImageSettings.from_dict(read_mapping(folder / SETTINGS))
    except ConfigError as error:
        raise DataError(f"what was made of the images cannot be used: {error}") from None


def sources_of(files: Files) -> tuple[list[ImageSource], list[ImageSource]]:
    """The sets to train on, and those to validate on; of what is given for that, the part to test on if it has one."""
    train = image_sources(files.train, part="train", columns=files.columns)
    return train, image_sources(files.valid, part="test", columns=files.columns) if files.valid else []


def read_images(
    config: ImagesConfig, files: Files, folder: Path, keep: ImageSettings | None = None
) -> tuple[Prepared, ImageReadings]:
    """Read everything and set some apart for validation. Classes, size and range are those of `keep` where given."""
    train, valid = sources_of(files)
    readings = ImageReadings(valid=ImageReport() if valid else None)
    if keep is None:
        data = config.data
        size, n_channels = common_shape([*train, *valid], data.image_size, data.n_channels, config.largest_size)
    else:
        size, n_channels = keep.resize[0], len(keep.mean)
    rows = Rows()
    with write_images(folder / IMAGES, (size, size, n_channels)) as writer:
        for part, sources, reading in ((TRAIN, train, readings.train), (VALID, valid, readings.valid)):
            for pixels, label, place in resized_images(sources, size, n_channels, reading) if reading else ():
                writer.add(pixels, place)
                rows.add(pixels, label, place, part)
        drop_twice(rows, readings.train)
        labels = _labels(readings, keep)
        if not valid:
            readings.held_out = hold_out(rows, config.data.holdout)
            if not readings.held_out:
                raise TooLittleDataError(
                    f"{readings.train.kept} images of {len(labels)} classes are too few to set some apart for "
                    "validation; give more, or images of your own to validate on (--valid)",
                    readings,
                )
        ids = {label: number for number, label in enumerate(labels)}
        writer.finish([ids.get(label, -1) for label in rows.labels], rows.parts)  # one that is left out may have none
    store = ImageStore(folder / IMAGES)
    settings = keep or _settings(store, labels)
    settings.save(folder / SETTINGS)
    return Prepared(settings, store), readings


def _labels(readings: ImageReadings, keep: ImageSettings | None) -> tuple[str, ...]:
    """The classes in order; an error where there is nothing to tell apart, or what training does not know."""
    train, valid = readings.train, readings.valid
    for what, found in (("train", train), ("validate", valid)):
        if found is not None and not found.kept:
            first = next((f"; the first: {tally.places[0]}" for tally in found.dropped.values()), "")
            raise TooLittleDataError(f"there is no image to {what} on: {found.total:,} were found{first}", readings)
    known = keep.labels if keep else in_order(train.labels)
    if len(in_order(train.labels)) < 2:
        raise TooLittleDataError(f"every image is of the class {known[0]!r}; two classes at least are needed", readings)
    check_labels(train.labels, known, "training")
    if valid is not None:
        check_labels(valid.labels, known, "validation")
    return known


def _settings(store: ImageStore, labels: tuple[str, ...]) -> ImageSettings:
    mean, std = mean_and_std(store)
    return ImageSettings(labels=labels, resize=store.pixels.shape[1:3], resample=RESAMPLE, mean=mean, std=std)


def mean_and_std(store: ImageStore) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Of the training images, for each channel, with pixels from 0 to 1: exact, from how often each level occurs."""
    rows = store.rows(TRAIN)
    counts = np.zeros((store.pixels.shape[-1], 256), np.int64)
    for first in range(0, len(rows), CHUNK):
        pixels = store.pixels[rows[first : first + CHUNK]]
        counts += [np.bincount(pixels[..., channel].ravel(), minlength=256) for channel in range(len(counts))]
    level: NDArray[np.float64] = np.arange(256) / 255
    total = counts.sum(axis=1)
    mean = counts @ level / total
    spread = np.sqrt(np.maximum(counts @ level**2 / total - mean**2, 0.0))
    std = np.where(spread > 1e-6, spread, 1.0)  # of one colour only: nothing to divide by
    return tuple(map(float, mean)), tuple(map(float, std))
