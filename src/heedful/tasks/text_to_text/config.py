"""The settings of a text-to-text run, and the base model that it may start from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

from ...config import Config, FamilyConfig
from ...core import EncoderDecoder
from ...data.tokenizer import PiecesConfig
from ...errors import ConfigError, DataError
from ...families import ComposedConfig, T5Config, config_of
from ...families.encoder_decoder import EncoderDecoderTransformerConfig
from ...families.hf_io import read_checkpoint
from ...generation import GenerationConfig
from ...training.config import TrainingConfig
from ..bundle import Bundle, is_bundle
from ..run import RunConfig
from .predictor import TextToTextGenerator

PRESET = "tiny"  # learns a small task in fewer steps than t5-tiny and bart-tiny
DEFAULT_SOURCE_TOKENS, DEFAULT_TARGET_TOKENS = 512, 128  # at most
FROM_SCRATCH = TrainingConfig(epochs=30, warmup_steps=400, validate_every=500)
FINE_TUNING = FROM_SCRATCH.changed(
    epochs=3, learning_rate=1e-4, warmup_steps=50, label_smoothing=0.0, betas=(0.9, 0.999), epsilon=1e-8
)


@dataclass(frozen=True, kw_only=True)
class ExamplesConfig(Config):
    """How long source and target may be, and how many are held out."""

    title: ClassVar[str] = "data"

    max_source_tokens: int | None = None  # The most tokens of a source, end included; None: 512, or model.max_length
    max_target_tokens: int | None = None  # The same of a target; None: 128. Longer pairs are dropped and counted
    cut: bool = False  # Read only the beginning of a long source instead of dropping the pair
    holdout: int = 1000  # Sources for validation, at most a twentieth, if there are no validation files

    def check(self) -> None:
        self.require_positive("holdout")
        for name in ("max_source_tokens", "max_target_tokens"):
            value = getattr(self, name)
            self.require(value is None or value >= 4, f"{name} must be at least 4, not {value}")


@dataclass(frozen=True, kw_only=True)
class TextToTextConfig(RunConfig):
    """The settings of a text-to-text run. From a `base` it takes config, tokenizer, weights and generation settings."""

    preset: ClassVar[str] = PRESET
    supports_r_drop: ClassVar[bool] = True

    prefix: str = ""  # Text before every source, in training and prediction
    base: str | None = None  # Folder of a model to start from, with its tokenizer; None starts from scratch
    data: ExamplesConfig = field(default_factory=ExamplesConfig)
    tokenizer: PiecesConfig = field(default_factory=PiecesConfig)
    model: FamilyConfig = field(default_factory=lambda: config_of(PRESET))
    training: TrainingConfig = field(default_factory=lambda: FROM_SCRATCH)
    generation: GenerationConfig = field(default_factory=lambda: GenerationConfig(beam=4))

    def check(self) -> None:
        self.require(
            isinstance(self.model, T5Config | EncoderDecoderTransformerConfig | ComposedConfig),
            f"a model of the family {self.model.title!r} does not map text to text; t5, bart, marian and original do",
        )
        self.require(
            getattr(self.model, "target_vocab_size", None) in (None, self.model.vocab_size),  # type: ignore[attr-defined]
            "source and target have one vocabulary; leave out model.target_vocab_size",
        )
        room = self._room
        for name in ("max_source_tokens", "max_target_tokens"):
            limit = getattr(self.data, name)
            self.require(
                room is None or limit is None or limit <= room,
                f"data.{name}={limit} is more than the model's max_length={room}",
            )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read the settings of a file; with a base, they change those of the base."""
        return super().from_dict(values if values.get("base") is None else _on_base(values))

    @classmethod
    def default_training(cls, values: Mapping[str, Any]) -> TrainingConfig:
        return FROM_SCRATCH if values.get("base") is None else FINE_TUNING

    @property
    def _room(self) -> int | None:
        return getattr(self.model, "max_length", None)

    @property
    def source_limit(self) -> int:
        """The most tokens that a source may have."""
        return self.data.max_source_tokens or min(DEFAULT_SOURCE_TOKENS, self._room or DEFAULT_SOURCE_TOKENS)

    @property
    def target_limit(self) -> int:
        """The most tokens that a target may have."""
        return self.data.max_target_tokens or min(DEFAULT_TARGET_TOKENS, self._room or DEFAULT_TARGET_TOKENS)

    def model_for(self, vocab_size: int) -> FamilyConfig:
        """Return the model's config for a tokenizer; a base keeps its vocabulary."""
        return self.model if self.base is not None else self.model.changed(vocab_size=vocab_size)


def _on_base(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings of a new run, complete with those of its base; a run.yaml is complete already.

    The lengths of answers are not taken from the base: the new targets have their own.
    """
    model = values.get("model", {})
    if isinstance(model, str) or (isinstance(model, Mapping) and "preset" in model):
        raise ConfigError(f"run: the base {values['base']} is a model already; leave out the preset")
    if not isinstance(model, Mapping) or "family" in model:
        return values
    base = read_base(str(values["base"]))
    generation, changes = base.generation.changed(max_new_tokens=None, min_new_tokens=0), values.get("generation", {})
    generation = generation.changed(**changes) if isinstance(changes, Mapping) else changes
    return {
        "prefix": base.settings.prefix,
        **values,
        "generation": generation,
        "model": base.config.changed(**model),
    }


def read_base(folder: str | Path) -> TextToTextGenerator:
    """Read a bundle of this task, or a published model in Hugging Face's layout, that training can start from."""
    folder = Path(folder)
    if is_bundle(folder):
        bundle = Bundle.read(folder)
        if bundle.task != TextToTextGenerator.task:
            raise ConfigError(f"{folder} is a model for {bundle.task}, and not for {TextToTextGenerator.task}")
        base = TextToTextGenerator.from_bundle(folder, bundle)
    else:
        checkpoint = read_checkpoint(folder)
        if not isinstance(checkpoint.module, EncoderDecoder):
            raise ConfigError(f"{folder} is of the family {checkpoint.config.family}, which has no encoder and decoder")
        base = TextToTextGenerator.from_checkpoint(checkpoint, folder)
    tokens = base.settings.tokens
    if not base.settings.joint:
        raise ConfigError(f"{folder} has a tokenizer for each side; training supports only models with one tokenizer")
    if not tokens.end or tokens.pad is None:
        missing = "end" if not tokens.end else "pad"
        raise ConfigError(f"{folder} does not say which token is the {missing}; its config.json should")
    if base.tokenizer.encode("")[-1:] != [tokens.end[0]]:
        name = base.tokenizer.token_of(tokens.end[0])
        raise DataError(f"{folder}: the tokenizer does not add the model's end token, {name!r}, to a text")
    return base
