"""Text-to-text models: an encoder-decoder answers a text with another."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self

from ...config import Config
from ...data.published_tokenizer import PublishedTokenizer, truncate
from ...errors import DataError
from ...families import GenerationDefaults, Imported
from ...generation import GenerationConfig
from ..bundle import hf_tokenizer, sized_tokenizer, split_defaults
from ..predictor import within
from ..text_generator import TARGET, TextGenerator

# Common names of the column with the source, the likeliest first.
SOURCES = (
    *("source", "input", "text", "document", "article", "dialogue", "question", "prompt", "content", "body"),
    *("본문", "원문", "질문"),
)


class CutWarning(UserWarning):
    """A text was longer than the model reads, so only its beginning was read."""


@dataclass(frozen=True, kw_only=True)
class TextToTextSettings(Config):
    """The settings of a bundle. `prefix` stands before every text and names the task, as T5 needs it.

    A text with more than `max_tokens` (None: than the model reads) is refused; with `cut`, its beginning is read.
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
        self.require(
            self.tokens.start is not None, "tokens.start is missing; it is the first token that a decoder reads"
        )


class TextToTextGenerator(TextGenerator):
    """Summarizes, translates or rewrites texts: what `heedful.load` returns for a text-to-text model."""

    task: ClassVar[str] = "text-to-text"
    settings_class: ClassVar[type[Config]] = TextToTextSettings
    tokenizer: PublishedTokenizer

    @property
    def column_names(self) -> Sequence[tuple[str, ...]]:
        return [(name,) for name in SOURCES]

    @property
    def limit(self) -> int | None:
        """The most tokens that the model reads at once, special ones included; None without a limit."""
        limits = (self.settings.max_tokens, self.module.encoder.positions.limit)
        return min((limit for limit in limits if limit is not None), default=None)

    def inputs(self, text: str) -> list[list[int]]:
        """Return the ids of the prefix and the text, cut where the settings say so."""
        if not text.strip():
            return []
        ids, limit = self.tokenizer.encode(self.settings.prefix + text), self.limit
        if self.settings.cut and limit is not None and len(ids) > limit:
            warnings.warn(f"only the first {limit:,} tokens of a text were read; it has more", CutWarning, stacklevel=2)
            ids = truncate(self.tokenizer, ids, limit)
        return [within(ids, limit)]

    def forced(self) -> list[int]:
        """Return the first token of every answer, such as the language of a multilingual model."""
        first = self.settings.tokens.forced_first
        return [] if first is None else [first]

    @classmethod
    def from_checkpoint(cls, checkpoint: Imported, folder: Path) -> Self:
        """Return the predictor of a published model, with a target tokenizer if the folder holds one."""
        module, path = checkpoint.module, folder / TARGET
        source, target = (len(table.weight) for table in (module.source_embedding, module.target_embedding))
        if not path.is_file() and source != target:
            raise DataError(
                f"{folder}: the model reads {source:,} tokens and writes {target:,}, so it needs a tokenizer for "
                f"each side; there is no {TARGET}"
            )
        other = sized_tokenizer(path, target) if path.is_file() else None
        return cls.with_tokenizers(checkpoint, hf_tokenizer(folder, source), other)

    @classmethod
    def with_tokenizers(
        cls, checkpoint: Imported, source: PublishedTokenizer, target: PublishedTokenizer | None
    ) -> Self:
        """Return a predictor for a published model; `target` is None where both sides share a tokenizer."""
        tokens, generation = split_defaults(checkpoint.generation)
        settings = TextToTextSettings(joint=target is None, tokens=tokens, generation=generation)
        return cls(checkpoint.config, checkpoint.module, source, settings, target)
