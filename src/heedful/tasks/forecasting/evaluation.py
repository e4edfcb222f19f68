"""A forecaster on files it has not seen: its forecasts, and how good they are beside what it must beat."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...data.report import SeriesReport
from ...data.series import Series, SeriesStore, read_series
from ...errors import DataError
from ...families import PatchTSTConfig
from ..predictor import ItemError
from .forecaster import SeriesForecaster
from .judging import judged
from .looking import looks
from .windows import everything


def evaluate(
    predictor: SeriesForecaster,
    paths: Sequence[str | Path],
    *,
    columns: Sequence[str] | None = None,
    reading: SeriesReport | None = None,
) -> dict[str, Any]:
    """Scores over every window of the files, in the form of metrics.json, and "forecasts" of some.

    The linear model is the one that training has made: nothing is learned from these files. `columns` are for a model
    whose own have no names.
    """
    series, model = _read(predictor, paths, columns, reading), _model(predictor)
    with TemporaryDirectory() as folder:
        store = SeriesStore.write(folder, series, predictor.settings.scale)
        windows = everything(store, model.changed(n_channels=len(store.columns)))
        if not len(windows):
            longest = max(series, key=len)
            raise DataError(
                f"{longest.name} has {len(longest):,} steps; to judge a forecast of {model.horizon} from "
                f"{model.context_length}, at least {model.context_length + model.horizon:,} are needed"
            )
        season = predictor.settings.season or store.season
        return {
            **judged(predictor.module, windows, season, predictor.linear),
            "forecasts": looks(predictor, windows),
        }


def forecast_files(
    predictor: SeriesForecaster,
    paths: Sequence[str | Path],
    *,
    columns: Sequence[str] | None = None,
    reading: SeriesReport | None = None,
) -> list[dict[str, Any]]:
    """For each series of the files, the steps that follow it: {"series": …, "forecast": {column: […]}}."""
    series = _read(predictor, paths, columns, reading)
    try:
        forecasts = predictor.predict([one.values for one in series])
    except ItemError as error:
        one = series[error.index]
        raise DataError(f"{one.file}: {one.name}: {error.reason}") from None
    return [
        {
            "series": one.name,
            "forecast": {name: [row[place] for row in rows] for place, name in enumerate(one.columns)},
        }
        for one, rows in zip(series, forecasts, strict=True)
    ]


def _read(
    predictor: SeriesForecaster,
    paths: Sequence[str | Path],
    columns: Sequence[str] | None,
    reading: SeriesReport | None,
) -> list[Series]:
    """With the columns of the model, where they have names."""
    own = predictor.settings.columns
    if own and columns is not None and tuple(columns) != own:
        raise DataError(f"this model forecasts {', '.join(own)}, not {', '.join(columns)}; leave out --columns")
    series = read_series(paths, columns=own or columns, reading=reading)
    together = predictor.module.embedding.n_channels
    if together not in (1, len(series[0].columns)):
        raise DataError(f"this model reads {together} channels together, not {len(series[0].columns)}")
    return series


def _model(predictor: SeriesForecaster) -> PatchTSTConfig:
    assert isinstance(predictor.config, PatchTSTConfig)  # as its module is a Forecaster
    return predictor.config
