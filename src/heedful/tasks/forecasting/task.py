"""Forecasting's four answers: series, a patch forecaster, squared errors, MSE and MAE beside what they must beat."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from ...data.series import SeriesStore
from ...errors import ConfigError, DataError
from ...families import build
from ...lens.report import ForecastPlot
from ..run import Files, Task
from ..run.folder import DATA
from .config import ForecastingConfig
from .evaluation import evaluate
from .forecaster import LINEAR_FILE, SeriesForecaster
from .job import ForecastingJob
from .judging import SPOKEN
from .prepare import SERIES, Prepared, Readings, model_for, prepare

CHANNELS = "the columns"


class ForecastingTask(Task[ForecastingConfig, Prepared]):
    """Tables of one or many series; validation and test are their later parts."""

    name: ClassVar[str] = SeriesForecaster.task
    loads: ClassVar[type[Any]] = SeriesForecaster
    counted: ClassVar[str] = "windows"
    config: ClassVar[type[Any]] = ForecastingConfig
    made: ClassVar[tuple[str, ...]] = (LINEAR_FILE, f"{DATA}/{SERIES}")
    kept: ClassVar[tuple[str, ...]] = (CHANNELS,)

    def inputs(self, config: ForecastingConfig, files: Files) -> dict[str, Path]:
        """Files, not folders: each is named."""
        if files.valid:
            raise ConfigError(
                "a forecaster is validated on the later part of each series (data.split), not on files of its own; "
                "leave out --valid"
            )
        paths = [Path(path) for path in files.train]
        for path in paths:
            if not path.is_file():
                why = "it is a folder; give the files in it" if path.is_dir() else "there is no such file"
                raise DataError(f"{path}: {why}")
        return {str(path): path for path in paths}

    def decides(self, config: ForecastingConfig, files: Files) -> dict[str, str]:
        """Columns, split, transform, season."""
        return {
            CHANNELS: json.dumps(files.columns),
            "the data settings": json.dumps(config.data.to_dict(), sort_keys=True),
        }

    def read(self, config: ForecastingConfig, files: Files, folder: Path, *, keep: bool) -> tuple[Prepared, Readings]:
        """Checked, scaled and stored once."""
        return prepare(config, files, folder)

    def open(self, config: ForecastingConfig, folder: Path) -> Prepared:
        """The store."""
        return Prepared.of(SeriesStore(folder / SERIES), config)

    def job(self, config: ForecastingConfig, data: Prepared) -> ForecastingJob:
        """With fresh weights."""
        model = model_for(config, data.store)
        return ForecastingJob(config, data, model, build(model))

    def heading(self, predictor: SeriesForecaster) -> str:
        """What is forecast, and how far."""
        module, columns = predictor.module, ", ".join(predictor.settings.columns)
        return f"{columns}: {module.head.horizon} steps from {module.context_length}"

    def evaluate(self, predictor: SeriesForecaster, files: Files) -> dict[str, Any]:
        """Over every window of files it has not seen."""
        return evaluate(predictor, files.train, columns=files.columns)

    def remarks(self, predictor: SeriesForecaster, metrics: Mapping[str, Any]) -> list[str]:
        """Whether it beat what it must beat, on data that nothing was chosen by."""
        units = "Errors are in units of the training part's deviation; `metrics.json` has them in those of the file."
        return [*self.verdicts(metrics), units]

    def verdicts(self, metrics: Mapping[str, Any]) -> list[str]:
        """Of the test part, in sentences."""
        test = metrics["sets"]["test"]
        scores = ", ".join(f"{name.upper()} {test['scores'][name]['value']:.4g}" for name in ("mse", "mae"))
        missing = [
            f"It was not compared with {SPOKEN.get(name, name)}: {why}." for name, why in test["why_not"].items()
        ]
        return [f"On the test part, {test['n']:,} windows: {scores}.", *test["verdict"], *missing]

    def shown(self, predictor: SeriesForecaster, metrics: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """The verdicts, and some windows with what they attend to."""
        return {
            "notes": [*self.verdicts(metrics), *metrics.get("notes", [])],
            "forecasts": [_plot(look) for look in metrics["forecasts"]],
        }


def _plot(look: Mapping[str, Any]) -> ForecastPlot:
    """In the units of the file; a step that was not observed is a gap."""
    times, context = look["times"], look["context"]
    last = "" if times is None else f", {times[len(context) - 1]}"

    def line(values: Sequence[float | None]) -> list[float]:
        return [math.nan if value is None else value for value in values]

    return ForecastPlot(
        f"{look['series']}: {look['column']}{last}",
        line(context),
        line(look["truth"]),
        line(look["forecast"]),
        {name: line(values) for name, values in look["rivals"].items()},
        [(begin, end) for begin, end in look["attention"]["patches"]],
        look["attention"]["mean"],
    )
