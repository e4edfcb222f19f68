"""The settings of a run, and the files of its data."""

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
    """The settings of every run; a task adds its own.

    Attributes:
        preset: The model that is trained by default.
        supports_r_drop: Whether the task's loss supports `training.r_drop`.
    """

    title: ClassVar[str] = "run"
    preset: ClassVar[str]
    supports_r_drop: ClassVar[bool] = False

    model: FamilyConfig
    training: TrainingConfig = field(default_factory=TrainingConfig)

    def __post_init__(self) -> None:  # not in `check`, which every task overrides
        super().__post_init__()
        self.require(
            self.supports_r_drop or not self.training.r_drop,
            f"training.r_drop={self.training.r_drop} is for translation, text to text and classification; "
            "leave it out here, or set it to 0",
        )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read the settings of a file; a model without family or preset changes the default preset.

        Settings that the file leaves out have the defaults of the task.
        """
        settings = dict(values)
        model = settings.get("model")
        if isinstance(model, Mapping) and not model.keys() & {"preset", "family"}:
            model = {"preset": cls.preset, **model}
        if isinstance(model, Mapping | str):
            settings["model"] = config_of(model)
        training = settings.get("training", {})
        if isinstance(training, Mapping):
            if not training.keys().isdisjoint(LIMITS):  # a given limit replaces the default ones
                training = {**dict.fromkeys(LIMITS), **training}
            settings["training"] = cls.default_training(settings).changed(**training)
        for part in fields(cls):
            default = part.default_factory() if callable(part.default_factory) else None
            if part.name != "model" and isinstance(default, Config) and isinstance(settings.get(part.name), Mapping):
                settings[part.name] = default.changed(**settings[part.name])
        return super().from_dict(settings)

    @classmethod
    def default_training(cls, values: Mapping[str, Any]) -> TrainingConfig:
        """Return the default training settings of a run with these settings."""
        (factory,) = (part.default_factory for part in fields(cls) if part.name == "training")
        training: TrainingConfig = factory()  # type: ignore[operator]  # every task has one
        return training


@dataclass(frozen=True)
class Files:
    """The files of the data. `columns` names columns where no header does, or selects some of them."""

    train: tuple[str, ...]
    valid: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None

    @classmethod
    def from_dict(cls, values: Any) -> Files:
        """Read the section "files" of a settings file."""
        keys = [field.name for field in fields(cls)]
        if not isinstance(values, Mapping) or not values.get("train"):
            raise ConfigError(f"files: a mapping with a list of files to train on is needed, not {values!r}")
        for key, names in values.items():
            if key not in keys:
                raise ConfigError(f"files: {unknown('key', key, keys)}")
            if not isinstance(names, list | tuple | None) or not all(isinstance(name, str) for name in names or ()):
                raise ConfigError(f"files.{key} must be a list of texts, but {names!r} was given")
        return cls(**{key: tuple(names) for key, names in values.items() if names is not None})
