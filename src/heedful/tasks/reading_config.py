"""What the settings of a run have in common whose model reads: texts, pieces, and where the weights begin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from ..config import Config, FamilyConfig
from ..data.text_tokenizers import PiecesConfig
from ..errors import ConfigError
from ..families import config_of
from ..families.reader import ReaderConfig
from ..training.config import TrainingConfig
from .run import RunConfig
from .starting import Base

PRESET = "bert-mini"


@dataclass(frozen=True, kw_only=True)
class TextConfig(Config):
    """`max_tokens` of a text are read, with what stands around it: as many as the model can unless given.

    Without validation files, `holdout` texts (at most a tenth) are set apart.
    """

    title: ClassVar[str] = "data"

    max_tokens: int | None = None
    holdout: int = 1000

    def check(self) -> None:
        self.require_positive("holdout")
        self.require(
            self.max_tokens is None or self.max_tokens >= 4, f"max_tokens must be 4 or more, not {self.max_tokens}"
        )


@dataclass(frozen=True, kw_only=True)
class ReadingConfig(RunConfig):
    """`base` is a model to begin with, a bundle or a published one: then its config and its tokeniser are the run's."""

    preset: ClassVar[str] = PRESET
    head: ClassVar[str]
    from_scratch: ClassVar[TrainingConfig]  # the usual settings
    fine_tuning: ClassVar[TrainingConfig]  # and those with a base

    base: str | None = None
    data: TextConfig = field(default_factory=TextConfig)
    tokenizer: PiecesConfig = field(default_factory=PiecesConfig)
    model: FamilyConfig = field(default_factory=lambda: config_of(PRESET))

    def check(self) -> None:
        self.require(
            isinstance(self.model, ReaderConfig),
            f"a model of the family {self.model.title!r} does not read as BERT and its kin do",
        )
        room = getattr(self.model, "max_length", None)
        self.require(
            room is None or self.data.max_tokens is None or self.data.max_tokens <= room,
            f"data.max_tokens={self.data.max_tokens} is more than the model's max_length={room}",
        )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """As a file says it. With a base, the model is the base's, with the changes that are given."""
        given = dict(values)
        model = given.get("model", {})
        if given.get("base") is not None:
            if isinstance(model, str) or (isinstance(model, Mapping) and "preset" in model):
                raise ConfigError(f"{cls.title}: the base {given['base']} is a model already; leave out the preset")
            if isinstance(model, Mapping) and "family" not in model:
                given["model"] = Base.read(str(given["base"])).config.changed(**{**model, "head": cls.head})
        return super().from_dict(given)

    @classmethod
    def usual_training(cls, given: Mapping[str, Any]) -> TrainingConfig:
        """Gentler where there is a base."""
        return cls.from_scratch if given.get("base") is None else cls.fine_tuning

    @property
    def limit(self) -> int:
        """How many tokens of a text are read."""
        longest: int = self.model.max_length  # type: ignore[attr-defined]  # checked: a reader has one
        return longest if self.data.max_tokens is None else self.data.max_tokens
