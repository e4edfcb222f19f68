"""Gaps in a text, filled by a model that was trained to guess masked words."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from torch import Tensor

from ...config import Config
from ...data.published_tokenizer import PublishedTokenizer
from ...errors import DataError
from ...families import Imported
from ..predictor import OutputKind
from ..text_encoder import InspectedText, Row, Text, TextEncoderPredictor

MASKS = ("[MASK]", "<mask>")  # the tokens for a gap, where a tokenizer does not say which it has
SIGNS = (*MASKS, "<extra_id_0>")  # of gaps, in one model or another
GUESSES, GUESSES_OF_SEVERAL = 10, 5  # that are shown for a gap alone, and for each of several


def mask_of(tokenizer: PublishedTokenizer) -> str | None:
    """The name of the token that stands for a gap, if there is one."""
    return tokenizer.role("mask_token") or next((name for name in MASKS if tokenizer.id_of(name) is not None), None)


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

    task: ClassVar[str] = "masked-lm"
    head: ClassVar[str] = "words"
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

    def run_inspected(self, item: Any) -> InspectedText:
        """What may stand in the gaps. A text without one is read all the same: what looks at what can be seen."""
        mask = self.settings.mask
        if not isinstance(item, str) or mask not in item:
            for sign in SIGNS:
                if isinstance(item, str) and sign in item:
                    raise DataError(f"{sign} is another model's sign for a gap; write {mask} where a word is missing")
            row = super().prepared(item)
            self.read_rows([row])
            return InspectedText(row)
        several = item.count(mask) > 1
        (gaps,) = self.guesses([item], GUESSES_OF_SEVERAL if several else GUESSES)
        probabilities = {
            f"{place}: {guess.text.strip()}" if several else guess.text.strip(): guess.probability
            for place, gap in enumerate(gaps, 1)
            for guess in reversed(gap)  # of two that look alike, the likelier stays
        }
        return InspectedText(self.prepared(item), self.filled(item, gaps), probabilities)

    @classmethod
    def checkpoint_settings(
        cls, checkpoint: Imported, folder: Path, tokenizer: PublishedTokenizer
    ) -> MaskedLanguageModelSettings:
        """The token that stands for a gap."""
        name = mask_of(tokenizer)
        if name is None:
            raise DataError(f"{folder}: no token of the tokeniser stands for a gap ({', '.join(MASKS)})")
        return MaskedLanguageModelSettings(mask=name)

    def hf_roles(self) -> dict[str, str]:
        """The mask."""
        return {"mask_token": self.settings.mask}
