"""From files to the windows of a run: read, checked, divided by time, scaled, and stored once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...data.report import SeriesReport
from ...data.series import ColumnScale, Series, SeriesStore, read_series
from ...errors import DataError
from ...families import PatchTSTConfig
from ..run import Files, TooLittleDataError
from .config import ForecastingConfig, SeriesConfig
from .windows import PARTS, Windows, borders, divided, needed, spans

SERIES = "series"  # the store, in a run's data
APART = 100.0  # series that differ more in size, the larger ones decide alone what is learned


@dataclass
class Readings:
    """What was read, and how many windows each part has."""

    reading: SeriesReport
    windows: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        """For reading.json."""
        uses = {"train": "windows to train on", "valid": "windows to validate on", "test": "windows to test on"}
        return {"train": {**self.reading.to_dict(), **{uses[part]: n for part, n in self.windows.items()}}}


@dataclass(frozen=True, eq=False)
class Prepared:
    """Everything training needs from the data."""

    store: SeriesStore
    windows: dict[str, Windows]
    season: int | None

    @classmethod
    def of(cls, store: SeriesStore, config: ForecastingConfig) -> Prepared:
        """A store, divided as a config says."""
        season = config.data.season or store.season
        return cls(store, divided(store, config.data, model_for(config, store)), season)


def model_for(config: ForecastingConfig, store: SeriesStore) -> PatchTSTConfig:
    """The model's config once the channels are known."""
    return config.patchtst.changed(n_channels=len(store.columns))


def prepare(config: ForecastingConfig, files: Files, folder: Path) -> tuple[Prepared, Readings]:
    """Read, check, scale by the training parts, and write the store."""
    reading = SeriesReport()
    series = read_series(files.train, columns=files.columns, names=config.data.series, reading=reading)
    readings = Readings(reading, dict.fromkeys(PARTS, 0))
    _check_lengths(series, config, readings)
    scale = _scale(series, config.data)
    reading.notes += _sizes(series, config.data)
    prepared = Prepared.of(SeriesStore.write(folder / SERIES, series, scale), config)
    readings.windows = {part: len(windows) for part, windows in prepared.windows.items()}
    _check_observed(prepared, readings)
    return prepared, readings


def _check_lengths(series: Sequence[Series], config: ForecastingConfig, readings: Readings) -> None:
    """Each part must have a window of some series; of a series that gives none, and of steps not used, a note."""
    model, notes = config.patchtst, readings.reading.notes
    fewest = needed(config.data, model)
    given = {one.name: [part for part, (_, n) in spans(config.data, model, len(one)).items() if n] for one in series}
    if not all(any(part in parts for parts in given.values()) for part in PARTS):
        longest = max(series, key=len)
        raise TooLittleDataError(
            f"{longest.name} has {len(longest):,} steps, and with a context of {model.context_length} and a horizon of "
            f"{model.horizon} at least {fewest:,} are needed for windows to train, validate and test on; give a longer "
            "series, or set model.context_length, model.horizon or data.split",
            readings,
        )
    for one in series:
        if len(parts := given[one.name]) < len(PARTS):
            notes.append(
                f"{one.name}: {len(one):,} steps are too few for every part, for which it would take {fewest:,}; "
                f"it has windows for {' and '.join(parts) or 'none'}"
            )
    for one in series:
        used = borders(config.data, len(one))[2]
        if used < len(one):
            notes.append(f"{one.name}: the last {len(one) - used:,} steps are beyond the split and not used")


def _scale(series: Sequence[Series], config: SeriesConfig) -> ColumnScale:
    """Of all training parts together: nothing later is known when training."""
    if config.transform == "log":
        for one in series:
            one.check_above_zero()
    known = np.concatenate([one.values[: borders(config, len(one))[0]] for one in series])
    nowhere = np.isnan(known).all(axis=0)
    if nowhere.any():
        names = [name for name, absent in zip(series[0].columns, nowhere, strict=True) if absent]
        raise DataError(
            f"{', '.join(names)}: nothing was observed in the training part; leave such columns out (--columns)"
        )
    return ColumnScale.of(known, config.transform)


def _sizes(series: Sequence[Series], config: SeriesConfig) -> list[str]:
    """One scale serves all series: where they differ much, the small ones count little."""
    if len(series) < 2 or config.transform == "log":
        return []
    found = np.array([np.nanstd(one.values, axis=0) for one in series if not np.isnan(one.values).all(axis=0).any()])
    found = np.where(found > 0, found, np.nan)
    notes = []
    for column, widths in zip(series[0].columns, found.T, strict=True):
        seen = widths[~np.isnan(widths)]
        if len(seen) and seen.max() > APART * seen.min():
            notes.append(
                f"{column}: the series differ {seen.max() / seen.min():,.0f} times in size, so that the small ones "
                "count little; where all values are above 0, --set data.transform=log puts that right"
            )
    return notes


def _check_observed(prepared: Prepared, readings: Readings) -> None:
    """Every part has something to learn from or to be judged by."""
    if prepared.store.whole:
        return
    for part, windows in prepared.windows.items():
        if not any(windows.cut(batch).counts.any() for batch in windows.in_order(1024)):
            raise TooLittleDataError(
                f"too little was observed: no window for {part} has both a whole patch of {windows.model.patch_length} "
                "observed steps and a value to forecast",
                readings,
            )
