"""Gaps in a text, filled by a model that was trained to guess masked words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from ...config import Config
from ..reader import Reader, Text
from ..texts import plain


class Guess(NamedTuple):
    """A token that may stand in a gap, as text, and how likely it is."""

    text: str
    probability: float


@dataclass(frozen=True, kw_only=True)
class FillerSettings(Config):
    """`mask` is the token that stands for a gap in a text, by its name."""

    title: ClassVar[str] = "masked words"

    mask: str


class Filler(Reader):
    """What `heedful.load` gives for a bundle of masked words."""

    task: ClassVar[str] = "masked"
    kind: ClassVar[type[Config]] = FillerSettings

    def predict(self, texts: Sequence[Text]) -> list[str]:
        """Each text with its gaps filled by what is likeliest in each, whatever the others are."""
        return [
            self._filled(plain(text), [gap[0].text.strip() for gap in gaps])
            for text, gaps in zip(texts, self.guesses(texts, 1), strict=True)
        ]

    def guesses(self, texts: Sequence[Text], count: int = 5) -> list[list[list[Guess]]]:
        """For each text and each of its gaps, the `count` likeliest tokens."""
        mask = self.tokenizer.id_of(self.settings.mask)
        answers = []
        for text, logits in zip(texts, self.outputs(texts), strict=True):
            places = [place for place, index in enumerate(self.prepared(text).ids) if index == mask]
            shares = logits[places].softmax(dim=-1).topk(min(count, logits.shape[-1]))
            answers.append(
                [
                    [Guess(self.tokenizer.decode([index]), share) for share, index in zip(*gap, strict=True)]
                    for gap in zip(shares.values.tolist(), shares.indices.tolist(), strict=True)
                ]
            )
        return answers

    def _filled(self, text: str, words: Sequence[str]) -> str:
        before, *parts = text.split(self.settings.mask)
        if len(parts) != len(words):  # the tokeniser reads the gap differently: leave the text alone
            return text
        return before + "".join(word + part for word, part in zip(words, parts, strict=True))
