"""Images: sets of them with their classes, a ViT, cross-entropy, accuracy and F1.

Shapes: B batch, H height, W width, C channels; N images, K classes.
"""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ...config import FamilyConfig
from ...core import Learned, PatchEmbedding
from ...data.image_sets import LabeledImage, image_sources
from ...data.image_sets.store import VALID, ImageStore
from ...data.report import ImageReport
from ...errors import DataError
from ...lens.report import Confusion, SeenImage
from ...training.loss import Loss, cross_entropy
from ...training.objective import Monitor
from ..class_scores import accuracy, class_scores, confusion_matrix, macro_f1
from ..predictor import in_chunks, located
from ..run import DataReport, Files, Task
from ..run.task import DATA, VALIDATION, settings_json
from .data import (
    IMAGES,
    SETTINGS,
    AugmentConfig,
    ImageBatch,
    ImageData,
    ImageLoader,
    ImagesConfig,
    check_labels,
    open_images,
    prepare_images,
    read_settings,
    sources_of,
)
from .predictor import ImageClassifier, ImageSettings, see_image

SHAPE = "the size and the channels of the images"
NAMED = 12  # classes that the card lists
CHUNK = 1024  # images evaluated at once
SAMPLES = 100  # that metrics.json lists: the surest mistakes, at most half of them, and right ones of all classes


class ImagesTask(Task[ImagesConfig, ImageData, ImageBatch]):
    """Which class an image is of: cross-entropy over the classes with label smoothing."""

    name: ClassVar[str] = ImageClassifier.task
    predictor_class: ClassVar[type[Any]] = ImageClassifier
    config_class: ClassVar[type[Any]] = ImagesConfig
    example_name: ClassVar[str] = "images"
    artifacts: ClassVar[tuple[str, ...]] = (f"{DATA}/{IMAGES}", f"{DATA}/{SETTINGS}")
    frozen_settings: ClassVar[tuple[str, ...]] = (SHAPE,)

    def input_files(self, config: ImagesConfig, files: Files) -> dict[str, Path]:
        """Labels beside images, and every image that is a file, among them."""
        train, valid = sources_of(files)
        return {
            f"{path}{use}": path
            for use, sources in (("", train), (VALIDATION, valid))
            for source in sources
            for path in source.files
        }

    def data_settings(self, config: ImagesConfig, files: Files) -> dict[str, str]:
        """Size and channels, which the model has too; columns, and how much is set apart."""
        data = config.data
        return {
            SHAPE: json.dumps([data.image_size, data.n_channels, config.largest_size]),
            "the columns": json.dumps(files.columns),
            "data.holdout": str(data.holdout),
        }

    def prepare(
        self, config: ImagesConfig, files: Files, folder: Path, *, keep: bool = False
    ) -> tuple[ImageData, DataReport[ImageReport]]:
        """Decoded and brought to one size, once."""
        return prepare_images(config, files, folder, read_settings(folder) if keep else None)

    def open(self, config: ImagesConfig, folder: Path) -> ImageData:
        return open_images(folder)

    def model_config(self) -> FamilyConfig:
        """For the images' size, and as many classes as there are."""
        size, _, n_channels = self.data.train.store.pixels.shape[1:]
        return self.config.model_for(size, n_channels, len(self.data.metadata.labels))

    def build(self) -> nn.Module:
        return initialize_weights(super().build())

    def setup(self) -> None:
        """The score to monitor is the share of images taken for what they are."""
        self.monitor = Monitor("accuracy", higher_is_better=True)
        patches: Any = self.module.embedding
        n_rows = self.config.training.batch_tokens // patches.n_patches
        self.batches = ImageLoader(self.data.train, n_rows, seed=self.config.training.seed)
        self.validation = ImageLoader(self.data.valid, n_rows)
        self.normalize = Normalize(self.data.metadata)

    def predictor(self, module: nn.Module) -> ImageClassifier:
        return ImageClassifier(self.model_config(), module, self.data.metadata)

    def loss(self, module: nn.Module, batch: ImageBatch) -> Loss:
        """Sums over a batch's images, changed a little while the module trains."""
        images = self.normalize(batch.pixels)
        if module.training:
            images = augment(images, self.config.augment)
        return cross_entropy(module(images), batch.labels, batch.keep, smoothing=self.config.training.label_smoothing)

    def validate(self, module: nn.Module) -> dict[str, float]:
        """Loss without smoothing, accuracy and macro F1 over all images that were set apart."""
        device = next(module.parameters()).device
        plain = count = torch.zeros((), device=device)
        taken: list[Tensor] = []
        with torch.inference_mode():
            for batch in self.validation.in_order():
                batch = batch.to(device)
                logits = module(self.normalize(batch.pixels))
                sums = cross_entropy(logits, batch.labels, batch.keep)
                plain, count = plain + sums.plain, count + sums.n
                taken.append(logits[: len(batch.rows)].argmax(dim=-1))
        labels = self.data.valid.store.labels[self.data.valid.rows]
        predicted = torch.cat(taken).cpu().numpy()
        confusion = confusion_matrix(labels.tolist(), predicted, len(self.data.metadata.labels))
        return {"loss": float(plain / count), "accuracy": accuracy(confusion), "macro_f1": macro_f1(confusion)}

    def final_evaluation(self, predictor: ImageClassifier) -> dict[str, Any]:
        """As a user would ask it, over all images that were set apart."""
        store, labels = self.data.valid.store, predictor.settings.labels
        rows = self.data.valid.rows.tolist()
        images = (LabeledImage(store.pixels[row], labels[store.labels[row]], store.place(row)) for row in rows)
        return evaluate_images(predictor, images)

    def identity(self) -> dict[str, str]:
        """The images, their classes and preparation, how they are changed, and the model."""
        settings = str(sorted(self.data.metadata.to_dict().items()))
        return {
            "images": self.data.train.fingerprint[:16],
            "classes": hashlib.sha256(settings.encode()).hexdigest()[:16],
            "augmentation": settings_json(self.config.augment),
            "model": settings_json(self.model_config()),
        }

    def title(self, predictor: ImageClassifier) -> str:
        """How many classes it tells apart."""
        return f"images of {len(predictor.settings.labels)} classes"

    def card_notes(self, predictor: ImageClassifier, metrics: Mapping[str, Any]) -> list[str]:
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
        return evaluate_files(predictor, files.train, files.columns)["validation"]

    def report_sections(self, predictor: ImageClassifier, metrics: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Which classes are taken for which, and where it looks; a copy of the bundle alone has no images to show."""
        validation = metrics["validation"]
        there = (folder / DATA / IMAGES).is_dir()
        return {
            "confusion": Confusion(validation["labels"], validation["confusion"]),
            "images": see_samples(predictor, folder / DATA, metrics["samples"]) if there else [],
        }


class Normalize:
    """Bytes (B, H, W, C) to the range that the model reads, (B, C, H, W), on the device where they are."""

    def __init__(self, settings: ImageSettings) -> None:
        mean, std = np.array(settings.mean), np.array(settings.std)
        self._host = torch.tensor(np.stack([settings.rescale / std, -mean / std]), dtype=torch.float32)  # (2, C)
        self._there: dict[torch.device, Tensor] = {}

    def __call__(self, pixels: Tensor) -> Tensor:
        if pixels.device not in self._there:
            self._there[pixels.device] = self._host.to(pixels.device)
        scale, offset = self._there[pixels.device][:, None, :, None, None]
        return pixels.movedim(-1, 1).float() * scale + offset


def augment(images: Tensor, config: AugmentConfig) -> Tensor:
    """Images (B, C, H, W), each moved, turned and mirrored by its own chance, drawn from torch, on the device."""
    n, _, height, width = images.shape
    if not (config.shift or config.rotate or config.flip):
        return images

    def drawn(most: float) -> Tensor:
        """Evenly from −most to most, one for each image."""
        return (torch.rand(n, device=images.device) * 2 - 1) * most

    pixels = round(config.shift * max(height, width)) or (1 if config.shift else 0)
    down, right = (drawn(pixels + 0.5).round().clamp(-pixels, pixels) for _ in range(2))
    angle = drawn(math.radians(config.rotate))
    mirror = torch.where(drawn(1.0) < 0, -1.0, 1.0) if config.flip else torch.ones_like(angle)
    return affine(images, right, down, angle, mirror)


def affine(images: Tensor, right: Tensor, down: Tensor, angle: Tensor, mirror: Tensor) -> Tensor:
    """Each image mirrored (−1), turned about its middle and moved by so many pixels; the edge is drawn out.

    What an image shows at a place is looked up where that place was before.
    """
    _, _, height, width = images.shape
    y, x = (torch.arange(size, device=images.device, dtype=torch.float32) - (size - 1) / 2 for size in (height, width))
    y, x = y[None, :, None] - down[:, None, None], x[None, None, :] - right[:, None, None]  # (B, H, 1), (B, 1, W)
    cos, sin = angle.cos()[:, None, None], angle.sin()[:, None, None]
    from_x, from_y = (cos * x + sin * y) * mirror[:, None, None], cos * y - sin * x
    grid = torch.stack([from_x * (2 / max(1, width - 1)), from_y * (2 / max(1, height - 1))], dim=-1)  # (B, H, W, 2)
    return F.grid_sample(images, grid, mode="bilinear", padding_mode="border", align_corners=True)


@torch.no_grad()
def initialize_weights(module: nn.Module) -> nn.Module:
    """What passes through a matrix keeps its size; positions and the class token are as large as a patch's vector.

    The deviation of 0.02 that the published models start with is for wide ones and millions of images: a small model
    that starts so cannot tell for many steps where a patch stands. On MNIST, 200 steps of 64 images brought such a one
    of width 64 to 36 %, and one that starts as here to 88 %.
    """
    for part in module.modules():
        if isinstance(part, nn.Linear):
            nn.init.normal_(part.weight, std=part.in_features**-0.5)
        elif isinstance(part, Learned):
            nn.init.normal_(part.weight)
        elif isinstance(part, PatchEmbedding):
            nn.init.normal_(part.prefix)
    return module


def evaluate_images(classifier: ImageClassifier, images: Iterable[LabeledImage]) -> dict[str, Any]:
    """Classify every image as a user would, and return what metrics.json holds: "validation" and "samples".

    An image that cannot be read is an error: without it, the score would be of another set.
    """
    labels = classifier.settings.labels
    true: list[int] = []
    probabilities: list[list[float]] = []
    guesses: list[dict[str, Any]] = []
    for chunk in in_chunks(images, CHUNK):
        check_labels(Counter(image.label for image in chunk), labels, "given")
        with located([image.place for image in chunk]):
            answers = classifier.predict([image.image for image in chunk])
        for image, answer in zip(chunk, answers, strict=True):
            best = next(iter(answer))
            true.append(labels.index(image.label))
            probabilities.append([answer[label] for label in labels])
            guesses.append(
                {
                    "place": image.place,
                    "label": image.label,
                    "prediction": best,
                    "probability": answer[best],
                    "of_label": answer[image.label],
                }
            )
    if not guesses:
        raise DataError("there is no image to evaluate on")
    scores = class_scores(true, np.array(probabilities), labels)
    return {"validation": scores.to_dict(), "samples": _samples(guesses)}


def evaluate_files(
    classifier: ImageClassifier, paths: Sequence[str], columns: Sequence[str] | None = None
) -> dict[str, Any]:
    """Evaluate on a set in files; if it has a test part (t10k, x_test), on that part."""
    sources = image_sources(paths, part="test", columns=columns)
    return evaluate_images(classifier, chain.from_iterable(source.images() for source in sources))


def _samples(guesses: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the most confident mistakes, at most half of `SAMPLES`, then correct guesses, the classes taking turns."""
    wrong = sorted(
        (guess for guess in guesses if guess["label"] != guess["prediction"]), key=lambda guess: -guess["probability"]
    )[: SAMPLES // 2]
    turns: Counter[str] = Counter()
    right: list[tuple[int, dict[str, Any]]] = []
    for guess in guesses:
        if guess["label"] == guess["prediction"]:
            right.append((turns[guess["label"]], guess))
            turns[guess["label"]] += 1
    right.sort(key=lambda item: item[0])
    return [*wrong, *(guess for _, guess in right[: SAMPLES - len(wrong)])]


def see_samples(
    classifier: ImageClassifier, data: Path, samples: Sequence[Mapping[str, Any]], n: int = 8
) -> list[SeenImage]:
    """Of the `samples` that metrics.json lists, from the images in a run's `data`: half of them mistakes, if there are
    so many, the others right."""
    store = ImageStore(data / IMAGES)
    at = {store.place(row): row for row in store.rows(VALID).tolist()}
    wrong, right = ([one for one in samples if (one["label"] == one["prediction"]) is truth] for truth in (False, True))
    few = wrong[: max(n // 2, n - len(right))]
    return [
        see_image(classifier, store.pixels[at[one["place"]]], label=one["label"], place=one["place"])
        for one in [*few, *right[: n - len(few)]]
    ]
