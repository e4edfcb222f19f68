"""What a forecaster must beat to be worth anything: today again, last season again, and a line.

All take contexts (B, L, C), with NaN where nothing was observed, and give forecasts (B, H, C).

Shapes: B windows, L steps of context, H of horizon, C channels, X = L + 1: the context and a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from ...files import replacing
from ..bundle import BundleError
from .windows import Cut, Windows, filled, windows_within

Forecast = Callable[[NDArray[Any]], NDArray[Any]]
Array = NDArray[np.float64]

LAST, SEASONAL, LINEAR = "tomorrow = today", "seasonal naive", "linear model"
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # as shares of the context's mean square
FIT_TOKENS = 1 << 15  # patches at once: a bound on memory


def last_value(horizon: int) -> Forecast:
    """Tomorrow is as today, and so is every day after."""
    return lambda context: np.repeat(filled(context)[:, -1:], horizon, axis=1)


def last_season(horizon: int, season: int) -> Forecast:
    """As one season ago; beyond one season, again."""
    steps = np.arange(horizon) % season - season
    return lambda context: filled(context)[:, steps]


@dataclass(frozen=True, eq=False)
class Linear:
    """One linear map from the context to the horizon, both as differences from the last value, for every channel."""

    weight: Array  # (X, H); the last row is the constant's

    def __call__(self, context: NDArray[Any]) -> Array:
        inputs, last = _inputs(context)
        forecast = (inputs @ self.weight).reshape(*last.shape, -1)  # (B, C, H)
        return (forecast + last[..., None]).transpose(0, 2, 1)

    @classmethod
    def fit(cls, train: Windows, valid: Windows, penalties: Sequence[float] = PENALTIES) -> Linear:
        """In closed form over all training windows; the ridge penalty is the one that validates best."""
        known, judged = _Sums.over(train), _Sums.over(valid)
        size = np.trace(known.inputs[:-1, :-1]) / (len(known.inputs) - 1)
        found = [known.solved(share * size) for share in penalties]
        return cls(min(found, key=judged.error))

    def save(self, path: Path) -> None:
        """The file is whole or not there."""
        with replacing(path) as partial:
            save_file({"weight": self.weight}, partial)
            partial.chmod(0o644)  # the library makes it the owner's alone

    @classmethod
    def load(cls, path: Path, context_length: int, horizon: int) -> Linear:
        """What `save` wrote, for windows of this size."""
        try:
            weight = load_file(path)["weight"]
        except (OSError, KeyError, SafetensorError) as error:
            raise BundleError(f"{path} cannot be read: {error}") from None
        if weight.shape != (context_length + 1, horizon):
            raise BundleError(f"{path} is of another model: its shape is {weight.shape}")
        return cls(weight.astype(np.float64))


@dataclass
class _Sums:
    """The normal equations: all that least squares need to know of any number of windows."""

    inputs: Array  # (X, X)
    products: Array  # (X, H)
    targets: float

    @classmethod
    def over(cls, windows: Windows) -> _Sums:
        model = windows.model
        sums = cls(np.zeros((model.context_length + 1,) * 2), np.zeros((model.context_length + 1, model.horizon)), 0.0)
        for batch in windows.in_order(windows_within(FIT_TOKENS, windows)):
            sums.add(windows.cut(batch))
        return sums

    def add(self, cut: Cut) -> None:
        """Rows with a gap in their horizon are left out."""
        inputs, last = _inputs(cut.context)
        target = cut.target.transpose(0, 2, 1) - last[..., None]  # (B, C, H)
        whole = cut.counts.all(axis=1).reshape(-1)
        inputs, target = inputs[whole], target.reshape(len(whole), -1)[whole]
        self.inputs += inputs.T @ inputs
        self.products += inputs.T @ target
        self.targets += float((target**2).sum())

    def solved(self, penalty: float) -> Array:
        """The weights; the constant is not penalised, and stays defined where there is no window at all."""
        ridge = np.full(len(self.inputs), max(penalty, 1e-9))
        ridge[-1] = 1e-9
        return np.asarray(np.linalg.solve(self.inputs + np.diag(ridge), self.products), np.float64)

    def error(self, weight: Array) -> float:
        """The sum of squares over these windows, from their sums alone."""
        return float(self.targets - 2 * (weight * self.products).sum() + (weight * (self.inputs @ weight)).sum())


def _inputs(context: NDArray[Any]) -> tuple[Array, Array]:
    """(B, L, C) → rows of differences from the last value with a constant behind (B·C, X), and that value (B, C)."""
    values = filled(context).transpose(0, 2, 1)  # (B, C, L)
    last = values[..., -1]
    rows = (values - last[..., None]).reshape(-1, values.shape[2])
    return np.concatenate([rows, np.ones((len(rows), 1))], axis=1), last
