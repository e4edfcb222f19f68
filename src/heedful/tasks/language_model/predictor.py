"""Causal language models: a decoder-only module and a tokenizer continue a text, or score how probable it is.

To score a text, every token is predicted once, in windows of T tokens (the context) that begin every `stride` tokens:

- stride = T: windows side by side. A token has from 0 to T − 1 tokens of its window before it. This is what windows at
  random places give on average, and so what nanoGPT's validation loss estimates.
- stride < T: windows overlap, and a token counts in the first window that holds it. All but the first T tokens are
  predicted from at least T − stride tokens. This is nearer to what the model can do, and the loss is lower.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import nn

from ...config import Config
from ...data.published_tokenizer import PublishedTokenizer
from ...data.text_batch import Row, every_window
from ...data.text_tokenizers import encode
from ...errors import DataError
from ...families import GenerationDefaults, Imported
from ...generation import GenerationConfig
from ...training.loss import cross_entropy
from ..bundle import hf_tokenizer, split_defaults
from ..predictor import ItemError, OutputKind, listed, plain, within
from ..scoring import Score
from ..text_generator import TextGenerator

DEFAULT_MAX_NEW_TOKENS = 100
CONTEXT_FOR_SPACES = 16  # tokens before an answer that decide its first space, and complete a character
DEFAULT_CONTEXT = 1024  # tokens of a window, for a model without a limit
MAX_LOGITS = 1 << 26  # of one batch of windows, when a text is scored
MAX_WINDOWS = 64  # of one batch


@dataclass(frozen=True)
class TextScore:
    """The negative log-likelihood of a text in `nats`, with the sizes of the text that normalize it."""

    nats: float = 0.0
    tokens: int = 0
    characters: int = 0
    bytes: int = 0

    def __add__(self, other: TextScore) -> TextScore:
        return TextScore(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    @property
    def loss(self) -> float:
        """Nats per token, as in training."""
        return self.nats / max(1, self.tokens)

    @property
    def perplexity(self) -> float:
        return math.exp(min(self.loss, 700.0))

    @property
    def bits_per_character(self) -> float:
        """Comparable between models with different tokenizers."""
        return self.nats / math.log(2) / max(1, self.characters)

    @property
    def bits_per_byte(self) -> float:
        return self.nats / math.log(2) / max(1, self.bytes)

    def scores(self, signature: str = "") -> dict[str, Score]:
        """Return the four scores by their names in metrics.json."""
        metrics = {
            "loss": "loss (nats/token)",
            "perplexity": "perplexity",
            "bits_per_character": "bits per character",
            "bits_per_byte": "bits per byte",
        }
        return {key: Score(metric, getattr(self, key), signature=signature) for key, metric in metrics.items()}


def half_context(context: int) -> int:
    """Return the default stride between overlapping windows."""
    return -(-context // 2)


@torch.inference_mode()
def negative_log_likelihood(module: nn.Module, row: Row, *, context: int, stride: int, vocab_size: int) -> float:
    """Return the negative log-likelihood of all ids of a row but the first, which is only read."""
    device = next(module.parameters()).device
    batch = max(1, min(MAX_WINDOWS, MAX_LOGITS // (context * vocab_size), -(-len(row) // stride)))
    total: Any = torch.zeros((), dtype=torch.float64, device=device)
    for windows in every_window(row, context=context, stride=stride, batch=batch):
        moved = windows.to(device)
        total = total + cross_entropy(module(moved.inputs), moved.targets, moved.keep).plain
    return float(total)


@dataclass(frozen=True, kw_only=True)
class LanguageModelSettings(Config):
    """The settings of a bundle.

    `context` is the window length of the training: a longer answer continues from the last half of what the model
    sees. Where it is None, the model's positions are the limit.
    """

    title: ClassVar[str] = "language model"

    tokens: GenerationDefaults = field(default_factory=GenerationDefaults)
    generation: GenerationConfig = field(
        default_factory=lambda: GenerationConfig(max_new_tokens=DEFAULT_MAX_NEW_TOKENS)
    )
    context: int | None = None

    def check(self) -> None:
        self.require_positive("context")


class CausalLanguageModel(TextGenerator):
    """Continues texts and scores them: what `heedful.load` returns for a language model."""

    task: ClassVar[str] = "language-model"
    settings_class: ClassVar[type[Config]] = LanguageModelSettings
    output_kind: ClassVar[OutputKind] = "continuation"
    comes_to_an_end: ClassVar[bool] = False  # the answer has the length that was requested
    tokenizer: PublishedTokenizer

    def inputs(self, text: str) -> list[list[int]]:
        """Return the ids of the text; an empty text becomes the start token. White space counts as text."""
        ids = encode(self.tokenizer, text)
        if not ids:
            if self.settings.tokens.start is None:
                raise DataError("this model has no start token; give it some text to continue")
            ids = [self.settings.tokens.start]
        return [within(ids, self.limit)]

    @property
    def rolling_context(self) -> int | None:
        """The window length of a model trained here; a published model writes no further than its positions."""
        return self.settings.context

    def text(self, ids: Sequence[int], tokens: Sequence[int]) -> str:
        """Return the text of the new tokens, with the space that separates it from the prompt."""
        return self.tokenizer.continuation(ids[-CONTEXT_FOR_SPACES:], tokens)

    def score(self, texts: Sequence[str], *, stride: int | None = None) -> list[TextScore]:
        """Score whole texts of any length, each as the beginning of a document, without its end.

        Args:
            texts: The texts to score. Where the model has no start token, the first token of a text is only read.
            stride: The distance between the starts of two windows; half the context by default.
        """
        stride = half_context(self.context) if stride is None else stride
        scores, vocab_size = [], self.module.head.weight.shape[0]
        for index, text in enumerate(listed(texts, "text")):
            row = np.array(self._ids_to_score(text, index), dtype=np.int64)
            nats = negative_log_likelihood(self.module, row, context=self.context, stride=stride, vocab_size=vocab_size)
            scores.append(TextScore(nats, max(0, len(row) - 1), len(text), len(text.encode("utf-8"))))
        return scores

    @property
    def limit(self) -> int | None:
        limit: int | None = self.module.decoder.positions.limit
        return limit if self.settings.context is None else self.settings.context

    @property
    def context(self) -> int:
        """The window length for scoring a text."""
        return self.limit or getattr(self.config, "max_length", None) or DEFAULT_CONTEXT

    def _ids_to_score(self, text: object, index: int) -> list[int]:
        try:
            ids = encode(self.tokenizer, plain(text))
        except DataError as error:
            raise ItemError("text", index, str(error)) from None
        start = self.settings.tokens.start
        return ids if start is None or start in self.tokenizer.encode("") else [start, *ids]

    @classmethod
    def from_checkpoint(cls, checkpoint: Imported, folder: Path) -> Self:
        return cls.with_tokenizer(checkpoint, hf_tokenizer(folder, len(checkpoint.module.embedding.weight)))

    @classmethod
    def with_tokenizer(cls, checkpoint: Imported, tokenizer: PublishedTokenizer) -> Self:
        """Return a predictor for a published model and its tokenizer."""
        tokens, generation = split_defaults(checkpoint.generation)
        if generation.max_new_tokens is None:
            generation = generation.changed(max_new_tokens=DEFAULT_MAX_NEW_TOKENS + generation.min_new_tokens)
        settings = LanguageModelSettings(tokens=tokens, generation=generation)
        return cls(checkpoint.config, checkpoint.module, tokenizer, settings)
