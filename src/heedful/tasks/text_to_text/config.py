"""Everything a text-to-text run is made of, as one file can say it, and the model it may start from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

from ...config import Config, FamilyConfig
from ...core import EncoderDecoder
from ...data.text_tokenizers import PiecesConfig
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
LONGEST_SOURCE, LONGEST_TARGET = 512, 128  # tokens, where nothing else is said
FROM_SCRATCH = TrainingConfig(epochs=30, warmup_steps=400, validate_every=500)
FINE_TUNING = FROM_SCRATCH.changed(
    epochs=3, learning_rate=1e-4, warmup_steps=50, label_smoothing=0.0, betas=(0.9, 0.999), epsilon=1e-8
)


@dataclass(frozen=True, kw_only=True)
class ExamplesConfig(Config):
    """How long source and target may be, in tokens with their end: 512 and 128, or what the model can, unless given.

    A pair that is longer is left out; of a source, only the beginning is read if it may be `cut`. Either is counted.
    Without validation files, `holdout` sources (at most a twentieth) are set apart.
    """

    title: ClassVar[str] = "data"

    max_source_tokens: int | None = None
    max_target_tokens: int | None = None
    cut: bool = False
    holdout: int = 1000

    def check(self) -> None:
        self.require_positive("holdout")
        for name in ("max_source_tokens", "max_target_tokens"):
            value = getattr(self, name)
            self.require(value is None or value >= 4, f"{name} must be at least 4, not {value}")


@dataclass(frozen=True, kw_only=True)
class TextToTextConfig(RunConfig):
    """With which texts, pieces, model, training and search; from scratch, or from a `base`.

    `prefix` stands before every source, in training as in use. `base` is a model to begin with, a bundle or a
    published one: then its config, its tokeniser, its weights and its search are the run's.
    """

    preset: ClassVar[str] = PRESET
    supports_r_drop: ClassVar[bool] = True

    prefix: str = ""
    base: str | None = None
    data: ExamplesConfig = field(default_factory=ExamplesConfig)
    tokenizer: PiecesConfig = field(default_factory=PiecesConfig)
    model: FamilyConfig = field(default_factory=lambda: config_of(PRESET))
    training: TrainingConfig = field(default_factory=lambda: FROM_SCRATCH)
    generation: GenerationConfig = field(default_factory=lambda: GenerationConfig(beam=4))

    def check(self) -> None:
        self.require(
            isinstance(self.model, T5Config | EncoderDecoderTransformerConfig | ComposedConfig),
            f"a model of the family {self.model.title!r} does not answer a text with another; t5, bart, marian and "
            "original do",
        )
        self.require(
            getattr(self.model, "target_vocab_size", None) in (None, self.model.vocab_size),  # type: ignore[attr-defined]
            "source and target have one vocabulary; leave out model.target_vocab_size",
        )
        room = self._room
        for name in ("max_source_tokens", "max_target_tokens"):
            asked = getattr(self.data, name)
            self.require(
                room is None or asked is None or asked <= room,
                f"data.{name}={asked} is more than the model's max_length={room}",
            )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """As a file says it. With a base, model, prefix and search are the base's, with the changes that are given."""
        given = dict(values)
        return super().from_dict(given if given.get("base") is None else _on_base(given))

    @classmethod
    def default_training(cls, given: Mapping[str, Any]) -> TrainingConfig:
        """Gentler where there is a base."""
        return FROM_SCRATCH if given.get("base") is None else FINE_TUNING

    @property
    def _room(self) -> int | None:
        return getattr(self.model, "max_length", None)

    @property
    def source_limit(self) -> int:
        """How many tokens a source may have."""
        return self.data.max_source_tokens or min(LONGEST_SOURCE, self._room or LONGEST_SOURCE)

    @property
    def target_limit(self) -> int:
        """How many tokens a target may have."""
        return self.data.max_target_tokens or min(LONGEST_TARGET, self._room or LONGEST_TARGET)

    def model_for(self, vocab_size: int) -> FamilyConfig:
        """The model's config once the tokeniser is known; a base has its own vocabulary."""
        return self.model if self.base is not None else self.model.changed(vocab_size=vocab_size)


def _on_base(given: dict[str, Any]) -> dict[str, Any]:
    """What a run takes from its base when it begins; a run.yaml has it all, and the base is not needed again.

    How long answers may be is not taken: the new targets have lengths of their own.
    """
    model = given.get("model", {})
    if isinstance(model, str) or (isinstance(model, Mapping) and "preset" in model):
        raise ConfigError(f"run: the base {given['base']} is a model already; leave out the preset")
    if not isinstance(model, Mapping) or "family" in model:
        return given
    base = read_base(str(given["base"]))
    asked, search = given.get("generation", {}), base.generation.changed(max_new_tokens=None, min_new_tokens=0)
    search = search.changed(**asked) if isinstance(asked, Mapping) else asked
    own = {"prefix": base.settings.prefix, "generation": search, "model": base.config.changed(**model)}
    return own | {name: value for name, value in given.items() if name not in ("generation", "model")}


def read_base(folder: str | Path) -> TextToTextGenerator:
    """A bundle of this task, or a published model in Hugging Face's layout, that training can go on from."""
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
        raise ConfigError(f"{folder} reads with one tokeniser and writes with another; training goes on with one only")
    if not tokens.end or tokens.pad is None:
        missing = "end" if not tokens.end else "pad"
        raise ConfigError(f"{folder} does not say which token is the {missing}; its config.json should")
    if base.tokenizer.encode("")[-1:] != [tokens.end[0]]:
        name = base.tokenizer.token_of(tokens.end[0])
        raise DataError(f"{folder}: the tokeniser does not put the model's end, {name!r}, behind a text")
    return base
