"""Images as the training loop sees them: batches, loss, validation.

Shapes: B batch, H height, W width, C channels; N images, K classes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...config import FamilyConfig
from ...data.image_sets import LabeledImage
from ...data.image_sets.store import TRAIN, VALID
from ...training.job import Goal
from ...training.loss import Loss, cross_entropy
from ..class_scores import accuracy, confusion_matrix, macro_f1
from .augmenting import augmented
from .batches import ImageBatch, ImageLoader
from .classifier import ImageClassifier
from .config import ImagesConfig
from .evaluation import evaluate
from .preparing import ImageSettings
from .reading import Prepared


class ImagesJob:
    """Cross-entropy over the classes with label smoothing; judged by the share of images taken for what they are."""

    def __init__(self, config: ImagesConfig, prepared: Prepared, model: FamilyConfig, module: nn.Module) -> None:
        self.config, self.prepared, self.model, self.module = config, prepared, model, module
        self.metric = "accuracy"
        self.goal = Goal(self.metric, higher_is_better=True)
        store = prepared.store
        patches: Any = module.embedding
        rows = config.training.batch_tokens // patches.n_patches
        self.batches = ImageLoader(store, store.rows(TRAIN), rows, seed=config.training.seed)
        self.validation = ImageLoader(store, store.rows(VALID), rows)
        self.normalise = Normalise(prepared.settings)

    def predictor(self, module: nn.Module) -> ImageClassifier:
        """A module together with the names of its classes."""
        return ImageClassifier(self.model, module, self.prepared.settings)

    def loss(self, module: nn.Module, batch: ImageBatch) -> Loss:
        """Sums over a batch's images, changed a little while the module trains."""
        images = self.normalise(batch.pixels)
        if module.training:
            images = augmented(images, self.config.augment)
        return cross_entropy(module(images), batch.labels, batch.keep, smoothing=self.config.training.label_smoothing)

    def validate(self, module: nn.Module) -> dict[str, float]:
        """Loss without smoothing, accuracy and macro F1 over all images that were set apart."""
        device = next(module.parameters()).device
        plain = count = torch.zeros((), device=device)
        taken: list[Tensor] = []
        with torch.inference_mode():
            for batch in self.validation.in_order():
                batch = batch.to(device)
                logits = module(self.normalise(batch.pixels))
                sums = cross_entropy(logits, batch.labels, batch.keep)
                plain, count = plain + sums.plain, count + sums.n
                taken.append(logits[: len(batch.rows)].argmax(dim=-1))
        labels = self.prepared.store.labels[self.validation.members]
        predicted = torch.cat(taken).cpu().numpy()
        confusion = confusion_matrix(labels.tolist(), predicted, len(self.prepared.settings.labels))
        return {"loss": float(plain / count), "accuracy": accuracy(confusion), "macro_f1": macro_f1(confusion)}

    def judge(self, predictor: ImageClassifier) -> dict[str, Any]:
        """As a user would ask it, over all images that were set apart."""
        store, labels = self.prepared.store, predictor.settings.labels
        rows = self.validation.members.tolist()
        images = (LabeledImage(store.pixels[row], labels[store.labels[row]], store.place(row)) for row in rows)
        return evaluate(predictor, images).to_dict()

    def describe(self, batch: ImageBatch) -> Sequence[str]:
        """Where the images of a batch come from."""
        return [self.prepared.store.place(row) for row in batch.rows]

    def identity(self) -> dict[str, str]:
        """Fingerprints of the data, and the model's config in words."""
        return {
            **self.prepared.identity(),
            "augmentation": json.dumps(self.config.augment.to_dict(), sort_keys=True),
            "model": json.dumps(self.model.to_dict(), sort_keys=True),
        }


class Normalise:
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
