"""Forecasting: series, PatchTST, a regression loss, MSE and MAE with the baselines to beat.

Shapes: L steps of context, P patches, H heads.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from ...data.report import SeriesReport
from ...data.series import Series, SeriesStore, read_series
from ...errors import ConfigError, DataError
from ...families import PatchTSTConfig
from ...lens.recorder import record
from ...lens.report import ForecastPlot
from ...training.loss import Loss
from ...training.objective import Monitor
from ..predictor import ItemError
from ..run import DataReport, Files, Refusals, Task
from ..run.config import settings_json
from ..run.data import DATA
from .data import (
    SERIES,
    Cut,
    ForecastingConfig,
    SeriesData,
    SeriesWindows,
    WindowBatch,
    WindowBatches,
    divide_series,
    prepare_series,
)
from .predictor import LINEAR_FILE, ForecastSettings, ForecastWeights, SeriesForecaster
from .scoring import ALONE, NETWORK, SPOKEN, Linear, convex_weights, errors_of, sample_interval

CHANNELS = "the columns"
LOOKS = 4
DIGITS = 6


class ForecastingTask(Task[ForecastingConfig, SeriesData, WindowBatch]):
    """Forecasting of one or many series from tables; validation and test are their later parts."""

    name: ClassVar[str] = SeriesForecaster.task
    predictor_class: ClassVar[type[Any]] = SeriesForecaster
    config_class: ClassVar[type[Any]] = ForecastingConfig
    example_name: ClassVar[str] = "windows"
    artifacts: ClassVar[tuple[str, ...]] = (LINEAR_FILE, f"{DATA}/{SERIES}")
    frozen_settings: ClassVar[tuple[str, ...]] = (CHANNELS,)
    counted: ClassVar[str] = "windows"

    def input_files(self, config: ForecastingConfig, files: Files) -> dict[str, Path]:
        """Return the files; DataError for a folder: each file must be named."""
        if files.valid:
            raise ConfigError(
                "a forecaster is validated on the later part of each series (data.split), not on files of its own; "
                "leave out --valid"
            )
        paths = {str(Path(path)): Path(path) for path in files.train}
        for path in paths.values():
            if not path.is_file():
                reason = "it is a folder; give the files in it" if path.is_dir() else "there is no such file"
                raise DataError(f"{path}: {reason}")
        return paths

    def data_settings(self, config: ForecastingConfig, files: Files) -> dict[str, str]:
        return {CHANNELS: json.dumps(files.columns), "the data settings": settings_json(config.data)}

    def prepare(
        self, config: ForecastingConfig, files: Files, folder: Path, *, keep: bool = False
    ) -> tuple[SeriesData, DataReport[SeriesReport]]:
        return prepare_series(config, files, folder)

    def open(self, config: ForecastingConfig, folder: Path) -> SeriesData:
        return divide_series(folder, SeriesStore(folder / SERIES), config)

    def model_config(self) -> PatchTSTConfig:
        """Return the model's config for the channels of the data."""
        return self.data.train.model

    def setup(self) -> None:
        """Create the batches and monitor the MSE over validation windows: all of them, or a sample of very many."""
        training = self.config.training
        self.interval = sample_interval(self.data.valid, self.data.metadata.season)
        self.monitor = Monitor("mse", higher_is_better=False)
        self.batches = WindowBatches(self.data.train, training.batch_tokens, training.seed)
        self.counts_each = self.data.train.model.horizon * len(self.data.train.store.columns)

    @property
    def summary(self) -> str:
        store = self.data.train.store
        return f"{len(self.data.train):,} windows of {len(store.columns)} channels, {len(store.series)} series"

    def loss(self, module: nn.Module, batch: WindowBatch) -> Loss:
        """Return the sum of the chosen loss over a batch's values; `plain` is always the sum of squares."""
        error = (module(batch.context, batch.keep) - batch.target).where(batch.counts, 0.0)
        squares = error.square().sum()
        if self.config.loss == "mse":
            total = squares
        elif self.config.loss == "mae":
            total = error.abs().sum()
        else:
            total = F.huber_loss(error, error.new_zeros(()).expand_as(error), reduction="sum")
        return Loss(total, squares.detach(), batch.counts.sum())

    def validate(self, module: nn.Module) -> dict[str, float]:
        network = self.predictor(module).network
        errors = errors_of({NETWORK: network}, self.data.valid, every=self.interval)[NETWORK]
        return {"loss": errors.mse, "mse": errors.mse, "mae": errors.mae}

    def predictor(self, module: nn.Module) -> SeriesForecaster:
        """Return the predictor with the scale of the training part, so that forecasts are in the units of the file."""
        store = self.data.train.store
        settings = ForecastSettings(columns=store.columns, scale=store.scale, season=self.data.metadata.season)
        return SeriesForecaster(self.model_config(), module, settings)

    def final_evaluation(self, predictor: SeriesForecaster) -> dict[str, Any]:
        """Weigh the forecasters by the validation windows, and score all validation and test windows."""
        windows, season = self.data.metadata.windows, self.data.metadata.season
        predictor.linear, n = Linear.fit(windows["train"], windows["valid"]), len(windows["valid"])
        if not self.config.combine:
            note = "The network forecasts alone, as combine=false says."
        elif n <= windows["valid"].model.horizon:
            note = f"The network forecasts alone: {n:,} validation windows are too few to weigh the baselines by."
        else:
            weights = ForecastWeights.of(convex_weights(predictor.forecasters(), windows["valid"], self.interval))
            predictor.settings, note = predictor.settings.changed(weights=weights), _shares(weights)
        scores = {part: predictor.evaluate(windows[part], season) for part in ("valid", "test")}
        return {
            "validation": scores["valid"],
            "sets": {"test": scores["test"]},
            "forecasts": looks(predictor, windows["test"]),
            "combination": note,
        }

    def identity(self) -> dict[str, str]:
        return {
            "series": self.data.train.fingerprint[:16],
            "model": settings_json(self.model_config()),
            "loss": self.config.loss,
            "split": json.dumps(self.config.data.split),
        }

    def title(self, predictor: SeriesForecaster) -> str:
        module, columns = predictor.module, ", ".join(predictor.settings.columns)
        return f"{columns}: {module.head.horizon} steps from {module.context_length}"

    def evaluate(self, predictor: SeriesForecaster, files: Files, *, strict: bool = False) -> dict[str, Any]:
        """Return scores over every window of the files, in the form of metrics.json, and "forecasts" of some.

        The linear model is the one of the training run: nothing is learned from these files. Columns are for a model
        whose own have no names.
        """
        names, columns, model = predictor.settings.columns, files.columns, predictor.config
        assert isinstance(model, PatchTSTConfig)  # as the predictor's module is a Forecaster
        if names and columns is not None and columns != names:
            raise DataError(f"this model forecasts {', '.join(names)}, not {', '.join(columns)}; leave out --columns")
        refusals, size = Refusals(strict=strict), model.context_length + model.horizon

        def fault(item: Series) -> str | None:
            needed = f"to score a forecast of {model.horizon} from {model.context_length}, at least {size:,} are needed"
            return None if len(item) >= size else f"it has {len(item):,} steps; {needed}"

        series = list(refusals.accepted(_read(predictor, files.train, columns), fault, _place))
        with TemporaryDirectory() as folder:
            store = SeriesStore.write(folder, series, predictor.settings.scale)
            spans = [(stored.start, max(0, stored.steps - size + 1)) for stored in store.series]
            windows = SeriesWindows(store, spans, model.changed(n_channels=len(store.columns)))
            season = predictor.settings.season or store.season
            scores = predictor.evaluate(windows, season)
            return {**scores, "forecasts": looks(predictor, windows), **refusals.to_dict()}

    def card_notes(self, predictor: SeriesForecaster, metrics: Mapping[str, Any]) -> list[str]:
        units = "Errors are in units of the training data's deviation; `metrics.json` has them in the file's units too."
        return [units]

    def verdicts(self, metrics: Mapping[str, Any]) -> list[str]:
        """Return sentences about the test data: scores, and comparisons with the baselines."""
        test = metrics["sets"]["test"]
        scores = ", ".join(f"{name.upper()} {test['scores'][name]['value']:.4g}" for name in ("mse", "mae"))
        missing = [
            f"It was not compared with {SPOKEN.get(name, name)}: {why}." for name, why in test["why_not"].items()
        ]
        sentences = [f"On the test data, {test['n']:,} windows: {scores}.", metrics.get("combination", "")]
        return [*filter(None, sentences), *test["verdict"], *missing]

    def report_sections(self, predictor: SeriesForecaster, metrics: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Return plots of some windows with their attention."""
        return {"forecasts": [_plot(look) for look in metrics["forecasts"]]}


def _shares(weights: ForecastWeights) -> str:
    """Return a sentence that says what share each forecaster has in the forecast."""
    network, linear, seasonal, last = (f"{100 * weight:.0f}" for weight in weights.to_dict().values())
    return (
        f"The forecast is a weighted mean, as validates best: network {network} %, linear model {linear} %, "
        f"seasonal naive {seasonal} %, tomorrow = today {last} %."
    )


def _plot(look: Mapping[str, Any]) -> ForecastPlot:
    """Return a plot in the units of the file; a step that was not observed is a gap."""
    times, context = look["times"], look["context"]
    last = "" if times is None else f", {times[len(context) - 1]}"

    def line(values: Sequence[float | None]) -> list[float]:
        return np.array(values, dtype=np.float64).tolist()  # None becomes NaN

    return ForecastPlot(
        f"{look['series']}: {look['column']}{last}",
        line(context),
        line(look["truth"]),
        line(look["forecast"]),
        {name: line(values) for name, values in look["rivals"].items()},
        [(begin, end) for begin, end in look["attention"]["patches"]],
        look["attention"]["mean"],
    )


def forecast_files(predictor: SeriesForecaster, paths: Sequence[str | Path]) -> list[dict[str, Any]]:
    """Return the steps that follow each series of the files: {"series": …, "forecast": {column: […]}}.

    A series that is refused has "error" in place of "forecast".
    """
    series = _read(predictor, paths, None)
    forecasts = predictor.predict((item.values for item in series), errors="return")
    return [
        {"series": item.name, "error": f"{_place(item)}: {rows.reason}"}
        if isinstance(rows, ItemError)
        else {
            "series": item.name,
            "forecast": {name: [row[index] for row in rows] for index, name in enumerate(item.columns)},
        }
        for item, rows in zip(series, forecasts, strict=True)
    ]


def _place(series: Series) -> str:
    return f"{series.file}: {series.name}"


def _read(predictor: SeriesForecaster, paths: Sequence[str | Path], columns: Sequence[str] | None) -> list[Series]:
    """Read series with the columns of the model, if they have names."""
    series = read_series(paths, columns=predictor.settings.columns or columns)
    n_channels = predictor.module.embedding.n_channels
    if n_channels not in (1, len(series[0].columns)):
        raise DataError(f"this model reads {n_channels} channels together, not {len(series[0].columns)}")
    return series


def looks(predictor: SeriesForecaster, windows: SeriesWindows, count: int = LOOKS) -> list[dict[str, Any]]:
    """Return forecasts of some windows with the truth and the attention to patches: data for plots.

    The windows are spread evenly, each with another column; those without a value to score are left out.
    """
    chosen = np.unique(np.linspace(0, len(windows) - 1, min(count, len(windows))).astype(np.int64))
    columns = len(windows.store.columns)
    plots = [_look(predictor, windows, int(window), place % columns) for place, window in enumerate(chosen)]
    return [look for look in plots if look is not None]


def _look(predictor: SeriesForecaster, windows: SeriesWindows, window: int, column: int) -> dict[str, Any] | None:
    store, model = windows.store, windows.model
    cut = windows.cut([window])
    if not cut.counts[..., column].any():
        return None
    begin = int(windows.begins([window])[0])
    times = [store.when(row) for row in range(begin, begin + model.context_length + model.horizon)]
    others = predictor.forecasters()
    if predictor.settings.weights.by_forecaster() == ALONE:
        del others[NETWORK]

    def readable(values: NDArray[Any]) -> list[float | None]:
        real = store.scale.undo(values)[0, :, column].tolist()
        return [None if np.isnan(value) else float(f"{value:.{DIGITS}g}") for value in real]

    return {
        "series": store.owner(begin).name,
        "column": store.columns[column],
        "times": None if times[0] is None else times,
        "context": readable(cut.context),
        "truth": readable(cut.target),
        "forecast": readable(predictor.forecast(cut.context)),
        "rivals": {name: readable(forecast(cut.context)) for name, forecast in others.items()},
        "attention": _attention(predictor, windows, cut, column),
    }


@torch.inference_mode()
def _attention(predictor: SeriesForecaster, windows: SeriesWindows, cut: Cut, column: int) -> dict[str, Any]:
    """Return the attention of the last layer in the row that contains a column.

    `patches` are their first steps and those after their last, counted in the context. `mean` and `heads` are how much
    a patch is attended to, averaged over the patches that attend; `weights` is the whole map (P, P), averaged over
    heads. `reach` is how many steps away, on average, a head attends.
    """
    model, last = windows.model, windows.model.n_layers - 1
    device = next(predictor.module.parameters()).device
    batch = windows.as_batch(cut).to(device)
    with record(predictor.module, layers=last) as recording:
        predictor.module(batch.context, batch.keep)
    row = column // windows.group_size
    weights: Tensor = recording.encoder[last][row].float().cpu()  # (H, P, P)
    begins = (model.context_length - model.patch_length) % model.stride + model.stride * torch.arange(model.n_patches)
    apart = (begins[:, None] - begins[None]).abs()
    return {
        "patches": [[begin, begin + model.patch_length] for begin in begins.tolist()],
        "mean": _rounded(weights.mean(dim=(0, 1))),
        "heads": _rounded(weights.mean(dim=1)),
        "weights": _rounded(weights.mean(dim=0)),
        "reach": _rounded((weights * apart).sum(dim=2).mean(dim=1)),
    }


def _rounded(values: Tensor) -> Any:
    return torch.round(values.double(), decimals=4).tolist()
