"""Which of several classes a text belongs to, and how surely."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from ...config import Config
from ...data.fitting import shortened
from ..reader import Reader, Text
from ..texts import within


@dataclass(frozen=True, kw_only=True)
class ClassifierSettings(Config):
    """The names of the classes, in the order of the model's output, and what its numbers mean.

    Of a text "one" class holds, or each on its own may hold ("several"); or the numbers are a "score" as they are.
    Of a text with more than `max_tokens` (None: than the model reads), only the beginning is read if it may be `cut`;
    otherwise it is refused.
    """

    title: ClassVar[str] = "classification"

    labels: tuple[str, ...]
    means: Literal["one", "several", "score"] = "one"
    max_tokens: int | None = None
    cut: bool = False

    def check(self) -> None:
        self.require_positive("max_tokens")
        twice = sorted(label for label, times in Counter(self.labels).items() if times > 1)
        self.require(not twice, f"the labels {', '.join(twice)} stand there twice")


MEANINGS: dict[str, Callable[[Tensor], Tensor]] = {
    "one": lambda logits: logits.softmax(dim=-1),
    "several": torch.sigmoid,
    "score": lambda logits: logits,
}


class Classifier(Reader):
    """What `heedful.load` gives for a classifier's bundle."""

    task: ClassVar[str] = "classification"
    kind: ClassVar[type[Config]] = ClassifierSettings
    _cut = 0  # texts of the latest `predict`

    def predict(self, texts: Sequence[Text]) -> list[dict[str, float]]:
        """For each text the probability (or the score) of every class by its name, the likeliest first."""
        meant, self._cut = MEANINGS[self.settings.means], 0
        outputs = self.outputs(texts)
        if self._cut:
            told = (
                f"{self._cut:,} of {len(texts):,} texts were read only to their token {self.limit:,}: they are longer"
            )
            warnings.warn(told, stacklevel=2)
        return [
            dict(sorted(zip(self.settings.labels, meant(output).tolist(), strict=True), key=lambda pair: -pair[1]))
            for output in outputs
        ]

    @property
    def limit(self) -> int | None:
        """How many tokens of a text are read."""
        limits = (self.settings.max_tokens, self.module.encoder.positions.limit)
        return min((limit for limit in limits if limit is not None), default=None)

    def fitted(self, ids: list[int], *, alone: bool) -> list[int]:
        """Cut where the bundle says so; of two texts, nobody knows which may lose its end."""
        if not self.settings.cut or not alone or self.limit is None or len(ids) <= self.limit:
            return within(ids, self.limit)
        self._cut += 1
        return shortened(self.tokenizer, ids, self.limit)
