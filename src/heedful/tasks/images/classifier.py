"""Which of several classes an image belongs to, and how surely.

Shapes: B batch, C channels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from ...config import Config, FamilyConfig
from ...core import ClassHead, PatchEmbedding
from ...data.images import pixels_of
from ...errors import ConfigError
from ...families import Imported
from ..predictor import InputKind, OutputKind, Predictor
from ..reader import BATCH_TOKENS
from .preparing import ImageSettings, prepare
from .published import published_settings


class ImageClassifier(Predictor):
    """What `heedful.load` gives for an image classifier's bundle."""

    task: ClassVar[str] = "images"
    input_kind: ClassVar[InputKind] = "image"
    output_kind: ClassVar[OutputKind] = "labels"
    batch_method: ClassVar[str] = "look"
    kind: ClassVar[type[Config]] = ImageSettings
    what: ClassVar[str] = "image"

    def __init__(self, config: FamilyConfig, module: nn.Module, settings: ImageSettings) -> None:
        super().__init__(config, module, settings)
        n_classes = _n_classes(config, module)
        if len(settings.labels) != n_classes:
            raise ConfigError(f"the model tells {n_classes} classes apart, but has {len(settings.labels)} labels")
        self.shape: tuple[int, int, int] = self.module.embedding.shape  # (C, height, width)
        n_channels, *size = self.shape
        if len(settings.mean) != n_channels:
            raise ConfigError(f"the model reads {n_channels} channels, but mean has {len(settings.mean)} numbers")
        made = settings.crop or settings.resize
        if made and tuple(made) != tuple(size):
            raise ConfigError(f"the model reads images of {tuple(size)}, but they are prepared as {made}")

    def predict(self, images: Sequence[Any]) -> list[dict[str, float]]:
        """For each image the probability of every class by its name, the likeliest first.

        An image is a path, the bytes of a file, a Pillow image, or an array or nested lists: see `data.images`.
        """
        given, rows = self._listed(images), self.batch_size
        return [
            answer
            for first in range(0, len(given), rows)
            for answer in self.look(
                [self._numbered(image, index) for index, image in enumerate(given[first : first + rows], first)]
            )
        ]

    @property
    def batch_size(self) -> int:
        """How many images are looked at together."""
        return max(1, BATCH_TOKENS // self.module.embedding.n_patches)

    def prepared(self, image: Any) -> Tensor:
        """(C, height, width)."""
        n_channels, height, width = self.shape
        return torch.from_numpy(prepare(pixels_of(image, n_channels), self.settings, height, width))

    @torch.inference_mode()
    def look(self, prepared: Sequence[Tensor]) -> list[dict[str, float]]:
        """What `predict` answers, for one batch of images as `prepared` gives them."""
        if not prepared:
            return []
        scores: Tensor = self.module(torch.stack(list(prepared)).to(self.module.embedding.project.weight))
        return [
            dict(sorted(zip(self.settings.labels, shares, strict=True), key=lambda pair: -pair[1]))
            for shares in scores.float().softmax(dim=-1).tolist()
        ]

    @classmethod
    def of_checkpoint(cls, found: Imported, folder: Path) -> Self:
        """A published model, its images prepared as its authors say."""
        config: Any = found.config
        n_classes = _n_classes(config, found.module)
        labels = _told_apart(found.labels) or tuple(map(str, range(n_classes)))
        return cls(config, found.module, published_settings(folder, config, labels))


def _n_classes(config: FamilyConfig, module: nn.Module) -> int:
    head = next((part for part in module.modules() if isinstance(part, ClassHead)), None)
    if head is None or not isinstance(module.embedding, PatchEmbedding):
        raise ConfigError(
            f"a model of the family {config.family!r} with the head {getattr(config, 'head', None)!r} does not tell "
            "classes of images apart; one with a head of classes does"
        )
    return head.out.out_features


def _told_apart(labels: Sequence[str]) -> tuple[str, ...]:
    """A name that several classes have (a crane is a bird and a machine) with the number of each."""
    times = Counter(labels)
    return tuple(f"{label} ({place})" if times[label] > 1 else label for place, label in enumerate(labels))
