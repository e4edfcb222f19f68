"""Gaps in a text, filled by a model that was trained to guess masked words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from torch import Tensor

from ...config import Config
from ...errors import DataError
from ..predictor import OutputKind
from ..text_encoder import Row, Text, TextEncoderPredictor


class Guess(NamedTuple):
    """A token that may stand in a gap, as text, and how likely it is."""

    text: str
    probability: float


@dataclass(frozen=True, kw_only=True)
class MaskedLanguageModelSettings(Config):
    """`mask` is the token that stands for a gap in a text, by its name."""

    title: ClassVar[str] = "masked words"

    mask: str


class MaskedLanguageModel(TextEncoderPredictor[str]):
    """What `heedful.load` gives for a bundle of masked words. An empty text has no gap, and no other may lack one."""

    task: ClassVar[str] = "masked"
    output_kind: ClassVar[OutputKind] = "gaps"
    settings_class: ClassVar[type[Config]] = MaskedLanguageModelSettings

    def predict(self, texts: Sequence[Text]) -> list[str]:
        """Each text with its gaps filled by what is likeliest in each, whatever the others are."""
        return [self.filled(text, gaps) for text, gaps in zip(texts, self.guesses(texts, 1), strict=True)]

    def guesses(self, texts: Sequence[Text], count: int = 5) -> list[list[list[Guess]]]:
        """For each text and each of its gaps, the `count` likeliest tokens, with the space that separates them."""
        outputs = self.outputs(texts)
        return [self._guessed(self.prepared(text), found, count) for text, found in zip(texts, outputs, strict=True)]

    def filled(self, text: Text, gaps: Sequence[Sequence[Guess]]) -> str:
        """The text with the first guess in each gap; one that goes on with a word stands right behind it."""
        done, *parts = str(text).split(self.settings.mask)
        for (best, *_), part in zip(gaps, parts, strict=True):
            goes_on = done.strip() and not best.text[0].isspace()
            done = (done.rstrip() + best.text if goes_on else done + best.text.strip()) + part
        return done

    def prepared(self, text: Any) -> Row:
        """A text with gaps that can be filled in it."""
        mask = self.settings.mask
        if isinstance(text, tuple):
            raise DataError("gaps are filled in one text, not in two")
        row = super().prepared(text)
        if text.strip() and mask not in text:
            raise DataError(f"it has no gap; write {mask} where a word is missing")
        if text.count(mask) != len(self._gaps(row)):
            raise DataError(f"its tokeniser does not read every {mask} in it as a gap; put spaces around them")
        return row

    def needed(self, row: Row, output: Tensor) -> Tensor:
        """Of the gaps alone: a vocabulary of logits for every token would take gigabytes."""
        return output[self._gaps(row)]

    def _guessed(self, row: Row, logits: Tensor, count: int) -> list[list[Guess]]:
        best = logits.softmax(dim=-1).topk(min(count, logits.shape[-1]))
        gaps = self._gaps(row)
        before = [[index for place, index in enumerate(row.ids[:gap]) if place not in gaps] for gap in gaps]
        return [
            [Guess(self.tokenizer.piece(read, index), share) for share, index in zip(shares, indices, strict=True)]
            for read, shares, indices in zip(before, best.values.tolist(), best.indices.tolist(), strict=True)
        ]

    def _gaps(self, row: Row) -> list[int]:
        mask = self.tokenizer.id_of(self.settings.mask)
        return [place for place, index in enumerate(row.ids) if index == mask]
