"""Image classification: sets of labeled images, a ViT, cross-entropy, accuracy and F1.

Shapes: B batch, H height, W width, C channels; N images, K classes.
"""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from ...config import FamilyConfig
from ...core import Learned, PatchEmbedding
from ...data.image_sets import VALID, ImageStore, LabeledImage, image_sources
from ...data.report import ImageReport
from ...errors import DataError
from ...lens.report import Confusion, SeenImage
from ...training.loss import Loss, cross_entropy
from ...training.objective import Monitor
from ..class_scores import accuracy, baseline_scores, class_scores, confusion_matrix, escaped_markdown, macro_f1
from ..linear_classifier import fit_linear
from ..predictor import in_chunks, located, refusal
from ..rivals import Rival
from ..run import DataReport, Files, Refusals, Task
from ..run.config import settings_json
from ..run.data import DATA, VALIDATION
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
MAX_SIDE, MAX_PIXELS = 32, 1 << 26  # of an image, and of all images, that the linear model reads
LEAST_BATCH = 64  # images of a batch, by default
LEAST_BATCHES = 20  # in an epoch of few images
MOST_EPOCHS = 60  # of few images
SAMPLES = 100  # that metrics.json lists: the surest mistakes, at most half of them, and right ones of all classes


class ImagesTask(Task[ImagesConfig, ImageData, ImageBatch]):
    """Image classification, trained with cross-entropy and label smoothing."""

    name: ClassVar[str] = ImageClassifier.task
    predictor_class: ClassVar[type[Any]] = ImageClassifier
    config_class: ClassVar[type[Any]] = ImagesConfig
    example_name: ClassVar[str] = "images"
    counted: ClassVar[str] = "images"
    rivals: ClassVar[tuple[Rival, ...]] = (
        Rival("commonest", ("accuracy",)),
        Rival("linear", ("accuracy",), is_trivial=False),
    )
    artifacts: ClassVar[tuple[str, ...]] = (f"{DATA}/{IMAGES}", f"{DATA}/{SETTINGS}")
    frozen_settings: ClassVar[tuple[str, ...]] = (SHAPE,)

    def input_files(self, config: ImagesConfig, files: Files) -> dict[str, Path]:
        """Return every file of labels, and every image that is a file."""
        train, valid = sources_of(files)
        return {
            f"{path}{use}": path
            for use, sources in (("", train), (VALIDATION, valid))
            for source in sources
            for path in source.files
        }

    def data_settings(self, config: ImagesConfig, files: Files) -> dict[str, str]:
        """Return size and channels, which the model depends on too; columns, and how many images are held out."""
        data = config.data
        return {
            SHAPE: json.dumps([data.image_size, data.n_channels, config.largest_size]),
            "the columns": json.dumps(files.columns),
            "data.holdout": str(data.holdout),
        }

    def prepare(
        self, config: ImagesConfig, files: Files, folder: Path, *, keep: bool = False
    ) -> tuple[ImageData, DataReport[ImageReport]]:
        return prepare_images(config, files, folder, read_settings(folder) if keep else None)

    def open(self, config: ImagesConfig, folder: Path) -> ImageData:
        return open_images(folder)

    def defaults(self, config: ImagesConfig, data: ImageData) -> dict[str, dict[str, Any]]:
        """Return smaller batches and a shorter run for few images; many have those of the config."""
        size, _, n_channels = data.train.pixels.shape[1:]
        model: Any = config.model_for(size, n_channels, len(data.metadata.labels))
        n_images, n_patches = len(data.train), (size // model.patch_size) ** 2
        batch = min(max(LEAST_BATCH, n_images // LEAST_BATCHES), config.training.batch_tokens // n_patches)
        most, often = config.training.steps, config.training.validate_every
        if batch < 1 or most is None:
            return {}
        steps = min(most, MOST_EPOCHS * math.ceil(n_images / batch))
        return {
            "training": {
                "batch_tokens": batch * n_patches,
                "steps": steps,
                "validate_every": min(often, math.ceil(steps / 10)),
            }
        }

    def model_config(self) -> FamilyConfig:
        size, _, n_channels = self.data.train.pixels.shape[1:]
        return self.config.model_for(size, n_channels, len(self.data.metadata.labels))

    def build(self) -> nn.Module:
        return initialize_weights(super().build())

    def setup(self) -> None:
        """Create the batches and monitor the accuracy over all validation images."""
        self.monitor = Monitor("accuracy", higher_is_better=True)
        patches: Any = self.module.embedding
        n_rows = self.config.training.batch_tokens // patches.n_patches
        self.batches = ImageLoader(self.data.train, n_rows, seed=self.config.training.seed)
        self.validation = ImageLoader(self.data.valid, n_rows)
        self.normalize = Normalize(self.data.metadata)

    def predictor(self, module: nn.Module) -> ImageClassifier:
        return ImageClassifier(self.model_config(), module, self.data.metadata)

    def loss(self, module: nn.Module, batch: ImageBatch) -> Loss:
        """Return the loss of a batch; images are augmented while the module trains."""
        images = self.normalize(batch.pixels)
        if module.training:
            images = augment(images, self.config.augment)
        return cross_entropy(module(images), batch.labels, batch.keep, smoothing=self.config.training.label_smoothing)

    def validate(self, module: nn.Module) -> dict[str, float]:
        """Return the loss without smoothing, accuracy and macro F1 over all validation images."""
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
        labels = self.data.valid.labels[self.data.valid.rows]
        predicted = torch.cat(taken).cpu().numpy()
        confusion = confusion_matrix(labels.tolist(), predicted, len(self.data.metadata.labels))
        return {"loss": float(plain / count), "accuracy": accuracy(confusion), "macro_f1": macro_f1(confusion)}

    def final_evaluation(self, predictor: ImageClassifier) -> dict[str, Any]:
        """Score all validation images, prepared as a user's would be, beside two baselines."""
        store, labels = self.data.valid, predictor.settings.labels
        images = (
            LabeledImage(store.pixels[row], labels[store.labels[row]], store.place(row)) for row in store.rows.tolist()
        )
        metrics = evaluate_images(predictor, images)
        metrics["validation"]["scores"] |= self._baselines()
        return metrics

    def _baselines(self) -> dict[str, Any]:
        """Return the scores of the most common class, and of a linear model over standardized pixels."""
        train, valid, labels = self.data.train, self.data.valid, self.data.metadata.labels
        side, n_channels = min(train.pixels.shape[1], MAX_SIDE), train.pixels.shape[-1]

        def inputs(store: ImageStore, rows: NDArray[np.intp]) -> Tensor:  # (N, H·W·C)
            chunks = (torch.from_numpy(store.pixels[chunk]) for chunk in in_chunks(rows, CHUNK))
            small = (F.adaptive_avg_pool2d(chunk.movedim(-1, 1).float(), side) for chunk in chunks)
            return torch.cat([images.flatten(1) for images in small])

        rows = np.random.default_rng(0).permutation(train.rows)[: MAX_PIXELS // (side * side * n_channels)]
        pixels = inputs(train, rows)
        mean, std = pixels.mean(dim=0), pixels.std(dim=0).clamp(min=1.0)
        pixels, shape = (pixels - mean) / std, (pixels.shape[1], len(labels))
        weights, bias = fit_linear(pixels.matmul, pixels.T.matmul, train.labels[rows].tolist(), shape, penalty=1.0)
        predicted = ((inputs(valid, valid.rows) - mean) / std @ weights + bias).argmax(dim=-1).numpy()
        classes, true = train.labels[train.rows], valid.labels[valid.rows]
        return baseline_scores(classes, true, labels, predicted, "the pixels", len(rows))

    def identity(self) -> dict[str, str]:
        """Return what must not change: images, classes, preprocessing, augmentation, model."""
        settings = str(sorted(self.data.metadata.to_dict().items()))
        return {
            "images": self.data.train.fingerprint[:16],
            "classes": hashlib.sha256(settings.encode()).hexdigest()[:16],
            "augmentation": settings_json(self.config.augment),
            "model": settings_json(self.model_config()),
        }

    def title(self, predictor: ImageClassifier) -> str:
        return f"images of {len(predictor.settings.labels)} classes"

    def card_notes(self, predictor: ImageClassifier, metrics: Mapping[str, Any]) -> list[str]:
        labels = predictor.settings.labels
        n_channels, height, width = predictor.shape
        colors = "gray" if n_channels == 1 else "color"
        more = f" and {len(labels) - NAMED:,} more" if len(labels) > NAMED else ""
        return [
            f"Its classes: {', '.join(map(escaped_markdown, labels[:NAMED]))}{more}.",
            f"It reads {height} x {width} pixels, {colors}; other images are resized, and stretched to a square.",
            f"Its expected calibration error is {metrics['validation']['calibration']:.1f} %.",
        ]

    def evaluate(self, predictor: ImageClassifier, files: Files, *, strict: bool = False) -> dict[str, Any]:
        """Return the scores over the images of the files; of a set with a test part (t10k, x_test), over that part."""
        sources = image_sources(files.train, part="test", columns=files.columns)
        refusals = Refusals(strict=strict)

        def fault(image: LabeledImage) -> str | None:
            unseen = refusal(
                lambda label: check_labels(Counter([label]), predictor.settings.labels, "given"), image.label
            )
            return unseen or predictor.validation_error(image.image)

        images = refusals.accepted(chain.from_iterable(source.images() for source in sources), fault)
        return evaluate_images(predictor, images)["validation"] | refusals.to_dict()

    def report_sections(self, predictor: ImageClassifier, metrics: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Return the confusion matrix and, if the run's images are there, what the model attends to in some."""
        validation = metrics["validation"]
        there = (folder / DATA / IMAGES).is_dir()
        return {
            "confusion": Confusion(validation["labels"], validation["confusion"]),
            "images": see_samples(predictor, folder / DATA, metrics["samples"]) if there else [],
        }


class Normalize:
    """Turns bytes (B, H, W, C) into the value range that the model reads, (B, C, H, W), on their device."""

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
    """Shift, rotate and flip each image (B, C, H, W) at random, on its device."""
    n, _, height, width = images.shape
    if not (config.shift or config.rotate or config.flip):
        return images

    def drawn(most: float) -> Tensor:
        """Draw from −most to most, uniformly, one number for each image."""
        return (torch.rand(n, device=images.device) * 2 - 1) * most

    pixels = round(config.shift * max(height, width)) or (1 if config.shift else 0)
    down, right = (drawn(pixels + 0.5).round().clamp(-pixels, pixels) for _ in range(2))
    angle = drawn(math.radians(config.rotate))
    mirror = torch.where(drawn(1.0) < 0, -1.0, 1.0) if config.flip else torch.ones_like(angle)
    return affine(images, right, down, angle, mirror)


def affine(images: Tensor, right: Tensor, down: Tensor, angle: Tensor, mirror: Tensor) -> Tensor:
    """Mirror each image (−1), turn it about its center and move it by some pixels; the edge pixels are repeated.

    For each output pixel, its position is traced back to the input.
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
    """Initialize so that matrices keep the scale of activations, and positions match the scale of patch vectors.

    The deviation of 0.02 that the published models start with is for wide models and millions of images: a small model
    that starts so cannot tell for many steps where a patch is. On MNIST, 200 steps of 64 images brought a model of
    width 64 to 36 %, and to 88 % with this initialization.
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
    probabilities: list[list[float]] = []
    guesses: list[dict[str, Any]] = []
    for chunk in in_chunks(images, CHUNK):
        check_labels(Counter(image.label for image in chunk), labels, "given")
        with located([image.place for image in chunk]):
            answers = classifier.predict([image.image for image in chunk])
        for image, answer in zip(chunk, answers, strict=True):
            best, probability = next(iter(answer.items()))
            probabilities.append([answer[label] for label in labels])
            guess = {"place": image.place, "label": image.label, "prediction": best, "probability": probability}
            guesses.append(guess)
    if not guesses:
        raise DataError("there is no image to evaluate on")
    true = [labels.index(guess["label"]) for guess in guesses]
    scores = class_scores(true, np.array(probabilities), labels)
    return {"validation": scores.to_dict(), "samples": _samples(guesses)}


def _samples(guesses: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the most confident mistakes, at most half of `SAMPLES`, then correct guesses, the classes taking turns."""
    wrong: list[dict[str, Any]] = []
    right: dict[str, list[dict[str, Any]]] = {}
    for guess in guesses:
        is_right = guess["label"] == guess["prediction"]
        (right.setdefault(guess["label"], []) if is_right else wrong).append(guess)
    surest = sorted(wrong, key=lambda guess: -guess["probability"])[: SAMPLES // 2]
    in_turns = (guess for turn in zip_longest(*right.values()) for guess in turn if guess is not None)
    return [*surest, *islice(in_turns, SAMPLES - len(surest))]


def see_samples(
    classifier: ImageClassifier, data: Path, samples: Sequence[Mapping[str, Any]], n: int = 8
) -> list[SeenImage]:
    """Return attention pictures of some `samples` of metrics.json, half of them mistakes if there are enough."""
    store = ImageStore(data / IMAGES).part(VALID)
    at = {store.place(row): row for row in store.rows.tolist()}
    wrong, right = (
        [sample for sample in samples if (sample["label"] == sample["prediction"]) is truth] for truth in (False, True)
    )
    few = wrong[: max(n // 2, n - len(right))]
    return [
        see_image(classifier, store.pixels[at[sample["place"]]], label=sample["label"], place=sample["place"])
        for sample in [*few, *right[: n - len(few)]]
    ]
