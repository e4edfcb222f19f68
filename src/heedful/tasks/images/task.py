"""The four answers for images: sets of them with their classes, a ViT, cross-entropy, accuracy and F1."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from ...families import build
from ...lens.report import Confusion, SeenImage
from ..run import Files, Task
from ..run.folder import DATA
from ..run.sources import VALIDATION
from .classifier import ImageClassifier
from .config import ImagesConfig
from .evaluation import evaluate_files
from .job import ImagesJob
from .looking import ImageLook, looks
from .reading import IMAGES, SETTINGS, ImageReadings, Prepared, kept_settings, read_images, sources_of
from .starting import started

SHAPE = "the size and the channels of the images"
NAMED = 12  # classes that the card lists


class ImagesTask(Task[ImagesConfig, Prepared]):
    """Which class an image is of."""

    name: ClassVar[str] = ImageClassifier.task
    loads: ClassVar[type[Any]] = ImageClassifier
    counted: ClassVar[str] = "images"
    config: ClassVar[type[Any]] = ImagesConfig
    made: ClassVar[tuple[str, ...]] = (f"{DATA}/{IMAGES}", f"{DATA}/{SETTINGS}")
    kept: ClassVar[tuple[str, ...]] = (SHAPE,)

    def inputs(self, config: ImagesConfig, files: Files) -> dict[str, Path]:
        """Labels beside images, and every image that is a file, among them."""
        train, valid = sources_of(files)
        return {
            f"{path}{use}": path
            for use, sources in (("", train), (VALIDATION, valid))
            for source in sources
            for path in source.files
        }

    def decides(self, config: ImagesConfig, files: Files) -> dict[str, str]:
        """Size and channels, which the model has too; columns, and how much is set apart."""
        data = config.data
        return {
            SHAPE: json.dumps([data.image_size, data.n_channels, config.largest_size]),
            "the columns": json.dumps(files.columns),
            "data.holdout": str(data.holdout),
        }

    def read(self, config: ImagesConfig, files: Files, folder: Path, *, keep: bool) -> tuple[Prepared, ImageReadings]:
        """Decoded and brought to one size, once."""
        return read_images(config, files, folder, kept_settings(folder) if keep else None)

    def open(self, config: ImagesConfig, folder: Path) -> Prepared:
        """The store."""
        return Prepared.open(folder)

    def job(self, config: ImagesConfig, data: Prepared) -> ImagesJob:
        """With fresh weights, for as many classes as there are."""
        size, _, n_channels = data.shape
        model = config.model_for(size, n_channels, len(data.settings.labels))
        return ImagesJob(config, data, model, started(build(model)))

    def heading(self, predictor: ImageClassifier) -> str:
        """How many classes it tells apart."""
        return f"images of {len(predictor.settings.labels)} classes"

    def remarks(self, predictor: ImageClassifier, metrics: Mapping[str, Any]) -> list[str]:
        """Its classes, and what it does with an image of another size."""
        labels = predictor.settings.labels
        n_channels, height, width = predictor.shape
        colours = "grey" if n_channels == 1 else "in colour"
        more = f" and {len(labels) - NAMED:,} more" if len(labels) > NAMED else ""
        return [
            f"It tells apart: {', '.join(labels[:NAMED])}{more}.",
            f"It reads {height} x {width} pixels, {colours}; other images are resized, and stretched to a square.",
            f"Its probabilities are off by {metrics['validation']['calibration']:.1f} points on average.",
        ]

    def evaluate(self, predictor: ImageClassifier, files: Files) -> dict[str, Any]:
        """Of a set that has a part to test on, that part."""
        return evaluate_files(predictor, files.train, files.columns).to_dict()["validation"]

    def shown(self, predictor: ImageClassifier, metrics: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Which classes are taken for which, and where it looks; a copy of the bundle alone has no images to show."""
        validation = metrics["validation"]
        there = (folder / DATA / IMAGES).is_dir()
        return {
            "confusion": Confusion(validation["labels"], validation["confusion"]),
            "images": [_seen(one) for one in looks(predictor, folder / DATA, metrics["samples"])] if there else [],
        }


def _seen(given: ImageLook) -> SeenImage:
    title = Path(given.place).name
    return SeenImage(title, given.png, list(given.answer.items()), given.label or "", given.attention)
