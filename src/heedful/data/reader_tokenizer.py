"""A tokeniser for models that read, learned from texts: the house's pieces, with a start and an end around a text.

A gap is written <mask> and takes the space before it along, as the word that it stands for does. A space stands
before the first word of a text, and not after a gap: "a <mask>." ends as "a word." does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from tokenizers import AddedToken, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as FastTokenizer

from ..config import Config
from .published_tokenizer import PublishedTokenizer
from .tokenizer import END, FIRST_PIECE, PAD, START, Tokenizer

PAD_NAME, START_NAME, END_NAME, MASK_NAME = "<pad>", "<s>", "</s>", "<mask>"
ROLES = {"pad_token": PAD_NAME, "cls_token": START_NAME, "sep_token": END_NAME, "mask_token": MASK_NAME}


@dataclass(frozen=True, kw_only=True)
class PiecesConfig(Config):
    """How many pieces are learned, from what occurs `min_frequency` times; the rest is spelt in bytes."""

    title: ClassVar[str] = "tokenizer"

    vocab_size: int = 8000
    min_frequency: int = 2

    def check(self) -> None:
        self.require_positive("min_frequency")
        self.require(
            self.vocab_size > FIRST_PIECE,
            f"vocab_size must be at least {FIRST_PIECE + 1}, which is 3 special ids, 256 bytes and the space, "
            f"not {self.vocab_size}",
        )


def learn_tokenizer(texts: Iterable[str], config: PiecesConfig) -> PublishedTokenizer:
    """In one pass over the texts; the gap's token comes after all pieces."""
    learned = Tokenizer.train(texts, vocab_size=config.vocab_size, min_frequency=config.min_frequency)
    fast = FastTokenizer.from_str(learned.to_json())
    fast.normalizer = normalizers.NFC()
    before = pre_tokenizers.Metaspace(" ", "first", split=False)  # the space before a text's first word
    fast.pre_tokenizer = pre_tokenizers.Sequence([before, fast.pre_tokenizer])
    around = [(START_NAME, START), (END_NAME, END)]
    fast.add_special_tokens(
        [AddedToken(name, normalized=False, special=True) for name, _ in ((PAD_NAME, PAD), *around)]
    )
    fast.add_special_tokens([AddedToken(MASK_NAME, lstrip=True, normalized=False, special=True)])
    fast.post_processor = processors.TemplateProcessing(
        single=f"{START_NAME} $A {END_NAME}",
        pair=f"{START_NAME} $A {END_NAME} $B:1 {END_NAME}:1",
        special_tokens=around,
    )
    return PublishedTokenizer(fast.to_str(pretty=True), ROLES)
