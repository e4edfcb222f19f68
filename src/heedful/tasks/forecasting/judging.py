"""How good forecasts are, over every window of a part, the model's beside those it must beat.

MSE and MAE are means over all windows, all steps of the horizon and all channels, in units of the training part's
deviation: so they can be compared with what is published. By column they stand in the units of the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ...errors import DataError
from .baselines import LAST, LINEAR, SEASONAL, Forecast, Linear, last_season, last_value
from .windows import Cut, WindowBatch, Windows, as_windows, windows_within

MODEL = "model"
SPOKEN = {SEASONAL: "the seasonal naive forecast", LINEAR: "the linear model"}
JUDGE_TOKENS = 1 << 15  # patches at once
CLEAR = 1.96  # standard errors that a difference must have to be more than chance
FEWEST = 8  # stretches of windows by which chance can be told


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


class _Sums:
    def __init__(self, windows: Windows) -> None:
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


def _none_can_be_judged(windows: Windows) -> DataError:
    size = windows.model
    return DataError(
        f"none of the {len(windows):,} windows can be judged: none has both a whole patch of {size.patch_length} "
        f"observed steps among its {size.context_length} of context and a value to forecast; give data with fewer gaps"
    )


def errors_of(forecasts: Mapping[str, Forecast], windows: Windows) -> dict[str, Errors]:
    """Each forecaster's errors over all windows; none is left out."""
    sums = {name: _Sums(windows) for name in forecasts}
    for batch in windows.in_order(windows_within(JUDGE_TOKENS, windows)):
        cut = windows.cut(batch)
        for name, forecast in forecasts.items():
            sums[name].add(forecast(cut.context), cut)
    return {name: found.errors() for name, found in sums.items()}


def forecast_of(module: nn.Module, windows: Windows) -> Forecast:
    """What a module says of contexts."""
    device = next(module.parameters()).device

    @torch.inference_mode()
    def forecast(context: NDArray[Any]) -> NDArray[Any]:
        empty = np.zeros((len(context), 1, context.shape[2]), np.float32)
        batch = WindowBatch.of(Cut(context, empty, empty > 0), windows.together, whole=windows.store.whole).to(device)
        rows = module(batch.context, batch.keep)
        return as_windows(rows.float().cpu(), context.shape[2]).numpy()

    return forecast


def rivals(windows: Windows, season: int | None, linear: Linear | None) -> dict[str, Forecast]:
    """The forecasters to beat: those that can be had."""
    horizon = windows.model.horizon
    found: dict[str, Forecast] = {LAST: last_value(horizon)}
    if season is not None and season <= windows.model.context_length:
        found[SEASONAL] = last_season(horizon, season)
    if linear is not None:
        found[LINEAR] = linear
    return found


def judged(module: nn.Module, windows: Windows, season: int | None, linear: Linear | None) -> dict[str, Any]:
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

    Windows that overlap err together, so their differences are added up over stretches of a whole horizon first.
    """
    difference = rival.squares - model.squares
    if len(difference) < FEWEST * horizon:
        return False
    edges = np.arange(0, len(difference) - horizon + 1, horizon)
    stretches = np.add.reduceat(difference, edges)
    error = stretches.std(ddof=1) / np.sqrt(len(stretches))
    return bool(stretches.mean() > CLEAR * error)


def _absent(windows: Windows, season: int | None, linear: Linear | None) -> dict[str, str]:
    """Why a rival is not there."""
    found = {}
    if season is None:
        found[SEASONAL] = "the dates tell no season; give one: --set data.season=7"
    elif season > windows.model.context_length:
        found[SEASONAL] = f"a season of {season} steps is longer than the context of {windows.model.context_length}"
    if linear is None:
        found[LINEAR] = "the bundle holds none; training makes one"
    return found
