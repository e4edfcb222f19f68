"""Scores of forecasts over every window of a part, with baselines: naive, seasonal naive, and a linear model.

A model's forecast can be a mean of its own and those of the baselines, with `convex_weights`.

MSE and MAE are means over all windows, all steps of the horizon and all channels, in units of the training part's
deviation: so they can be compared with what is published. By column they stand in the units of the file.

A `Forecast` takes contexts (B, L, C), with NaN where nothing was observed, and gives forecasts (B, H, C).

Shapes: B windows, L steps of context, H of horizon, C channels, X = L + 1: the context and a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import gcd
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from ...errors import DataError
from ...families.weights import WeightsError, finite_tensors
from ...files import replacing
from ..bundle import BundleError
from ..scoring import Score
from .data import SeriesWindows, filled, windows_within

Forecast = Callable[[NDArray[Any]], NDArray[Any]]
Weights = Mapping[str, float]  # by forecaster, together 1
Array = NDArray[np.float64]

LAST, SEASONAL, LINEAR = "tomorrow = today", "seasonal naive", "linear model"
PENALTIES = (1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 0.3, 1.0, 3.0, 10.0)  # as shares of the context's mean square
FIT_TOKENS = 1 << 15  # patches at once: a bound on memory
MODEL = "model"  # what the predictor answers
NETWORK = "network"  # a member of its forecast beside the baselines
ALONE = {NETWORK: 1.0}
SPOKEN = {SEASONAL: "the seasonal naive forecast", LINEAR: "the linear model", NETWORK: "the network alone"}
SCORE_TOKENS = 1 << 15  # patches at once
SAMPLE_TOKENS = 1 << 18  # patches of the windows that stand for all of validation during training
SMALLEST = 0.1  # share in a weighted mean
CLEAR = 1.96  # standard errors of a significant difference
FEWEST = 8  # stretches of windows that a significance test needs


def last_value(horizon: int) -> Forecast:
    """Return the naive forecast: every step repeats the last value."""
    return lambda context: np.repeat(filled(context)[:, -1:], horizon, axis=1)


def last_season(horizon: int, season: int) -> Forecast:
    """Return the seasonal naive forecast: every step repeats the value one season before."""
    steps = np.arange(horizon) % season - season
    return lambda context: filled(context)[:, steps]


@dataclass(frozen=True, eq=False)
class Linear:
    """A linear map from the context to the horizon, both as differences from the last value, shared by all channels."""

    weight: Array  # (X, H); the last row is the constant's

    def __call__(self, context: NDArray[Any]) -> Array:
        inputs, last = _inputs(context)
        forecast = (inputs @ self.weight).reshape(*last.shape, -1)  # (B, C, H)
        return (forecast + last[..., None]).transpose(0, 2, 1)

    @classmethod
    def fit(cls, train: SeriesWindows, valid: SeriesWindows, penalties: Sequence[float] = PENALTIES) -> Linear:
        """Solve in closed form over all training windows, with the ridge penalty that has the best validation error."""
        train_sums, valid_sums = _NormalEquations(train), _NormalEquations(valid)
        size = np.trace(train_sums.inputs[:-1, :-1]) / (len(train_sums.inputs) - 1)
        weights = [train_sums.solve(share * size) for share in penalties]
        return cls(min(weights, key=valid_sums.squared_error))

    def save(self, path: Path) -> None:
        """Write the weights atomically, as safetensors."""
        with replacing(path) as partial:
            save_file({"weight": self.weight}, partial)
            partial.chmod(0o644)  # the library makes it the owner's alone

    @classmethod
    def load(cls, path: Path, context_length: int, horizon: int) -> Linear:
        """Read what `save` wrote; BundleError if it is damaged or of another size."""
        try:
            weight = finite_tensors(path)["weight"].numpy()
        except (KeyError, WeightsError) as error:
            raise BundleError(f"{path} cannot be read: {error}") from None
        if weight.shape != (context_length + 1, horizon):
            raise BundleError(f"{path} is of another model: its shape is {weight.shape}")
        return cls(weight.astype(np.float64))


class _NormalEquations:
    """The sums over all windows that least squares needs: memory does not grow with their number.

    Windows with a gap in their horizon are left out.
    """

    def __init__(self, windows: SeriesWindows) -> None:
        size, horizon = windows.model.context_length + 1, windows.model.horizon
        self.inputs, self.products, self.targets = np.zeros((size, size)), np.zeros((size, horizon)), 0.0
        for batch in windows.in_order(windows_within(FIT_TOKENS, windows)):
            cut = windows.cut(batch)
            inputs, last = _inputs(cut.context)
            target = cut.target.transpose(0, 2, 1) - last[..., None]  # (B, C, H)
            whole = cut.counts.all(axis=1).reshape(-1)
            inputs, target = inputs[whole], target.reshape(len(whole), -1)[whole]
            self.inputs += inputs.T @ inputs
            self.products += inputs.T @ target
            self.targets += float((target**2).sum())

    def solve(self, penalty: float) -> Array:
        """Return the weights; the constant is not penalized, and stays defined if there is no window at all."""
        ridge = np.full(len(self.inputs), max(penalty, 1e-9))
        ridge[-1] = 1e-9
        return np.asarray(np.linalg.solve(self.inputs + np.diag(ridge), self.products), np.float64)

    def squared_error(self, weight: Array) -> float:
        """Return the sum of squared errors over these windows, from their sums alone."""
        return float(self.targets - 2 * (weight * self.products).sum() + (weight * (self.inputs @ weight)).sum())


def _inputs(context: NDArray[Any]) -> tuple[Array, Array]:
    """Return differences from the last value with a constant appended, (B·C, X), and the last values, (B, C)."""
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
        return {"mse": self.mse, "mae": self.mae, "in units of the file": self.by_column}


def errors_of(
    forecasts: Mapping[str, Forecast], windows: SeriesWindows, weights: Weights | None = None, *, every: int = 1
) -> dict[str, Errors]:
    """Return each forecaster's errors over one window in `every`, and with weights those of their mean, as MODEL.

    DataError if no window has a value to score.
    """
    store, size = windows.store, windows.model
    counts: list[NDArray[np.int64]] = []  # of each window, by column
    names = [*([] if weights is None else [MODEL]), *forecasts]
    squares: dict[str, list[Array]] = {name: [] for name in names}  # of each window
    absolute = dict.fromkeys(names, 0.0)
    unscaled = {name: np.zeros((2, len(store.columns))) for name in names}  # squares and absolutes, by column
    for batch in windows.in_order(windows_within(SCORE_TOKENS, windows), every):
        cut = windows.cut(batch)
        counts.append(cut.counts.sum(axis=1))
        forecast = {name: forecaster(cut.context) for name, forecaster in forecasts.items()}
        if weights is not None:
            forecast[MODEL] = weighted_mean(forecast, weights)
        for name, values in forecast.items():
            error = np.where(cut.counts, values - cut.target.astype(np.float64), 0.0)
            squares[name].append((error**2).sum(axis=(1, 2)))
            absolute[name] += float(np.abs(error).sum())
            error = np.where(cut.counts, store.scale.undo(values) - store.scale.undo(cut.target), 0.0)
            unscaled[name] += [(error**2).sum(axis=(0, 1)), np.abs(error).sum(axis=(0, 1))]
    by_window = np.concatenate(counts) if counts else np.zeros((0, len(store.columns)), np.int64)
    n, by_column = int(by_window.sum()), by_window.sum(axis=0)
    if not n:
        raise DataError(
            f"none of the {len(windows):,} windows can be scored: none has both a whole patch of {size.patch_length} "
            f"observed steps among its {size.context_length} of context and a value to forecast; give data with fewer "
            "gaps"
        )
    errors = {}
    for name, parts in squares.items():
        each = np.concatenate(parts)
        columns = {
            column: {"mse": square / m if m else None, "mae": distance / m if m else None}
            for column, square, distance, m in zip(
                store.columns, *unscaled[name].tolist(), by_column.tolist(), strict=True
            )
        }
        errors[name] = Errors(each, by_window.sum(axis=1), float(each.sum() / n), absolute[name] / n, columns)
    return errors


def weighted_mean(forecasts: Mapping[str, NDArray[Any]], weights: Weights) -> Array:
    """Return the mean of the forecasts that have a weight."""
    return np.sum([weight * forecasts[name] for name, weight in weights.items()], axis=0, dtype=np.float64)


def convex_weights(forecasts: Mapping[str, Forecast], windows: SeriesWindows, every: int = 1) -> dict[str, float]:
    """Return weights above 0, together 1, whose mean has the least squared error over one window in `every`.

    A forecaster that fails to give numbers is left out, and so is one with a share below SMALLEST: it may be due to
    chance. The forecaster with the least error stays, so that the mean is never worse there.
    """
    products = np.zeros((len(forecasts), len(forecasts)))
    for batch in windows.in_order(windows_within(SCORE_TOKENS, windows), every):
        cut = windows.cut(batch)
        errors = [np.where(cut.counts, each(cut.context) - cut.target, 0.0).reshape(-1) for each in forecasts.values()]
        products += np.stack(errors) @ np.stack(errors).T
    best = np.nanargmin(products.diagonal())
    significant = [
        index for index, share in enumerate(_least_on_simplex(products)) if share >= SMALLEST or index == best
    ]
    weights = zip(significant, _least_on_simplex(products[np.ix_(significant, significant)]), strict=True)
    return {list(forecasts)[index]: weight for index, weight in weights if weight}


def _least_on_simplex(products: Array) -> list[float]:
    """Return the w ≥ 0 with sum 1 for which w · products · w is least: the best of the minima on every face."""
    finite = np.flatnonzero(np.isfinite(products.diagonal()))
    best, least = np.zeros(len(products)), np.inf
    for size in range(1, len(finite) + 1):
        for face in combinations(finite.tolist(), size):
            inside = products[np.ix_(face, face)]
            solved = np.ones(1) if size == 1 else np.linalg.lstsq(inside, np.ones(size), rcond=None)[0]
            if solved.min() < 0 or not solved.sum() > 0:
                continue
            solved = solved / solved.sum()
            if (value := solved @ inside @ solved) < least:
                best, least = np.zeros(len(products)), value
                best[list(face)] = solved
    return [round(float(weight), 6) for weight in best]


def sample_interval(windows: SeriesWindows, season: int | None) -> int:
    """Return of how many windows one is enough to choose by; over time, these show every phase of the season."""
    every = max(1, len(windows) // windows_within(SAMPLE_TOKENS, windows))
    while gcd(every, season or 1) > 1:
        every += 1
    return every


def rivals(
    context_length: int, horizon: int, season: int | None, linear: Linear | None
) -> tuple[dict[str, Forecast], dict[str, str]]:
    """Return the forecasters to beat, and why the others are missing."""
    forecasters: dict[str, Forecast] = {LAST: last_value(horizon)}
    missing: dict[str, str] = {}
    if season is None:
        missing[SEASONAL] = "the dates do not determine a season; set one: --set data.season=7"
    elif season > context_length:
        missing[SEASONAL] = f"a season of {season} steps is longer than the context of {context_length}"
    else:
        forecasters[SEASONAL] = last_season(horizon, season)
    if linear is None:
        missing[LINEAR] = "the bundle has none; training fits one"
    else:
        forecasters[LINEAR] = linear
    return forecasters, missing


def evaluate_windows(
    network: Forecast, windows: SeriesWindows, season: int | None, linear: Linear | None, weights: Weights = ALONE
) -> dict[str, Any]:
    """Return what metrics.json holds for one part of the data: the scores of the weighted mean and of each forecaster.

    A network that forecasts alone is not listed again.
    """
    horizon = windows.model.horizon
    forecasters, missing = rivals(windows.model.context_length, horizon, season, linear)
    errors = errors_of({**forecasters, NETWORK: network}, windows, weights)
    if weights == ALONE:
        del errors[NETWORK]
    model = errors[MODEL]
    n_values = int(model.counts.sum())
    units = "standardized" if windows.store.scale.width else "in units of the file"
    signature = f"{units}, {len(windows):,} windows of {windows.model.context_length} to {horizon} steps, none left out"
    scores = {}
    for name, item_errors in errors.items():
        of = "" if name == MODEL else f" of {name}"
        for metric in ("mse", "mae"):
            value = getattr(item_errors, metric)
            scores[f"{metric}{of}"] = Score(f"{metric.upper()}{of}", value, signature="" if of else signature).to_dict()
    return {
        "n": len(windows),
        "values": n_values,
        "unobserved": len(windows) * horizon * len(windows.store.columns) - n_values,
        "scores": scores,
        "forecasters": {name: item_errors.to_dict() for name, item_errors in errors.items()},
        "season": season,
        "verdict": [compare(model, errors[name], name, horizon) for name in errors if name != MODEL],
        "why_not": missing,
    }


def compare(model: Errors, rival: Errors, name: str, horizon: int) -> str:
    """Return a sentence that says whether the model beat a baseline; a difference within chance does not count."""
    name, figures = SPOKEN.get(name, name), f"MSE {model.mse:.4g} against {rival.mse:.4g}"
    if model.mse >= rival.mse:
        return f"It did not beat {name}: {figures}."
    less = f"{100 * (1 - model.mse / rival.mse):.1f} % less"
    if not clearly_less(model, rival, horizon):
        return f"It did not clearly beat {name}: {figures}, {less}, which may be due to chance."
    return f"It beat {name}: {figures}, {less}."


def clearly_less(model: Errors, rival: Errors, horizon: int) -> bool:
    """Return True if the mean difference is significant.

    Errors of overlapping windows are correlated, so differences are summed over stretches of a whole horizon first.
    """
    difference = rival.squares - model.squares
    if len(difference) < FEWEST * horizon:
        return False
    edges = np.arange(0, len(difference) - horizon + 1, horizon)
    stretches = np.add.reduceat(difference, edges)
    error = stretches.std(ddof=1) / np.sqrt(len(stretches))
    return bool(stretches.mean() > CLEAR * error)
