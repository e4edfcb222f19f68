"""The data of image classification: settings, the store in a run's folder, metadata and batches.

Shapes: N images, B batch, H height, W width, C channels.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...config import Config, FamilyConfig, read_mapping
from ...data.batch import TensorBatch
from ...data.image_sets import (
    RESAMPLE,
    TRAIN,
    UNUSED,
    VALID,
    ImageSource,
    ImageStore,
    common_shape,
    image_sources,
    resized_images,
    write_images,
)
from ...data.labeled_texts import sorted_labels
from ...data.report import ImageReport
from ...data.validation_split import held_out, unsplittable
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
    """How images are prepared, all to squares of one size, and how many are held out."""

    title: ClassVar[str] = "data"

    # Side in pixels to which all images are stretched. None: that of the images, if all have one size of at most the
    # model's (or 64, if that is more); otherwise this largest size.
    image_size: int | None = None
    n_channels: Literal[1, 3] | None = None  # 1 for gray, 3 for color; None: color if any image has some
    holdout: int = 5000  # Images for validation, at most a tenth of each class, if there are no validation files

    def check(self) -> None:
        self.require_positive("image_size", "holdout")


@dataclass(frozen=True, kw_only=True)
class AugmentConfig(Config):
    """How a training image is changed at random each time it is used."""

    title: ClassVar[str] = "augment"

    shift: float = 0.07  # Images move at random by up to this share of their side; the edge pixels are repeated
    rotate: float = 0.0  # Images turn at random by up to this many degrees
    flip: bool = False  # Mirror half of the images; wrong for letters and digits

    def check(self) -> None:
        self.require_share("shift")
        self.require(0 <= self.rotate <= 180, f"rotate is from 0 to 180 degrees, not {self.rotate}")


@dataclass(frozen=True, kw_only=True)
class ImagesConfig(RunConfig):
    """The settings of a run. A token of `training.batch_tokens` is a patch."""

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
            f"a model of the family {model.family!r} with the head {getattr(model, 'head', None)!r} cannot "
            "classify images; use vit or deit with head=classes or distilled",
        )

    @property
    def largest_size(self) -> int:
        """The size that larger images are reduced to if no size is set."""
        model: Any = self.model
        return max(64, int(model.image_size))

    def model_for(self, size: int, n_channels: int, n_classes: int) -> FamilyConfig:
        """Return the model's config for these images; where patches do not fit, as many smaller or larger ones."""
        model: Any = self.model
        patch = model.patch_size if size % model.patch_size == 0 else _patch_size(size, model)
        return self.model.changed(image_size=size, patch_size=patch, n_channels=n_channels, n_classes=n_classes)


def _patch_size(size: int, model: ImageConfig) -> int:
    wanted = max(1.0, size * model.patch_size / model.image_size)
    fitting = [side for side in range(1, size + 1) if size % side == 0 and wanted / 2 <= side <= wanted * 2]
    if not fitting:
        raise ConfigError(
            f"images of {size} x {size} cannot be cut into patches of about {wanted:.0f} pixels; change "
            "data.image_size or model.patch_size"
        )
    return min(fitting, key=lambda side: abs(side - wanted))


ImageData = TrainingData[ImageStore, None, ImageSettings]


def open_images(folder: Path) -> ImageData:
    """Open the store and the settings that `prepare_images` has written."""
    store = ImageStore(folder / IMAGES)
    return TrainingData(folder, store.part(TRAIN), store.part(VALID), None, read_settings(folder))


def read_settings(folder: Path) -> ImageSettings:
    """Read the classes and the preprocessing that a run's weights were trained with."""
    try:
        return ImageSettings.from_dict(read_mapping(folder / SETTINGS))
    except ConfigError as error:
        raise DataError(f"the prepared images cannot be used: {error}") from None


def sources_of(files: Files) -> tuple[list[ImageSource], list[ImageSource]]:
    """Return the training sets and the validation sets; of a validation set, its test part if it has one."""
    train = image_sources(files.train, part="train", columns=files.columns)
    return train, image_sources(files.valid, part="test", columns=files.columns) if files.valid else []


class ImageRow(NamedTuple):
    """What is known of a stored image: its class, its split, where it was read, and a digest of its pixels."""

    label: str
    part: int
    place: str
    digest: bytes


def prepare_images(
    config: ImagesConfig, files: Files, folder: Path, trained: ImageSettings | None = None
) -> tuple[ImageData, DataReport[ImageReport]]:
    """Read all images into a store and hold some out for validation.

    Args:
        config: The settings of the run.
        files: The sets of images.
        folder: Where the store is written.
        trained: The settings of a run that has trained: its classes, size and pixel range are used again.
    """
    train, valid = sources_of(files)
    report = DataReport(ImageReport(), ImageReport() if valid else None)
    if trained is None:
        data = config.data
        size, n_channels = common_shape([*train, *valid], data.image_size, data.n_channels, config.largest_size)
    else:
        size, n_channels = trained.resize[0], len(trained.mean)
    rows: list[ImageRow] = []
    with write_images(folder / IMAGES, (size, size, n_channels)) as writer:
        for part, sources, part_report in ((TRAIN, train, report.train), (VALID, valid, report.valid)):
            for pixels, label, place in resized_images(sources, size, n_channels, part_report) if part_report else ():
                writer.add(pixels, place)
                digest = hashlib.blake2b(np.ascontiguousarray(pixels).data, digest_size=8).digest()
                rows.append(ImageRow(label, part, place, digest))
        rows = _without_validation_images(rows, report.train)
        labels = _labels(report, trained)
        if not valid:
            chosen = held_out(((row.label, row.digest) for row in rows), config.data.holdout)
            rows = [row._replace(part=VALID) if row.digest in chosen else row for row in rows]
            report.held_out = sum(row.part == VALID for row in rows)
            if not report.held_out:
                reason = unsplittable(((row.label, row.digest) for row in rows), "images")
                raise TooLittleDataError(f"{reason}; add images, or give validation images (--valid)", report)
        ids = {label: number for number, label in enumerate(labels)}
        writer.labels = [ids.get(row.label, -1) for row in rows]  # a dropped one may have none
        writer.parts = [row.part for row in rows]
    settings = trained
    if settings is None:
        mean, std = mean_and_std(ImageStore(folder / IMAGES).part(TRAIN))
        settings = ImageSettings(labels=labels, resize=(size, size), resample=RESAMPLE, mean=mean, std=std)
    settings.save(folder / SETTINGS)
    return open_images(folder), report


def _without_validation_images(rows: list[ImageRow], report: ImageReport) -> list[ImageRow]:
    """Take out of training what is in validation too: a score on it would measure memory."""
    seen = {row.digest for row in rows if row.part == VALID}
    for index, row in enumerate(rows):
        if row.part == TRAIN and row.digest in seen:
            rows[index] = row._replace(part=UNUSED)
            report.drop_kept("also in validation", row.place, row.label)
    return rows


def _labels(report: DataReport[ImageReport], trained: ImageSettings | None) -> tuple[str, ...]:
    """Return the classes in order; DataError if there are too few, or some that training does not know."""
    train, valid = report.train, report.valid
    for purpose, part in (("train", train), ("validate", valid)):
        if part is not None and not part.kept:
            first = next((f"; the first: {tally.places[0]}" for tally in part.dropped.values()), "")
            raise TooLittleDataError(f"there is no image to {purpose} on; {part.total:,} were found{first}", report)
    present = sorted_labels(label for label, n in train.labels.items() if n > 0)
    labels = trained.labels if trained else present
    if len(present) < 2:
        raise TooLittleDataError(f"every image is of the class {labels[0]!r}; at least two classes are needed", report)
    check_labels(train.labels, labels, "training")
    if valid is not None:
        check_labels(valid.labels, labels, "validation")
    return labels


def mean_and_std(store: ImageStore) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and deviation of each channel over images, exact, with pixels from 0 to 1."""
    counts = np.zeros((store.pixels.shape[-1], 256), np.int64)
    for first in range(0, len(store), CHUNK):
        pixels = store.pixels[store.rows[first : first + CHUNK]]
        counts += [np.bincount(pixels[..., channel].ravel(), minlength=256) for channel in range(len(counts))]
    level: NDArray[np.float64] = np.arange(256) / 255
    total = counts.sum(axis=1)
    mean = counts @ level / total
    deviation = np.sqrt(np.maximum(counts @ level**2 / total - mean**2, 0.0))
    std = np.where(deviation > 1e-6, deviation, 1.0)  # of one color only: nothing to divide by
    return tuple(map(float, mean)), tuple(map(float, std))


def check_labels(counts: Counter[str], labels: Sequence[str], part: str) -> None:
    """Raise a DataError for classes that the model does not know."""
    unseen = {label: n for label, n in counts.items() if n > 0 and label not in labels}
    if unseen:
        named = ", ".join(f"{label!r} ({n:,} images)" for label, n in sorted(unseen.items())[:NAMED])
        learned = ", ".join(labels[:NAMED]) + (", …" if len(labels) > NAMED else "")
        raise DataError(
            f"the {part} images have classes that were not trained: {named}; the model knows {learned}. "
            "Leave these images out, or train on all classes"
        )


@dataclass(frozen=True, eq=False)
class ImageBatch(TensorBatch):
    """Images as bytes, so that little is copied to the device; padding rows are not in `rows`."""

    pixels: Tensor  # (B, H, W, C), uint8
    labels: Tensor  # (B)
    keep: Tensor  # (B): which rows are images
    rows: tuple[int, ...]  # of the store


class ImageLoader(EvenBatches[ImageBatch]):
    """The images of a subset as batches of at most `batch_size`."""

    def __init__(self, images: ImageStore, batch_size: int, seed: int = 0) -> None:
        super().__init__(images.rows, batch_size, seed)
        self.store = images

    def batch(self, rows: NDArray[np.intp], size: int) -> ImageBatch:
        """Return rows as a batch; padding rows are black."""
        pixels = np.zeros((size, *self.store.pixels.shape[1:]), np.uint8)
        labels = np.zeros(size, np.int64)
        n = len(rows)
        pixels[:n], labels[:n] = self.store.pixels[rows], self.store.labels[rows]
        keep = torch.arange(size) < n
        return ImageBatch(torch.from_numpy(pixels), torch.from_numpy(labels), keep, tuple(rows.tolist()))
