"""Series to train on, in files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.families import PatchTSTConfig
from heedful.tasks.forecasting import ForecastingConfig
from heedful.tasks.forecasting.data import SeriesData, prepare_series
from heedful.tasks.run import Files

TINY = PatchTSTConfig(d_model=8, n_heads=2, d_ff=16, n_layers=1, context_length=12, patch_length=4, stride=2, horizon=3)


def table(path: Path, values: NDArray[np.float64], names: Sequence[str] = "abcdefg", *, hourly: bool = False) -> str:
    """A csv of (L, C), or without a column of dates."""
    times = np.datetime64("2016-07-01T00", "s") + 3600 * np.arange(len(values))
    lines = [",".join([*(["date"] if hourly else []), *names[: values.shape[1]]])]
    for time, row in zip(times, values, strict=True):
        cells = ["NA" if np.isnan(value) else repr(float(value)) for value in row]
        lines.append(",".join([*([str(time)] if hourly else []), *cells]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def walks(length: int, channels: int = 1, seed: int = 0) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(size=(length, channels)).cumsum(axis=0) + 100


def waves(length: int, season: int = 24, seed: int = 0) -> NDArray[np.float64]:
    """A season with a slow drift and some noise."""
    steps, noise = np.arange(length), np.random.default_rng(seed).normal(size=length)
    return (10 * np.sin(2 * np.pi * steps / season) + 5 * np.sin(steps / 40) + noise)[:, None] + 50


def prepared(folder: Path, values: NDArray[np.float64], model: PatchTSTConfig = TINY, **data: Any) -> SeriesData:
    """As a run reads it."""
    path = table(folder / "series.csv", values)
    return prepare_series(ForecastingConfig.from_dict({"model": model, "data": data}), Files((path,)), folder)[0]
