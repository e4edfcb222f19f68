"""A decoder alone over a tokeniser of any make: a text is continued."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from torch import nn

from ...config import Config, FamilyConfig
from ...data.published_tokenizer import NAME, PublishedTokenizer
from ...data.text_tokenizers import encode
from ...errors import DataError
from ...families import GenerationDefaults, Imported
from ...generation import GenerationConfig
from ..bundle import Bundle, hf_tokenizer, split_defaults
from ..inspection import Inspection
from ..inspection.generation import inspect_continuation
from ..predictor import ItemError, OutputKind, listed, plain, within
from ..text_generator import TextGenerator
from .scoring import TextScore, nats_of, usual_stride

LENGTH = 100  # tokens of an answer, unless told otherwise
NEAR = 16  # tokens before an answer that decide about its first space, and complete a character
USUAL = 1024  # tokens at once, for a model that says nothing of its own


@dataclass(frozen=True, kw_only=True)
class LanguageModelSettings(Config):
    """What a bundle says beside its model. `context` is how many tokens the windows had that it learned from: beyond
    them it goes on from the last half. Where it is None, the model's positions are the end.
    """

    title: ClassVar[str] = "language model"

    tokens: GenerationDefaults = field(default_factory=GenerationDefaults)
    generation: GenerationConfig = field(default_factory=lambda: GenerationConfig(max_new_tokens=LENGTH))
    context: int | None = None

    def check(self) -> None:
        self.require_positive("context")


class CausalLanguageModel(TextGenerator):
    """What `heedful.load` gives for a language model's bundle; an answer is what follows the text."""

    task: ClassVar[str] = "language-model"
    output_kind: ClassVar[OutputKind] = "continuation"
    comes_to_an_end: ClassVar[bool] = False  # it is asked for so much and no more

    def __init__(
        self, config: FamilyConfig, module: nn.Module, tokenizer: PublishedTokenizer, settings: LanguageModelSettings
    ) -> None:
        super().__init__(config, module, settings)
        self.tokenizer = self.target_tokenizer = tokenizer

    def inputs(self, text: str) -> list[list[int]]:
        """An empty text is the start of any; white space is text."""
        ids = encode(self.tokenizer, text)
        if not ids:
            if self.settings.tokens.start is None:
                raise DataError("this model cannot begin from nothing; give it some text to continue")
            ids = [self.settings.tokens.start]
        return [within(ids, self.limit)]

    @property
    def rolling_context(self) -> int | None:
        """The windows that it was trained on here; a published model writes no further than its positions."""
        return self.settings.context

    def text(self, ids: Sequence[int], tokens: Sequence[int]) -> str:
        """What follows, with the space that separates it."""
        return self.tokenizer.continuation(ids[-NEAR:], tokens)

    def score(self, texts: Sequence[str], *, stride: int | None = None) -> list[TextScore]:
        """How probable each text is, whole, however long: as the beginning of a document, without its end.

        A window is read every `stride` tokens, half the context unless it is given. Where a model has no start, the
        first token is only read.
        """
        stride = usual_stride(self.context) if stride is None else stride
        scores, size = [], self.module.head.weight.shape[0]
        for index, text in enumerate(listed(texts, "text")):
            row = np.array(self._ids(text, index), dtype=np.int64)
            nats = nats_of(self.module, row, context=self.context, stride=stride, vocab_size=size)
            scores.append(TextScore(nats, max(0, len(row) - 1), len(text), len(text.encode("utf-8"))))
        return scores

    @property
    def limit(self) -> int | None:
        """The most tokens it reads at once, where there is an end to that."""
        limit: int | None = self.module.decoder.positions.limit
        return limit if self.settings.context is None else self.settings.context

    @property
    def context(self) -> int:
        """How many tokens of a text are looked at together to score it."""
        known = (self.limit, getattr(self.config, "max_length", None), USUAL)
        return next(length for length in known if length is not None)

    def _ids(self, text: object, index: int) -> list[int]:
        try:
            ids = encode(self.tokenizer, plain(text))
        except DataError as error:
            raise ItemError("text", index, str(error)) from None
        start = self.settings.tokens.start
        return ids if start is None or start in self.tokenizer.encode("") else [start, *ids]  # it may do so itself

    @classmethod
    def from_bundle(cls, folder: Path, bundle: Bundle) -> Self:
        """The one in a folder."""
        settings = bundle.settings_as(LanguageModelSettings, folder)
        return cls(bundle.model, bundle.module(folder), PublishedTokenizer.load(folder / NAME), settings)

    @classmethod
    def from_checkpoint(cls, checkpoint: Imported, folder: Path) -> Self:
        """A published model."""
        return cls.with_tokenizer(checkpoint, hf_tokenizer(folder, len(checkpoint.module.embedding.weight)))

    @classmethod
    def with_tokenizer(cls, checkpoint: Imported, tokenizer: PublishedTokenizer) -> Self:
        """A published model and its tokenizer."""
        tokens, generation = split_defaults(checkpoint.generation)
        if generation.max_new_tokens is None:
            generation = generation.changed(max_new_tokens=LENGTH + generation.min_new_tokens)
        settings = LanguageModelSettings(tokens=tokens, generation=generation)
        return cls(checkpoint.config, checkpoint.module, tokenizer, settings)

    def inspect(self, item: Any, inspection: Inspection, options: Mapping[str, Any]) -> dict[str, Any]:
        """The text, what follows it, and how that was found."""
        return inspect_continuation(self, item, inspection, options)
