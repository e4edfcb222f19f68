"""How good forecasts are, over every window of a part, the model's beside those it must beat to be worth anything:
today again, last season again, and a line.

MSE and MAE are means over all windows, all steps of the horizon and all channels, in units of the training part's
deviation: so they can be compared with what is published. By column they stand in the units of the file.

A `Forecast` takes contexts (B, L, C), with NaN where nothing was observed, and gives forecasts (B, H, C).

Shapes: B windows, L steps of context, H of horizon, C channels, X = L + 1: the context and a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file
from torch import nn

from ...errors import DataError
from ...files import replacing
from ..bundle import BundleError
from .data import Cut, SeriesWindows, WindowBatch, as_windows, filled, windows_within

Forecast = Callable[[NDArray[Any]], NDArray[Any]]
Array = NDArray[np.float64]

LAST, SEASONAL, LINEAR = "tomorrow = today", "seasonal naive", "linear model"
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)  # as shares of the context's mean square
FIT_TOKENS = 1 << 15  # patches at once: a bound on memory
MODEL = "model"
SPOKEN = {SEASONAL: "the seasonal naive forecast", LINEAR: "the linear model"}
SCORE_TOKENS = 1 << 15  # patches at once
CLEAR = 1.96  # standard errors that a difference must have to be more than chance
FEWEST = 8  # stretches of windows by which chance can be told


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
    def fit(cls, train: SeriesWindows, valid: SeriesWindows, penalties: Sequence[float] = PENALTIES) -> Linear:
        """In closed form over all training windows; the ridge penalty is the one that validates best."""
        known, judged = _NormalEquations.over(train), _NormalEquations.over(valid)
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
class _NormalEquations:
    """The normal equations: all that least squares need to know of any number of windows."""

    inputs: Array  # (X, X)
    products: Array  # (X, H)
    targets: float

    @classmethod
    def over(cls, windows: SeriesWindows) -> _NormalEquations:
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


@dataclass(frozen=True, eq=False)
class Errors:
    """The errors of one forecaster. `squares` and `counts` are sums over each window."""

    squares: NDArray[np.float64]
    counts: NDArray[np.int64]
    mse: float
    mae: float
    by_column: dict[str, dict[str, float | None]]

    def to_dict(self) -> dict[str, Any]:
        """For metrics.json."""
        return {"mse": self.mse, "mae": self.mae, "in units of the file": self.by_column}


class _ErrorSums:
    def __init__(self, windows: SeriesWindows) -> None:
        self.windows = windows
        self.squares: list[NDArray[np.float64]] = []
        self.counts: list[NDArray[np.int64]] = []
        self.absolute = 0.0
        self.real = np.zeros((3, len(windows.store.columns)))  # squares, absolutes, counts

    def add(self, forecast: NDArray[Any], cut: Cut) -> None:
        error = np.where(cut.counts, forecast - cut.target.astype(np.float64), 0.0)
        self.squares.append((error**2).sum(axis=(1, 2)))
        self.counts.append(cut.counts.sum(axis=(1, 2)))
        self.absolute += float(np.abs(error).sum())
        undo = self.windows.store.scale.undo
        real = np.where(cut.counts, undo(forecast) - undo(cut.target), 0.0)
        self.real += [(real**2).sum(axis=(0, 1)), np.abs(real).sum(axis=(0, 1)), cut.counts.sum(axis=(0, 1))]

    def errors(self) -> Errors:
        squares, counts = np.concatenate(self.squares), np.concatenate(self.counts)
        n = counts.sum()
        if not n:
            raise _none_can_be_judged(self.windows)
        by_column = {
            name: {"mse": s / m if m else None, "mae": a / m if m else None}
            for name, (s, a, m) in zip(self.windows.store.columns, self.real.T.tolist(), strict=True)
        }
        return Errors(squares, counts, float(squares.sum() / n), self.absolute / int(n), by_column)


def _none_can_be_judged(windows: SeriesWindows) -> DataError:
    size = windows.model
    return DataError(
        f"none of the {len(windows):,} windows can be judged: none has both a whole patch of {size.patch_length} "
        f"observed steps among its {size.context_length} of context and a value to forecast; give data with fewer gaps"
    )


def errors_of(forecasts: Mapping[str, Forecast], windows: SeriesWindows) -> dict[str, Errors]:
    """Each forecaster's errors over all windows; none is left out."""
    sums = {name: _ErrorSums(windows) for name in forecasts}
    for batch in windows.in_order(windows_within(SCORE_TOKENS, windows)):
        cut = windows.cut(batch)
        for name, forecast in forecasts.items():
            sums[name].add(forecast(cut.context), cut)
    return {name: found.errors() for name, found in sums.items()}


def forecast_of(module: nn.Module, windows: SeriesWindows) -> Forecast:
    """What a module says of contexts."""
    device = next(module.parameters()).device

    @torch.inference_mode()
    def forecast(context: NDArray[Any]) -> NDArray[Any]:
        empty = np.zeros((len(context), 1, context.shape[2]), np.float32)
        batch = WindowBatch.of(Cut(context, empty, empty > 0), windows.together, whole=windows.store.whole).to(device)
        rows = module(batch.context, batch.keep)
        return as_windows(rows.float().cpu(), context.shape[2]).numpy()

    return forecast


def rivals(windows: SeriesWindows, season: int | None, linear: Linear | None) -> dict[str, Forecast]:
    """The forecasters to beat: those that can be had."""
    horizon = windows.model.horizon
    found: dict[str, Forecast] = {LAST: last_value(horizon)}
    if season is not None and season <= windows.model.context_length:
        found[SEASONAL] = last_season(horizon, season)
    if linear is not None:
        found[LINEAR] = linear
    return found


def evaluate_windows(
    module: nn.Module, windows: SeriesWindows, season: int | None, linear: Linear | None
) -> dict[str, Any]:
    """What metrics.json says of one part."""
    found = errors_of({MODEL: forecast_of(module, windows), **rivals(windows, season, linear)}, windows)
    model, counts = found[MODEL], found[MODEL].counts
    size = windows.model
    units = "standardised" if windows.store.scale.width else "in units of the file"
    signature = f"{units}, {len(windows):,} windows of {size.context_length} to {size.horizon} steps, none left out"
    scores = {
        f"{metric}{'' if name == MODEL else f' of {name}'}": {
            "metric": metric.upper() if name == MODEL else f"{metric.upper()} of {name}",
            "value": getattr(errors, metric),
            "interval": None,
            "signature": signature if name == MODEL else "",
        }
        for name, errors in found.items()
        for metric in ("mse", "mae")
    }
    return {
        "n": len(windows),
        "values": int(counts.sum()),
        "unobserved": int(len(windows) * size.horizon * len(windows.store.columns) - counts.sum()),
        "scores": scores,
        "forecasters": {name: errors.to_dict() for name, errors in found.items()},
        "season": season,
        "verdict": [verdict(model, errors, name, size.horizon) for name, errors in found.items() if name != MODEL],
        "why_not": _absent(windows, season, linear),
    }


def verdict(model: Errors, rival: Errors, name: str, horizon: int) -> str:
    """Whether the model beat another, in one sentence; a difference within chance is no victory."""
    name, figures = SPOKEN.get(name, name), f"MSE {model.mse:.4g} against {rival.mse:.4g}"
    if model.mse >= rival.mse:
        return f"It did not beat {name}: {figures}."
    less = f"{100 * (1 - model.mse / rival.mse):.1f} % less"
    if not clearly_less(model, rival, horizon):
        return f"It did not clearly beat {name}: {figures}, {less}, which chance alone may give."
    return f"It beat {name}: {figures}, {less}."


def clearly_less(model: Errors, rival: Errors, horizon: int) -> bool:
    """Whether the mean difference is far from 0, beside its standard error.

    SeriesWindows that overlap err together, so their differences are added up over stretches of a whole horizon first.
    """
    difference = rival.squares - model.squares
    if len(difference) < FEWEST * horizon:
        return False
    edges = np.arange(0, len(difference) - horizon + 1, horizon)
    stretches = np.add.reduceat(difference, edges)
    error = stretches.std(ddof=1) / np.sqrt(len(stretches))
    return bool(stretches.mean() > CLEAR * error)


def _absent(windows: SeriesWindows, season: int | None, linear: Linear | None) -> dict[str, str]:
    """Why a rival is not there."""
    found = {}
    if season is None:
        found[SEASONAL] = "the dates tell no season; give one: --set data.season=7"
    elif season > windows.model.context_length:
        found[SEASONAL] = f"a season of {season} steps is longer than the context of {windows.model.context_length}"
    if linear is None:
        found[LINEAR] = "the bundle holds none; training makes one"
    return found
