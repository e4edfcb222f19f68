"""Forecasting as the training loop sees it: windows, loss, validation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from ...families import PatchTSTConfig
from ...training.job import Goal
from ...training.loss import Loss
from .baselines import Linear
from .config import ForecastingConfig
from .forecaster import ForecastSettings, SeriesForecaster
from .judging import MODEL, errors_of, forecast_of, judged
from .looking import looks
from .prepare import Prepared
from .windows import WindowBatch, WindowBatches

MOST_PLACES = 20


class ForecastingJob:
    """Errors over every value of the horizon; judged by the MSE over all validation windows."""

    def __init__(self, config: ForecastingConfig, data: Prepared, model: PatchTSTConfig, module: nn.Module) -> None:
        self.config, self.data, self.model, self.module = config, data, model, module
        self.goal = Goal("mse", higher_is_better=False)
        self.batches = WindowBatches(data.windows["train"], config.training.batch_tokens, config.training.seed)

    @property
    def about(self) -> str:
        """What it learns from, in a few words."""
        store = self.data.store
        return (
            f"{len(self.data.windows['train']):,} windows of {len(store.columns)} channels, {len(store.series)} series"
        )

    def loss(self, module: nn.Module, batch: WindowBatch) -> Loss:
        """Sums over a batch's values; `plain` is of squares, whatever is minimised."""
        forecast = module(batch.context, batch.keep)
        error = (forecast - batch.target).where(batch.counts, 0.0)
        squares = error.square().sum()
        return Loss(self._minimised(error, squares), squares.detach(), batch.counts.sum())

    def _minimised(self, error: Tensor, squares: Tensor) -> Tensor:
        if self.config.loss == "mse":
            return squares
        if self.config.loss == "mae":
            return error.abs().sum()
        return F.huber_loss(error, error.new_zeros(()).expand_as(error), reduction="sum")

    def validate(self, module: nn.Module) -> dict[str, float]:
        """Over all validation windows."""
        windows = self.data.windows["valid"]
        found = errors_of({MODEL: forecast_of(module, windows)}, windows)[MODEL]
        return {"loss": found.mse, "mse": found.mse, "mae": found.mae}

    def predictor(self, module: nn.Module) -> SeriesForecaster:
        """With the scale of the training part, so that it speaks in the units of the file."""
        store = self.data.store
        settings = ForecastSettings(columns=store.columns, scale=store.scale, season=self.data.season)
        return SeriesForecaster(self.model, module, settings)

    def judge(self, predictor: SeriesForecaster) -> dict[str, Any]:
        """Validation and test, all windows of each; the linear model to beat goes into the bundle."""
        windows, season = self.data.windows, self.data.season
        predictor.linear = Linear.fit(windows["train"], windows["valid"])
        judgements = {
            part: judged(predictor.module, windows[part], season, predictor.linear) for part in ("valid", "test")
        }
        return {
            "validation": judgements["valid"],
            "sets": {"test": judgements["test"]},
            "forecasts": looks(predictor, windows["test"]),
        }

    def describe(self, batch: WindowBatch) -> Sequence[str]:
        """Where the windows of a batch begin."""
        windows = self.data.windows["train"]
        return [self.data.store.place(int(row)) for row in windows.begins(batch.windows)[:MOST_PLACES]]

    def identity(self) -> dict[str, str]:
        """Fingerprints of the data, and in words what is made of it."""
        return {
            "series": self.data.store.fingerprint[:16],
            "model": json.dumps(self.model.to_dict(), sort_keys=True),
            "loss": self.config.loss,
            "split": json.dumps(self.config.data.split),
        }
