"""A text as a vector: near in meaning, near in direction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch.nn import functional as F

from ...config import Config
from ..predictor import OutputKind
from ..reader import Reader, Text


@dataclass(frozen=True, kw_only=True)
class EmbedderSettings(Config):
    """`normalised` vectors have length one, so that their product is the cosine of the angle between them."""

    title: ClassVar[str] = "embedding"

    normalised: bool = True


class Embedder(Reader):
    """What `heedful.load` gives for an embedder's bundle; its model's head says how tokens become one vector."""

    task: ClassVar[str] = "embedding"
    output_kind: ClassVar[OutputKind] = "vector"
    accepts_pairs: ClassVar[bool] = True
    kind: ClassVar[type[Config]] = EmbedderSettings

    def predict(self, texts: Sequence[Text]) -> list[list[float]]:
        """A vector for each text."""
        return [
            (F.normalize(output, dim=-1) if self.settings.normalised else output).tolist()
            for output in self.outputs(texts)
        ]
