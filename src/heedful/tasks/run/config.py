"""The settings and the files of a run."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Self

from ...config import Config, FamilyConfig
from ...errors import ConfigError, unknown
from ...families import config_of
from ...training.config import TrainingConfig

LIMITS = ("steps", "epochs")  # of `training`


@dataclass(frozen=True, kw_only=True)
class RunConfig(Config):
    """The settings of every run; a task adds its own."""

    title: ClassVar[str] = "run"
    preset: ClassVar[str]  # the model that is trained by default
    supports_r_drop: ClassVar[bool] = False  # the task's loss supports `training.r_drop`
    # The settings that were passed to `from_dict`; `adapted` may change all others to suit the data. None if the config
    # was built directly, in which case nothing adapts.
    explicit: ClassVar[Mapping[str, Any] | None] = None
    chosen: ClassVar[Mapping[str, Any]] = {}  # the settings that `adapted` changed, by dotted name

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
        """Read the settings of a file; a model without family or preset changes the base, or the default preset.

        Settings that the file leaves out have the defaults of the task.
        """
        settings = dict(values)
        model, base = settings.get("model", {}), settings.get("base")
        if base is not None:
            if isinstance(model, str) or (isinstance(model, Mapping) and "preset" in model):
                raise ConfigError(f"{cls.title}: the base {base} is a model already; leave out the preset")
            if isinstance(model, Mapping) and "family" not in model:  # a run.yaml is complete already
                settings |= cls.settings_on_base(str(base), settings)
        model = settings.get("model")
        if isinstance(model, Mapping) and not model.keys() & {"preset", "family"}:
            model = {"preset": cls.preset, **model}
        if isinstance(model, Mapping | str):
            settings["model"] = config_of(model)
        training = settings.get("training", {})
        if isinstance(training, Mapping):
            if not training.keys().isdisjoint(LIMITS):  # an explicit limit replaces the default limits
                training = {**dict.fromkeys(LIMITS), **training}
            settings["training"] = cls.default_training(settings).changed(**training)
        for part in fields(cls):
            default = part.default_factory() if callable(part.default_factory) else None
            if part.name != "model" and isinstance(default, Config) and isinstance(settings.get(part.name), Mapping):
                settings[part.name] = default.changed(**settings[part.name])
        config = super().from_dict(settings)
        explicit = {name: value.to_dict() if isinstance(value, Config) else value for name, value in values.items()}
        object.__setattr__(config, "explicit", explicit)  # not a field, so it does not affect equality
        return config

    def adapted(self, defaults: Mapping[str, Mapping[str, Any]]) -> Self:
        """Return the config with these defaults in place of every setting that was not set explicitly.

        With explicit `steps` or `epochs`, the default limits and patience do not apply. A model from a base, or with
        an explicit family, does not change.

        Args:
            defaults: Settings of the sections "training" and "model", as `Task.defaults` returns them.
        """
        if self.explicit is None:
            return self
        values = dict(self.explicit)
        training, model = values.get("training", {}), values.get("model", {})
        if isinstance(training, Mapping):
            suitable = dict(defaults.get("training", {}))
            if not training.keys().isdisjoint(LIMITS):
                suitable = {name: value for name, value in suitable.items() if name not in (*LIMITS, "patience")}
            values["training"] = {**suitable, **training}
        model = {"preset": model} if isinstance(model, str) else model
        if isinstance(model, Mapping) and "family" not in model and values.get("base") is None:
            values["model"] = {**defaults.get("model", {}), **model}
        config = self.from_dict(values)
        object.__setattr__(config, "explicit", self.explicit)
        before = {section: getattr(self, section).to_dict() for section in ("training", "model")}
        chosen = {
            f"{section}.{name}": value
            for section, values in before.items()
            for name, value in getattr(config, section).to_dict().items()
            if values.get(name) != value
        }
        object.__setattr__(config, "chosen", chosen)
        return config

    @classmethod
    def settings_on_base(cls, base: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the settings that a new run takes from a base, with the changes in `values`."""
        return {}

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
    def from_dict(cls, values: Any) -> Self:
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


def settings_json(config: Config, **changes: Any) -> str:
    """Return settings as one line of JSON with sorted keys, to compare them."""
    return json.dumps({**config.to_dict(), **changes}, sort_keys=True)
