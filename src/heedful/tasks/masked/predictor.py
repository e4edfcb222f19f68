"""The predictor of masked language modeling: fills the gaps in a text."""

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
from ..text_encoder import EncodedText, InspectedText, Text, TextEncoderPredictor

MASKS = ("[MASK]", "<mask>")  # the tokens for a gap, where a tokenizer does not say which it has
SIGNS = (*MASKS, "<extra_id_0>")  # of gaps, in one model or another
GUESSES, GUESSES_OF_SEVERAL = 10, 5  # that are shown for a gap alone, and for each of several


def mask_token(tokenizer: PublishedTokenizer) -> str:
    """Return the token that marks a gap; DataError if a tokenizer has none."""
    name = tokenizer.role("mask_token") or next((name for name in MASKS if tokenizer.id_of(name) is not None), None)
    if name is None:
        raise DataError(f"the tokenizer has no mask token ({', '.join(MASKS)}), so words cannot be masked")
    return name


class Guess(NamedTuple):
    """A token that may stand in a gap, as text, and how likely it is."""

    text: str
    probability: float


@dataclass(frozen=True, kw_only=True)
class MaskedLanguageModelSettings(Config):
    """`mask` is the mask token that marks a gap in a text."""

    title: ClassVar[str] = "masked words"

    mask: str


class MaskedLanguageModel(TextEncoderPredictor[str]):
    """Fills the gaps in texts: what `heedful.load` returns for a masked language model.

    `predict` returns each text with the most likely token in each gap, independently of the other gaps.
    """

    task: ClassVar[str] = "masked-lm"
    head: ClassVar[str] = "words"
    output_kind: ClassVar[OutputKind] = "gaps"
    settings_class: ClassVar[type[Config]] = MaskedLanguageModelSettings

    def predict_valid(self, texts: Sequence[Text]) -> list[str]:
        return [self.filled(text, gaps) for text, gaps in zip(texts, self.guesses(texts, 1), strict=True)]

    def guesses(self, texts: Sequence[Text], count: int = 5) -> list[list[list[Guess]]]:
        """Return the `count` most likely tokens for each gap of each text, with the space before them."""
        texts = self._listed(texts)
        outputs = self.outputs(texts)
        return [self._guessed(self.prepared(text), logits, count) for text, logits in zip(texts, outputs, strict=True)]

    def filled(self, text: Text, gaps: Sequence[Sequence[Guess]]) -> str:
        """Return the text with the first guess in each gap; a guess that continues a word follows without a space."""
        done, *parts = str(text).split(self.settings.mask)
        for (best, *_), part in zip(gaps, parts, strict=True):
            goes_on = done.strip() and not best.text[0].isspace()
            done = (done.rstrip() + best.text if goes_on else done + best.text.strip()) + part
        return done

    def prepared(self, text: Any) -> EncodedText:
        """Return the token ids of a text; DataError if it has no gap, or one that the tokenizer does not recognize."""
        mask = self.settings.mask
        if isinstance(text, tuple):
            raise DataError("gaps are filled in one text, not in two")
        row = super().prepared(text)
        if text.strip() and mask not in text:
            raise DataError(f"it has no gap; write {mask} where a word is missing")
        if text.count(mask) != len(self._gaps(row)):
            raise DataError(f"the tokenizer does not read every {mask} in it as a gap; put spaces around them")
        return row

    def select(self, text: EncodedText, output: Tensor) -> Tensor:
        """Return the logits of the gaps alone: those of every token would take gigabytes."""
        return output[self._gaps(text)]

    def _guessed(self, text: EncodedText, logits: Tensor, count: int) -> list[list[Guess]]:
        best = logits.softmax(dim=-1).topk(min(count, logits.shape[-1]))
        gaps = self._gaps(text)
        before = [[index for place, index in enumerate(text.ids[:gap]) if place not in gaps] for gap in gaps]
        return [
            [Guess(self.tokenizer.piece(read, index), share) for share, index in zip(shares, indices, strict=True)]
            for read, shares, indices in zip(before, best.values.tolist(), best.indices.tolist(), strict=True)
        ]

    def _gaps(self, text: EncodedText) -> list[int]:
        mask = self.tokenizer.id_of(self.settings.mask)
        return [place for place, index in enumerate(text.ids) if index == mask]

    def run_inspected(self, item: Any) -> InspectedText:
        """Return the most likely tokens for the gaps; a text without gaps is inspected without an answer."""
        mask = self.settings.mask
        if not isinstance(item, str) or mask not in item:
            for sign in SIGNS:
                if isinstance(item, str) and sign in item:
                    raise DataError(f"{sign} marks a gap for other models; write {mask} where a word is missing")
            encoded = super().prepared(item)
            self.run_encoded([encoded])
            return InspectedText(encoded)
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
        try:
            return MaskedLanguageModelSettings(mask=mask_token(tokenizer))
        except DataError as error:
            raise DataError(f"{folder}: {error}") from None

    def hf_roles(self) -> dict[str, str]:
        return {"mask_token": self.settings.mask}
