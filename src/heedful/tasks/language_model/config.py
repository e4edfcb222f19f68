"""Everything a language model's run is made of, as one file can say it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_type_hints

import torch

from ...config import Config, FamilyConfig
from ...core import DecoderOnly
from ...data.tokenizer import FIRST_PIECE
from ...families import FAMILIES, build, config_of
from ...generation import GenerationConfig
from ...training.config import TrainingConfig
from ..run import RunConfig
from .predictor import LENGTH

PRESET = "gpt2-tiny"


@dataclass(frozen=True, kw_only=True)
class TextTokenizerConfig(Config):
    """`kind`: "characters" makes each a token; "bpe" learns `vocab_size` pieces, from what occurs `min_frequency`
    times, and spells the rest in bytes."""

    title: ClassVar[str] = "tokenizer"

    kind: Literal["bpe", "characters"] = "bpe"
    vocab_size: int = 8000
    min_frequency: int = 2

    def check(self) -> None:
        self.require_positive("min_frequency")
        self.require(
            self.vocab_size > FIRST_PIECE,
            f"vocab_size must be at least {FIRST_PIECE + 1}, which is 3 special ids, 256 bytes and the space, "
            f"not {self.vocab_size}",
        )


@dataclass(frozen=True, kw_only=True)
class RunningTextConfig(Config):
    """Without validation files, the last `holdout` of the text is set apart, counted in characters."""

    title: ClassVar[str] = "data"

    holdout: float = 0.1

    def check(self) -> None:
        self.require(0 < self.holdout < 1, f"holdout is a share between 0 and 1, not {self.holdout}")


@dataclass(frozen=True, kw_only=True)
class LanguageModelConfig(RunConfig):
    """With which text, tokens, model, training and sampling.

    `context`: how many tokens a window has; None for as many as the model reads (its max_length).
    `stride`: when training is over, a window is scored every so many tokens, so that each token is predicted from at
    least context − stride before it; None for half the context. A validation on the way has windows side by side.
    """

    preset: ClassVar[str] = PRESET

    data: RunningTextConfig = field(default_factory=RunningTextConfig)
    tokenizer: TextTokenizerConfig = field(default_factory=TextTokenizerConfig)
    context: int | None = None
    stride: int | None = None
    model: FamilyConfig = field(default_factory=lambda: config_of(PRESET))
    training: TrainingConfig = field(
        default_factory=lambda: TrainingConfig(
            steps=5000,
            label_smoothing=0.0,
            schedule="cosine",
            warmup_steps=100,
            final_share=0.1,
            weight_decay=0.1,
            betas=(0.9, 0.99),
            epsilon=1e-8,
            validate_every=500,
        )
    )
    generation: GenerationConfig = field(
        default_factory=lambda: GenerationConfig(sample=True, temperature=0.8, max_new_tokens=2 * LENGTH)
    )

    def check(self) -> None:
        self.require_positive("context", "stride")
        self.require(
            _continues(self.model),
            f"a model of the family {self.model.title!r} does not continue text; one that does is gpt2 or llama",
        )
        room: int | None = getattr(self.model, "max_length", None)
        self.require(
            self.context is not None or room is not None,
            f"a model of the family {self.model.title!r} has no max_length; give the context",
        )
        self.require(
            self.context is None or room is None or self.context <= room,
            f"context={self.context} is more than the model reads; give model.max_length={self.context} too",
        )
        self.require(
            self.stride is None or self.stride <= self.window,
            f"stride={self.stride} would leave tokens out; it goes from 1 to the context, {self.window}",
        )

    @property
    def window(self) -> int:
        """T, the tokens of a window."""
        if self.context is not None:
            return self.context
        length: int = self.model.max_length  # type: ignore[attr-defined]  # checked above
        return length

    @property
    def batch(self) -> int:
        """B, the windows of a batch."""
        return max(1, self.training.batch_tokens // self.window)


def _continues(model: FamilyConfig) -> bool:
    """Whether it is a decoder alone, as its family's builder says. One that makes several kinds makes it without
    memory, for which torch imports its compiler: that takes seconds."""
    made = get_type_hints(FAMILIES[model.family].build).get("return")
    if isinstance(made, type):
        return issubclass(made, DecoderOnly)
    with torch.device("meta"):
        return isinstance(build(model), DecoderOnly)
