"""What a run is told: its settings, and where its data is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Self

from ...config import Config, FamilyConfig
from ...errors import ConfigError, unknown
from ...families import config_of
from ...training.config import TrainingConfig

LIMITS = ("steps", "epochs")


@dataclass(frozen=True, kw_only=True)
class RunConfig(Config):
    """The settings of every run; a task adds its own. `preset` names the model that is meant where none is.

    `supports_r_drop`: the task can ask two passes over a batch to agree (`training.r_drop`).
    """

    title: ClassVar[str] = "run"
    preset: ClassVar[str]
    supports_r_drop: ClassVar[bool] = False

    model: FamilyConfig
    training: TrainingConfig = field(default_factory=TrainingConfig)

    def __post_init__(self) -> None:  # not in `check`, which every task writes anew
        super().__post_init__()
        self.require(
            self.supports_r_drop or not self.training.r_drop,
            f"training.r_drop={self.training.r_drop} is for translation, text to text and classification; "
            "leave it out here, or give 0",
        )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """As a file says it: the model by its family, or by changes to a preset (the usual one unless it is named).

        Of every other part, what a file leaves out is as the task has it.
        """
        given = dict(values)
        model = given.get("model")
        if isinstance(model, Mapping) and not model.keys() & {"preset", "family"}:
            model = {"preset": cls.preset, **model}
        if isinstance(model, Mapping | str):
            given["model"] = config_of(model)
        training = given.get("training", {})
        if isinstance(training, Mapping):
            if not training.keys().isdisjoint(LIMITS):  # a run ends with what was asked for, not with what is usual
                training = {**dict.fromkeys(LIMITS), **training}
            given["training"] = cls.default_training(given).changed(**training)
        for part in fields(cls):
            usual = part.default_factory() if callable(part.default_factory) else None
            if part.name != "model" and isinstance(usual, Config) and isinstance(given.get(part.name), Mapping):
                given[part.name] = usual.changed(**given[part.name])
        return super().from_dict(given)

    @classmethod
    def default_training(cls, given: Mapping[str, Any]) -> TrainingConfig:
        """How such a run is trained, where it is not said."""
        (usual,) = (part.default_factory for part in fields(cls) if part.name == "training")
        found: TrainingConfig = usual()  # type: ignore[operator]  # every task has one
        return found


@dataclass(frozen=True)
class Files:
    """Where the data is. `columns` names columns, where no header does or where there is a choice."""

    train: tuple[str, ...]
    valid: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None

    @classmethod
    def from_dict(cls, values: Any) -> Files:
        """What a file of settings says under "files"."""
        known = [field.name for field in fields(cls)]
        if not isinstance(values, Mapping) or not values.get("train"):
            raise ConfigError(f"files: a mapping with a list of files to train on is needed, not {values!r}")
        for key, names in values.items():
            if key not in known:
                raise ConfigError(f"files: {unknown('key', key, known)}")
            if not isinstance(names, list | tuple | None) or not all(isinstance(name, str) for name in names or ()):
                raise ConfigError(f"files.{key} must be a list of texts, but {names!r} was given")
        return cls(**{key: tuple(names) for key, names in values.items() if names is not None})
