"""Which of several classes a text belongs to, and how surely."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from ...config import Config
from ..reader import Reader, Text


@dataclass(frozen=True, kw_only=True)
class ClassifierSettings(Config):
    """The names of the classes, in the order of the model's output, and what its numbers mean.

    Of a text "one" class holds, or each on its own may hold ("several"); or the numbers are a "score" as they are.
    """

    title: ClassVar[str] = "classification"

    labels: tuple[str, ...]
    means: Literal["one", "several", "score"] = "one"

    def check(self) -> None:
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

    def predict(self, texts: Sequence[Text]) -> list[dict[str, float]]:
        """For each text the probability (or the score) of every class by its name, the likeliest first."""
        meant = MEANINGS[self.settings.means]
        return [
            dict(sorted(zip(self.settings.labels, meant(output).tolist(), strict=True), key=lambda pair: -pair[1]))
            for output in self.outputs(texts)
        ]
