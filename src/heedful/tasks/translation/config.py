"""Everything a translation run is made of, as one file can say it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from ...config import FamilyConfig
from ...data.languages import CODE
from ...data.pairs import CleaningConfig
from ...data.tokenizer import TokenizerConfig
from ...families import config_of
from ...families.translator import TranslatorConfig
from ...generation import GenerationConfig
from ..run import RunConfig

PRESET = "small"


@dataclass(frozen=True, kw_only=True)
class DataConfig(CleaningConfig):
    """Which pairs are used. Without validation files, `holdout` pairs (at most a twentieth) are set apart."""

    max_tokens: int = 256
    holdout: int = 1000

    def check(self) -> None:
        super().check()
        self.require_positive("max_tokens", "holdout")


@dataclass(frozen=True, kw_only=True)
class TranslationConfig(RunConfig):
    """From which language to which, with which data, pieces, model, training and search."""

    preset: ClassVar[str] = PRESET
    agrees: ClassVar[bool] = True

    source: str
    target: str
    data: DataConfig = field(default_factory=DataConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    model: FamilyConfig = field(default_factory=lambda: config_of(PRESET))
    generation: GenerationConfig = field(default_factory=lambda: GenerationConfig(beam=5))

    def check(self) -> None:
        for side in ("source", "target"):
            code = getattr(self, side)
            self.require(
                CODE.fullmatch(code) is not None, f"{side} must be a language code such as ko or pt-BR, not {code!r}"
            )
        self.require(self.source != self.target, f"source and target are both {self.source!r}")
        self.require(
            isinstance(self.model, TranslatorConfig), f"a model of the family {self.model.title!r} does not translate"
        )
        room = getattr(self.model, "max_length", None)
        self.require(
            room is None or self.data.max_tokens <= room,
            f"data.max_tokens={self.data.max_tokens} is more than the model's max_length={room}",
        )

    def model_for(self, source_size: int, target_size: int) -> FamilyConfig:
        """The model's config once the vocabularies are known; two of them cannot share one matrix."""
        if self.tokenizer.joint:
            return self.model.changed(vocab_size=source_size, target_vocab_size=None)
        tied = "none" if getattr(self.model, "tied", "none") == "none" else "output"
        return self.model.changed(vocab_size=source_size, target_vocab_size=target_size, tied=tied)
