"""The settings of a forecasting run: data, model, loss and training."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from ...config import Config, FamilyConfig
from ...families import PatchTSTConfig, config_of
from ...training.config import TrainingConfig
from ..run import RunConfig


@dataclass(frozen=True, kw_only=True)
class SeriesConfig(Config):
    """Which series are used, and how they are divided and scaled."""

    title: ClassVar[str] = "data"

    series: tuple[str, ...] | None = None  # Names of the series to use; None means all
    split: tuple[float, ...] = (0.7, 0.1, 0.2)  # Training, validation and test part: shares of each series, or steps
    transform: Literal["none", "log"] = "none"  # "log" is for values that grow by percentages, such as prices
    season: int | None = None  # Period in steps, for the seasonal naive forecast; None derives it from the dates

    def check(self) -> None:
        self.require_positive("season")
        shares = sum(self.split) <= 1 + 1e-9
        counts = all(part >= 1 and part == int(part) for part in self.split)
        self.require(
            len(self.split) == 3 and all(part > 0 for part in self.split) and (shares or counts),
            "split is three shares, together at most 1, or three whole numbers of steps: for training, validation "
            f"and test; not {list(self.split)}",
        )

    @property
    def by_counts(self) -> bool:
        return self.split[0] >= 1


@dataclass(frozen=True, kw_only=True)
class ForecastingConfig(RunConfig):
    """The settings of a run. `training.batch_tokens` counts patches."""

    preset: ClassVar[str] = "patchtst-tiny"

    data: SeriesConfig = field(default_factory=SeriesConfig)
    model: FamilyConfig = field(default_factory=lambda: config_of(ForecastingConfig.preset))
    loss: Literal["mse", "mae", "huber"] = "mse"  # Huber is squared up to an error of 1, then absolute
    training: TrainingConfig = field(
        default_factory=lambda: TrainingConfig(
            steps=4000,
            batch_tokens=2048,
            patience=10,
            validate_every=200,
            save_every=200,
            schedule="cosine",
            warmup_steps=200,
            label_smoothing=0.0,
        )
    )

    def check(self) -> None:
        self.require(
            isinstance(self.model, PatchTSTConfig),
            f"a model of the family {self.model.title!r} does not forecast; one of 'patchtst' does",
        )
        season, context = self.data.season, self.patchtst.context_length
        self.require(
            season is None or season <= context,
            f"data.season={season} is longer than model.context_length={context}, so that no window shows it",
        )

    @property
    def patchtst(self) -> PatchTSTConfig:
        """The model's config, by its own kind."""
        assert isinstance(self.model, PatchTSTConfig)
        return self.model
