"""Encoder and decoder over a tokeniser of any make: a text is answered with another."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

from torch import nn

from ...config import Config, FamilyConfig
from ...data.published_tokenizer import NAME, PublishedTokenizer, truncate
from ...families import GenerationDefaults
from ...generation import GenerationConfig, Hypothesis
from ..bundle import Bundle
from ..predictor import within
from ..text_generator import Answer, GenerationTokens, TextGenerator

SOURCE, TARGET = NAME, "target_tokenizer.json"  # the second only where the sides share none


class CutWarning(UserWarning):
    """A text was longer than the model reads, and its end was not read."""


@dataclass(frozen=True, kw_only=True)
class TextToTextSettings(Config):
    """What a bundle says beside its model. `prefix` stands before every text: what a T5 is to do with it.

    Of a text with more than `max_tokens` (None: than the model reads), only the beginning is read if it may be `cut`;
    otherwise it is refused.
    """

    title: ClassVar[str] = "text-to-text"

    joint: bool = True
    prefix: str = ""
    max_tokens: int | None = None
    cut: bool = False
    tokens: GenerationDefaults = field(default_factory=GenerationDefaults)
    generation: GenerationConfig = field(default_factory=GenerationConfig)

    def check(self) -> None:
        self.require_positive("max_tokens")
        self.require(self.tokens.start is not None, "tokens.start is missing: what is a decoder given first?")


class TextToTextGenerator(TextGenerator):
    """What `heedful.load` gives for a bundle that summarises, translates or rewrites."""

    task: ClassVar[str] = "text-to-text"

    def __init__(
        self,
        config: FamilyConfig,
        module: nn.Module,
        tokenizer: PublishedTokenizer,
        settings: TextToTextSettings,
        target_tokenizer: PublishedTokenizer | None = None,
    ) -> None:
        self.config = config
        self.module: Any = module.eval()
        self.tokenizer = tokenizer
        self.target_tokenizer = target_tokenizer or tokenizer
        self.settings = settings

    @property
    def generation(self) -> GenerationConfig:
        """The bundle's."""
        return self.settings.generation

    @property
    def limit(self) -> int | None:
        """How many tokens of a text are read, with what stands around it."""
        limits = (self.settings.max_tokens, self.module.encoder.positions.limit)
        return min((limit for limit in limits if limit is not None), default=None)

    def inputs(self, text: str) -> list[list[int]]:
        """The whole text, with what its tokeniser puts around it; its beginning where the bundle says so."""
        if not text.strip():
            return []
        ids, limit = self.tokenizer.encode(self.settings.prefix + text), self.limit
        if self.settings.cut and limit is not None and len(ids) > limit:
            warnings.warn(f"a text of more than {limit:,} tokens was read only that far", CutWarning, stacklevel=2)
            ids = truncate(self.tokenizer, ids, limit)
        return [within(ids, limit)]

    def text(self, ids: Sequence[int], tokens: Sequence[int]) -> str:
        """As the target's tokeniser reads them."""
        return self.target_tokenizer.decode(tokens)

    def answer(self, ids: Sequence[int], hypothesis: Hypothesis) -> Answer:
        """With its end, where it came to one."""
        tokens = hypothesis.tokens
        written = (*tokens, self.settings.tokens.end[0]) if hypothesis.finished else tokens
        return Answer.of(hypothesis, self.text(ids, tokens), self.target_tokenizer.readable(written))

    def special_tokens(self) -> GenerationTokens:
        """As the model was published."""
        tokens = self.settings.tokens
        return {"start": tokens.start, "end": tokens.end, "suppress_tokens": tokens.suppress_tokens}

    def forced(self) -> list[int]:
        """The language that a model with several writes, or the start of a text."""
        first = self.settings.tokens.forced_first
        return [] if first is None else [first]

    def save(self, folder: str | Path) -> None:
        """Write the bundle."""
        folder = Path(folder)
        files = {SOURCE: self.tokenizer} | ({} if self.settings.joint else {TARGET: self.target_tokenizer})
        names = [written for name, tokenizer in files.items() for written in tokenizer.save(folder / name)]
        Bundle(self.task, self.config, self.settings.to_dict()).write(folder, self.module, beside=names)

    @classmethod
    def from_bundle(cls, folder: Path, bundle: Bundle) -> Self:
        """The one in a folder."""
        settings = bundle.settings_as(TextToTextSettings, folder)
        target = None if settings.joint else PublishedTokenizer.load(folder / TARGET)
        source = PublishedTokenizer.load(folder / SOURCE)
        return cls(bundle.model, bundle.module(folder), source, settings, target)
