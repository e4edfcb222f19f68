"""What every encoder-decoder over two vocabularies shares: the fields, and who shares which matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..config import FamilyConfig
from ..core import TokenEmbedding, VocabularyHead


@dataclass(frozen=True, kw_only=True)
class TranslatorConfig(FamilyConfig):
    """`target_vocab_size` is the source's unless given.

    `tied` says what shares one matrix: "all" source, target and output; "output" target and output;
    "none" nothing.
    """

    vocab_size: int = 37000
    target_vocab_size: int | None = None
    d_model: int = 512
    tied: Literal["all", "output", "none"] = "all"
    dropout: float = 0.1

    def check(self) -> None:
        self.require_positive("vocab_size", "target_vocab_size", "d_model")
        self.require_share("dropout")
        self.require(
            self.tied != "all" or self.target_vocab_size in (None, self.vocab_size),
            f'tied="all" needs one vocabulary, but vocab_size={self.vocab_size} and '
            f'target_vocab_size={self.target_vocab_size}; use tied="output"',
        )


def embeddings(config: TranslatorConfig) -> tuple[TokenEmbedding, TokenEmbedding, VocabularyHead]:
    """Source, target and output, sharing one matrix as far as the config says."""
    target_size = config.vocab_size if config.target_vocab_size is None else config.target_vocab_size
    source = TokenEmbedding(config.vocab_size, config.d_model)
    target = source if config.tied == "all" else TokenEmbedding(target_size, config.d_model)
    table = None if config.tied == "none" else target
    return source, target, VocabularyHead(config.d_model, target_size, table=table)
