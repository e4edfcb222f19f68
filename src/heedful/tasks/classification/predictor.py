"""Which of several classes a text belongs to, how surely, and where the model looks for it."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from ...config import Config
from ...data.published_tokenizer import truncate
from ...errors import DataError
from ...lens.recorder import record
from ...lens.report import AttentionMap
from ..predictor import OutputKind, within
from ..text_encoder import Row, Text, TextEncoderPredictor

SEPARATOR = " | "  # between two texts that are shown as one


@dataclass(frozen=True, kw_only=True)
class ClassifierSettings(Config):
    """The names of the classes, in the order of the model's output, and what its numbers mean.

    Of a text "one" class holds, or each on its own may hold ("several"); or the numbers are a "score" as they are.
    Of a text with more than `max_tokens` (None: than the model reads), only the beginning is read if it may be `cut`;
    otherwise it is refused. Each answer is about so many `texts`: one, or two that belong together; None, which models
    from elsewhere have, takes both.
    """

    title: ClassVar[str] = "classification"

    labels: tuple[str, ...]
    means: Literal["one", "several", "score"] = "one"
    max_tokens: int | None = None
    cut: bool = False
    texts: Literal[1, 2] | None = None

    def check(self) -> None:
        self.require_positive("max_tokens")
        twice = sorted(label for label, times in Counter(self.labels).items() if times > 1)
        self.require(not twice, f"the labels {', '.join(twice)} stand there twice")


MEANINGS: dict[str, Callable[[Tensor], Tensor]] = {
    "one": lambda logits: logits.softmax(dim=-1),
    "several": torch.sigmoid,
    "score": lambda logits: logits,
}


class Classifier(TextEncoderPredictor[dict[str, float]]):
    """What `heedful.load` gives for a classifier's bundle."""

    task: ClassVar[str] = "classification"
    settings_class: ClassVar[type[Config]] = ClassifierSettings
    output_kind: ClassVar[OutputKind] = "labels"
    accepts_pairs: ClassVar[bool] = True

    @property
    def takes_pairs(self) -> bool:
        """Whether every item is two texts that belong together."""
        return bool(self.settings.texts == 2)

    def predict(self, texts: Sequence[Text]) -> list[dict[str, float]]:
        """For each text the probability (or the score) of every class by its name, the likeliest first."""
        meant = MEANINGS[self.settings.means]
        outputs = self.outputs(texts)
        if cut := sum(map(self._is_cut, texts)):
            told = f"{cut:,} of {len(texts):,} texts were read only to their token {self.limit:,}: they are longer"
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

    def prepared(self, text: Any) -> Row:
        """In ids: one text or two, as those it has learned from."""
        two = isinstance(text, tuple) and len(text) == 2
        if self.settings.texts == 2 and not two:
            raise DataError("this model reads two texts that belong together; give a pair: (first, second)")
        if self.settings.texts == 1 and two:
            raise DataError("this model reads one text at a time, and a pair was given; give one text")
        return super().prepared(text)

    def fitted(self, ids: list[int], *, alone: bool) -> list[int]:
        """Cut where the bundle says so; of two texts, nobody knows which may lose its end."""
        if not self.settings.cut or not alone or self.limit is None:
            return within(ids, self.limit)
        return ids if len(ids) <= self.limit else truncate(self.tokenizer, ids, self.limit)

    def _is_cut(self, text: Text) -> bool:
        """Of a text that is read. It is tokenised again rather than remembered: threads may share this model."""
        if not self.settings.cut or not isinstance(text, str) or self.limit is None:
            return False
        return len(self.tokenizer.encode(text)) > self.limit


@torch.inference_mode()
def attention_map(classifier: Classifier, text: Text) -> AttentionMap:
    """From every token to every token, by the heads of the last layer."""
    row = classifier.prepared(text)
    device = next(classifier.module.parameters()).device
    ids = torch.tensor([row.ids], device=device)
    segments = None if row.segments is None else torch.tensor([row.segments], device=device)
    with record(classifier.module) as recording:
        classifier.module(ids, segments=segments)
    layers = recording.encoder
    tokens = [classifier.tokenizer.token_of(index) for index in row.ids]
    return AttentionMap(display_text(text), tokens, tokens, layers[max(layers)][0].tolist())


def display_text(text: Text) -> str:
    """One text, or two as one, for a page."""
    return text if isinstance(text, str) else SEPARATOR.join(text)
