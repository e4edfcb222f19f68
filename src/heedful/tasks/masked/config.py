"""Everything a run of masked words is made of, as one file can say it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from ...config import Config, FamilyConfig
from ...training.config import TrainingConfig
from ..reading_config import ReadingConfig, TextConfig

FROM_SCRATCH = TrainingConfig(
    steps=20_000,
    label_smoothing=0.0,
    learning_rate=5e-4,
    schedule="cosine",
    warmup_steps=1000,
    weight_decay=0.01,
    betas=(0.9, 0.98),
    epsilon=1e-6,
)


@dataclass(frozen=True, kw_only=True)
class CorpusConfig(TextConfig):
    """A text is a "line", or a "paragraph": all lines up to an empty one. One that is too long is read in parts."""

    text: Literal["line", "paragraph"] = "line"


@dataclass(frozen=True, kw_only=True)
class MaskingConfig(Config):
    """The share of tokens to be guessed, of every text one at least; how many of them become a gap, and how many
    another token. The others stay as they are."""

    title: ClassVar[str] = "masking"

    share: float = 0.15
    gaps: float = 0.8
    others: float = 0.1

    def check(self) -> None:
        self.require(0 < self.share < 1, f"share must be between 0 and 1, not {self.share}")
        self.require(
            self.gaps >= 0 and self.others >= 0 and self.gaps + self.others <= 1,
            f"gaps={self.gaps} and others={self.others} are shares, of 1 together at most",
        )


@dataclass(frozen=True, kw_only=True)
class MaskedConfig(ReadingConfig):
    """With which texts, pieces, gaps, model and training; from scratch, or going on from a `base`."""

    head: ClassVar[str] = "words"
    from_scratch: ClassVar[TrainingConfig] = FROM_SCRATCH
    fine_tuning: ClassVar[TrainingConfig] = FROM_SCRATCH.changed(learning_rate=1e-4)

    data: CorpusConfig = field(default_factory=CorpusConfig)
    masking: MaskingConfig = field(default_factory=MaskingConfig)
    training: TrainingConfig = field(default_factory=lambda: FROM_SCRATCH)

    def model_for(self, vocab_size: int) -> FamilyConfig:
        """The model's config once the data is known; a base has its own vocabulary."""
        own = {} if self.base is not None else {"vocab_size": vocab_size}
        return self.model.changed(**own, head=self.head)
