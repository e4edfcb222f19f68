"""Encoder and decoder over a tokeniser of any make: a text is answered with another."""

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self

from torch import nn

from ...config import Config, FamilyConfig
from ...data.published_tokenizer import PublishedTokenizer, truncate
from ...errors import DataError
from ...families import GenerationDefaults, Imported
from ...generation import GenerationConfig
from ..bundle import Bundle, hf_tokenizer, sized_tokenizer, split_defaults
from ..predictor import within
from ..text_generator import SOURCE, TARGET, TextGenerator


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
        super().__init__(config, module, settings)
        self.tokenizer = tokenizer
        self.target_tokenizer = target_tokenizer or tokenizer

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

    def forced(self) -> list[int]:
        """The language that a model with several writes, or the start of a text."""
        first = self.settings.tokens.forced_first
        return [] if first is None else [first]

    @classmethod
    def from_bundle(cls, folder: Path, bundle: Bundle) -> Self:
        """The one in a folder."""
        settings = bundle.settings_as(TextToTextSettings, folder)
        target = None if settings.joint else PublishedTokenizer.load(folder / TARGET)
        source = PublishedTokenizer.load(folder / SOURCE)
        return cls(bundle.model, bundle.module(folder), source, settings, target)

    @classmethod
    def from_checkpoint(cls, checkpoint: Imported, folder: Path) -> Self:
        """A published model; its target has a tokenizer of its own where the folder holds one."""
        module, path = checkpoint.module, folder / TARGET
        source, target = (len(table.weight) for table in (module.source_embedding, module.target_embedding))
        if not path.is_file() and source != target:
            raise DataError(
                f"{folder}: the model reads {source:,} tokens and writes {target:,}, so that it needs a tokeniser for "
                f"each side; there is no {TARGET}"
            )
        other = sized_tokenizer(path, target) if path.is_file() else None
        return cls.with_tokenizers(checkpoint, hf_tokenizer(folder, source), other)

    @classmethod
    def with_tokenizers(
        cls, checkpoint: Imported, source: PublishedTokenizer, target: PublishedTokenizer | None
    ) -> Self:
        """A published model and its tokenizers; no `target` where both sides share one."""
        tokens, generation = split_defaults(checkpoint.generation)
        settings = TextToTextSettings(joint=target is None, tokens=tokens, generation=generation)
        return cls(checkpoint.config, checkpoint.module, source, settings, target)
