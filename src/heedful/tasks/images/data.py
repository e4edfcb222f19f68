"""Sets of images: the settings of a run, their store in its folder, batches, and what a model must know of them.

Shapes: N images, B batch, H height, W width, C channels.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...config import Config, FamilyConfig, read_mapping
from ...data.batch import moved
from ...data.image_sets import RESAMPLE, ImageSource, common_shape, image_sources, resized_images
from ...data.image_sets.store import TRAIN, UNUSED, VALID, ImageStore, write_images
from ...data.images import Pixels
from ...data.report import ImageReport
from ...data.validation_split import held_out
from ...errors import ConfigError, DataError
from ...families import config_of
from ...families.vit import ImageConfig
from ...training.config import TrainingConfig
from ..run import DataReport, Files, RunConfig, TooLittleDataError, TrainingData
from ..run.batches import EvenBatches
from .predictor import ImageSettings

PRESET = "vit-tiny"
IMAGES, SETTINGS = "images", "images.json"
CHUNK = 4096  # images whose pixels are counted at once
NAMED = 20  # classes that a message lists


@dataclass(frozen=True, kw_only=True)
class ImageDataConfig(Config):
    """What is made of the images. All become squares of `image_size` pixels; others are stretched to it.

    Without a size it is that of the images, where all have the same and it is small; else the model's, 64 at least.
    `n_channels` is 1 for grey and 3 for colour; unless it is given, colour where any image has some. Without
    validation files, `holdout` images (at most a tenth, and of every class its share) are set apart.
    """

    title: ClassVar[str] = "data"

    image_size: int | None = None
    n_channels: Literal[1, 3] | None = None
    holdout: int = 5000

    def check(self) -> None:
        self.require_positive("image_size", "holdout")


@dataclass(frozen=True, kw_only=True)
class AugmentConfig(Config):
    """How a training image may be changed each time it is seen.

    `shift`: moved by up to this share of its side each way, in whole pixels, its edge drawn out; `rotate`: turned by up
    to so many degrees; `flip`: left and right swapped half of the time, which letters and digits do not bear.
    """

    title: ClassVar[str] = "augment"

    shift: float = 0.07
    rotate: float = 0.0
    flip: bool = False

    def check(self) -> None:
        self.require_share("shift")
        self.require(0 <= self.rotate <= 180, f"rotate is from 0 to 180 degrees, not {self.rotate}")


@dataclass(frozen=True, kw_only=True)
class ImagesConfig(RunConfig):
    """Which images, how they are changed in training, which model. A token of `training.batch_tokens` is a patch."""

    preset: ClassVar[str] = PRESET

    data: ImageDataConfig = field(default_factory=ImageDataConfig)
    augment: AugmentConfig = field(default_factory=AugmentConfig)
    model: FamilyConfig = field(default_factory=lambda: config_of(PRESET))
    training: TrainingConfig = field(
        default_factory=lambda: TrainingConfig(
            steps=5000,
            schedule="cosine",
            warmup_steps=200,
            weight_decay=0.05,
            betas=(0.9, 0.99),
            epsilon=1e-8,
            validate_every=500,
            save_every=500,
        )
    )

    def check(self) -> None:
        model: Any = self.model
        self.require(
            isinstance(self.model, ImageConfig) and model.head in ("classes", "distilled"),
            f"a model of the family {model.family!r} with the head {getattr(model, 'head', None)!r} does not tell "
            "classes of images apart; vit and deit with a head of classes do",
        )

    @property
    def largest_size(self) -> int:
        """Up to which images keep their own size, and what others become, where no size is given."""
        model: Any = self.model
        return max(64, int(model.image_size))

    def model_for(self, size: int, n_channels: int, n_classes: int) -> FamilyConfig:
        """The model's config once the images are known. Its patches stay where they fit, else there are as many."""
        model: Any = self.model
        patch = model.patch_size if size % model.patch_size == 0 else _patch_size(size, model)
        return self.model.changed(image_size=size, patch_size=patch, n_channels=n_channels, n_classes=n_classes)


def _patch_size(size: int, model: ImageConfig) -> int:
    wanted = max(1.0, size * model.patch_size / model.image_size)
    fitting = [side for side in range(1, size + 1) if size % side == 0 and wanted / 2 <= side <= wanted * 2]
    if not fitting:
        raise ConfigError(
            f"images of {size} x {size} cannot be cut into patches of about {wanted:.0f} pixels; choose what fits: "
            "data.image_size, or model.patch_size"
        )
    return min(fitting, key=lambda side: abs(side - wanted))


@dataclass(frozen=True, eq=False)
class ImageSubset:
    """Some rows of a store: those to train on, or those to validate on."""

    store: ImageStore
    rows: NDArray[np.intp]

    @property
    def fingerprint(self) -> str:
        """Of the whole store."""
        return self.store.fingerprint

    def __len__(self) -> int:
        return len(self.rows)

    def place(self, row: int) -> str:
        """Where a row of the store came from."""
        return self.store.place(row)


ImageData = TrainingData[ImageSubset, None, ImageSettings]


def open_images(folder: Path) -> ImageData:
    """What `prepare_images` has written."""
    return _image_data(folder, ImageStore(folder / IMAGES), read_settings(folder))


def _image_data(folder: Path, store: ImageStore, settings: ImageSettings) -> ImageData:
    train, valid = (ImageSubset(store, store.rows(part)) for part in (TRAIN, VALID))
    return TrainingData(folder, train, valid, None, settings)


def read_settings(folder: Path) -> ImageSettings:
    """The classes and the preparation that a run's weights were trained with."""
    try:
        return ImageSettings.from_dict(read_mapping(folder / SETTINGS))
    except ConfigError as error:
        raise DataError(f"what was made of the images cannot be used: {error}") from None


def sources_of(files: Files) -> tuple[list[ImageSource], list[ImageSource]]:
    """The sets to train on, and those to validate on; of what is given for that, the part to test on if it has one."""
    train = image_sources(files.train, part="train", columns=files.columns)
    return train, image_sources(files.valid, part="test", columns=files.columns) if files.valid else []


def prepare_images(
    config: ImagesConfig, files: Files, folder: Path, keep: ImageSettings | None = None
) -> tuple[ImageData, DataReport[ImageReport]]:
    """Read everything and set some apart for validation. Classes, size and range are those of `keep` where given."""
    train, valid = sources_of(files)
    report = DataReport(ImageReport(), ImageReport() if valid else None)
    if keep is None:
        data = config.data
        size, n_channels = common_shape([*train, *valid], data.image_size, data.n_channels, config.largest_size)
    else:
        size, n_channels = keep.resize[0], len(keep.mean)
    rows = ImageRows()
    with write_images(folder / IMAGES, (size, size, n_channels)) as writer:
        for part, sources, reading in ((TRAIN, train, report.train), (VALID, valid, report.valid)):
            for pixels, label, place in resized_images(sources, size, n_channels, reading) if reading else ():
                writer.add(pixels, place)
                rows.add(pixels, label, place, part)
        drop_twice(rows, report.train)
        labels = _labels(report, keep)
        if not valid:
            report.held_out = hold_out(rows, config.data.holdout)
            if not report.held_out:
                raise TooLittleDataError(
                    f"{report.train.kept} images of {len(labels)} classes are too few to set some apart for "
                    "validation; give more, or images of your own to validate on (--valid)",
                    report,
                )
        ids = {label: number for number, label in enumerate(labels)}
        writer.finish([ids.get(label, -1) for label in rows.labels], rows.parts)  # one that is left out may have none
    store = ImageStore(folder / IMAGES)
    settings = keep or _settings(store, labels)
    settings.save(folder / SETTINGS)
    return _image_data(folder, store, settings), report


def _labels(report: DataReport[ImageReport], keep: ImageSettings | None) -> tuple[str, ...]:
    """The classes in order; an error where there is nothing to tell apart, or what training does not know."""
    train, valid = report.train, report.valid
    for what, found in (("train", train), ("validate", valid)):
        if found is not None and not found.kept:
            first = next((f"; the first: {tally.places[0]}" for tally in found.dropped.values()), "")
            raise TooLittleDataError(f"there is no image to {what} on: {found.total:,} were found{first}", report)
    known = keep.labels if keep else order_labels(train.labels)
    if len(order_labels(train.labels)) < 2:
        raise TooLittleDataError(f"every image is of the class {known[0]!r}; two classes at least are needed", report)
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


class ImageRows:
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


def drop_twice(rows: ImageRows, reading: ImageReport) -> None:
    """An image that validation uses is none to train on: the score would be of memory."""
    seen = {rows.digests[row] for row in rows.of(VALID)}
    for row in rows.of(TRAIN):
        if rows.digests[row] in seen:
            rows.parts[row] = UNUSED
            reading.drop_kept("also in validation", rows.places[row], rows.labels[row])


def hold_out(rows: ImageRows, wanted: int) -> int:
    """Of each class its share becomes validation, chosen by pixels, so that no image is on both sides; how many."""
    chosen = held_out(zip(rows.labels, rows.digests, strict=True), wanted)
    for row, digest in enumerate(rows.digests):
        if digest in chosen:
            rows.parts[row] = VALID
    return len(rows.of(VALID))


def order_labels(labels: Mapping[str, int]) -> tuple[str, ...]:
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


@dataclass(frozen=True, eq=False)
class ImageBatch:
    """Images as bytes, so that little travels to the device; a row that is not there has no place in `rows`."""

    pixels: Tensor  # (B, H, W, C), uint8
    labels: Tensor  # (B)
    keep: Tensor  # (B): which rows are images
    rows: tuple[int, ...]  # of the store

    def to(self, device: torch.device | str) -> Self:
        """The same on a device."""
        return moved(self, device)

    def fixed(self) -> Self:
        """The same without what the host knows of its values: as good for every batch of its shape."""
        return replace(self, rows=())


class ImageLoader(EvenBatches[ImageBatch]):
    """The images of a subset as batches of at most `batch_size`."""

    def __init__(self, images: ImageSubset, batch_size: int, seed: int = 0) -> None:
        super().__init__(images.rows, batch_size, seed)
        self.store = images.store

    def batch(self, rows: NDArray[np.intp], size: int) -> ImageBatch:
        """Rows that are not there are black."""
        pixels = np.zeros((size, *self.store.pixels.shape[1:]), np.uint8)
        labels = np.zeros(size, np.int64)
        n = len(rows)
        pixels[:n], labels[:n] = self.store.pixels[rows], self.store.labels[rows]
        keep = torch.arange(size) < n
        return ImageBatch(torch.from_numpy(pixels), torch.from_numpy(labels), keep, tuple(rows.tolist()))
