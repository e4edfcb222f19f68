"""The tokenisers of a translator, and the files they are kept in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ...data.pairs import Pair
from ...data.tokenizer import Tokenizer, TokenizerConfig

SOURCE, TARGET = "tokenizer.json", "target_tokenizer.json"  # the second only where the languages share none


@dataclass(frozen=True)
class Tokenizers:
    """One for each language, or the same for both."""

    source: Tokenizer
    target: Tokenizer

    @classmethod
    def learn(cls, config: TokenizerConfig, pairs: Callable[[], Iterator[Pair]]) -> Self:
        """From pairs that can be read again."""

        def learned(texts: Iterable[str]) -> Tokenizer:
            return Tokenizer.train(texts, vocab_size=config.vocab_size, min_frequency=config.min_frequency)

        if config.joint:
            both = learned(text for pair in pairs() for text in (pair.source, pair.target))
            return cls(both, both)
        return cls(learned(pair.source for pair in pairs()), learned(pair.target for pair in pairs()))

    @classmethod
    def load(cls, folder: Path, *, joint: bool) -> Self:
        """What `save` wrote."""
        source = Tokenizer.load(folder / SOURCE)
        return cls(source, source if joint else Tokenizer.load(folder / TARGET))

    def save(self, folder: Path) -> list[str]:
        """Write them, and name the files written."""
        files = {SOURCE: self.source} if self.source is self.target else {SOURCE: self.source, TARGET: self.target}
        for name, tokenizer in files.items():
            tokenizer.save(folder / name)
        return list(files)

    @property
    def sizes(self) -> tuple[int, int]:
        """The vocabularies of source and target."""
        return self.source.vocab_size, self.target.vocab_size
