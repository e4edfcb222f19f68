"""The predictor of forecasting: the steps that follow a series.

Shapes: L steps, C channels, R rows: what the module reads as one, with c channels each.
"""

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ...config import Config, FamilyConfig
from ...core import Forecaster
from ...data.series import ColumnScale, Series, format_time, read_series
from ...errors import ConfigError, DataError, NonFiniteOutputError, unknown
from ...families import Imported
from ...lens.trace import trace
from ..bundle import Bundle
from ..inspection.document import Inspection, check_options, patch_token
from ..predictor import InputKind, ItemError, OutputKind, Predictor
from ..text_encoder import BATCH_TOKENS
from .data import SeriesWindows, as_rows, as_windows, sees_a_patch
from .scoring import LAST, LINEAR, NETWORK, SEASONAL, Forecast, Linear, evaluate_windows, rivals, weighted_mean

FORMS = "a series is a list of numbers, a list of rows of numbers, or an array of one of these"
LINEAR_FILE = "linear.safetensors"  # the linear model to beat, where training has made one


@dataclass(frozen=True, kw_only=True)
class ForecastWeights(Config):
    """The weight of each forecaster in the forecast; by default the network forecasts alone."""

    title: ClassVar[str] = "weights"

    network: float = 1.0
    linear: float = 0.0  # The linear model
    seasonal: float = 0.0  # The last season, repeated
    last: float = 0.0  # The last value, repeated

    def check(self) -> None:
        weights = self.to_dict().values()
        valid = min(weights) >= 0 and abs(sum(weights) - 1) < 1e-3
        self.require(valid, f"weights are 0 or more and together 1, not {self.to_dict()}")

    @classmethod
    def of(cls, weights: Mapping[str, float]) -> Self:
        """Return the weights by the names of the forecasters."""
        return cls(**{field: weights.get(name, 0.0) for field, name in FORECASTERS.items()})

    def by_forecaster(self) -> dict[str, float]:
        """Return the weights above 0 by the names of the forecasters."""
        return {FORECASTERS[field]: weight for field, weight in self.to_dict().items() if weight}


LARGEST_MODERATE = 1e6  # scaled values below it are not what makes a forecast infinite
FORECASTERS = {"network": NETWORK, "linear": LINEAR, "seasonal": SEASONAL, "last": LAST}


@dataclass(frozen=True, kw_only=True)
class ForecastSettings(Config):
    """The names of the channels, in the order of a row; empty where they have none.

    `scale` is what the training part was scaled by; `season` after how many steps the series comes again; `weights` are
    those of the network and of the baselines in the forecast.
    """

    title: ClassVar[str] = "forecasting"

    columns: tuple[str, ...] = ()
    scale: ColumnScale = field(default_factory=ColumnScale)
    season: int | None = None
    weights: ForecastWeights = field(default_factory=ForecastWeights)

    def check(self) -> None:
        self.require(len(set(self.columns)) == len(self.columns), f"columns has a name twice: {self.columns}")
        self.require(
            len(self.scale.width) in (0, len(self.columns)),
            f"the scale is of {len(self.scale.width)} columns, but {len(self.columns)} are named",
        )
        self.require_positive("season")


class PreparedSeries(NamedTuple):
    """A series as rows (R, L, c), with NaN where it was not observed; `flat` where it was a list of numbers."""

    rows: NDArray[np.float64]
    flat: bool


class SeriesForecaster(Predictor[Any, Any]):
    """Forecasts series: what `heedful.load` returns for forecasting.

    If the model reads every channel independently, each is a row with gaps of its own. If it reads them together, a
    step with a gap in one channel counts as not observed.

    `predict` returns the steps that follow each series, in its own form: a list of numbers, or a list of rows of
    numbers. Of a longer series the newest steps are read; a shorter one is refused. None or NaN means not observed.
    """

    task: ClassVar[str] = "forecasting"
    settings_class: ClassVar[type[Config]] = ForecastSettings
    item_name: ClassVar[str] = "series"
    input_kind: ClassVar[InputKind] = "series"
    output_kind: ClassVar[OutputKind] = "forecast"
    linear: Linear | None = None  # a baseline, and a part of the forecast where it has a weight

    def __init__(self, config: FamilyConfig, module: nn.Module, settings: ForecastSettings) -> None:
        super().__init__(config, module, settings)
        if not isinstance(module, Forecaster):
            raise ConfigError(f"a model of the family {config.family!r} does not forecast; one of 'patchtst' does")
        n_channels, n_columns = module.embedding.n_channels, len(settings.columns)
        if n_channels > 1 and n_columns not in (0, n_channels):
            raise ConfigError(f"the model reads {n_channels} channels together, but {n_columns} columns are named")

    def is_single(self, shape: tuple[int, ...]) -> bool:
        return len(shape) < 2 or (len(shape) == 2 and shape[1] < self.module.context_length)

    def predict_valid(self, series: Sequence[Any]) -> list[Any]:
        prepared = [self._numbered(item, index) for index, item in enumerate(series)]
        if not prepared:
            return []
        rows = self.forecast(np.concatenate([item.rows for item in prepared]))
        each = np.split(rows, np.cumsum([len(item.rows) for item in prepared])[:-1])
        return [
            self._answer(item, forecast, index)
            for index, (item, forecast) in enumerate(zip(prepared, each, strict=True))
        ]

    def prepared(self, series: Any) -> PreparedSeries:
        """Return the newest steps as rows; DataError if channels are missing, or if the model would see no patch."""
        values = newest(series, self.module.context_length)
        flat = values.ndim == 1
        values = values[:, None] if flat else values
        columns, embedding, n_channels = self.settings.columns, self.module.embedding, values.shape[1]
        expected = len(columns) or (embedding.n_channels if embedding.n_channels > 1 else n_channels)
        if n_channels != expected:
            names = f" ({', '.join(columns)})" if columns else ""
            raise DataError(f"this model forecasts {expected} channels{names}, not {n_channels}")
        scaled = self.settings.scale.apply(values)
        rows = scaled.reshape(len(scaled), -1, embedding.n_channels).transpose(1, 0, 2)
        for index, row in enumerate(rows):
            observed = np.asarray(np.isfinite(row).all(axis=1))
            if not sees_a_patch(observed, embedding.patch_length, embedding.stride):
                name = f"channel {index + 1}" if len(rows) > 1 else "it"
                raise DataError(
                    f"{name} was observed at {observed.sum()} of {len(observed)} steps, and nowhere throughout one of "
                    f"the patches of {embedding.patch_length} steps that the model reads"
                )
        return PreparedSeries(rows, flat)

    def forecast(self, context: NDArray[Any]) -> NDArray[np.float64]:
        """Return (B, horizon, C) for scaled contexts (B, L, C): the mean of all forecasters, by their weights."""
        forecasters, weights = self.forecasters(), self.settings.weights.by_forecaster()
        return weighted_mean({name: forecasters[name](context) for name in weights}, weights)

    def evaluate(self, windows: SeriesWindows, season: int | None) -> dict[str, Any]:
        """Return what metrics.json holds for one part of the data."""
        return evaluate_windows(self.network, windows, season, self.linear, self.settings.weights.by_forecaster())

    def forecasters(self) -> dict[str, Forecast]:
        """Return the network and the baselines, which a weighted mean can combine."""
        sizes = self.module.context_length, self.module.head.horizon
        return {**rivals(*sizes, self.settings.season, self.linear)[0], NETWORK: self.network}

    def network(self, context: NDArray[Any]) -> NDArray[np.float64]:
        """Return what the network alone forecasts, (B, horizon, C) for scaled contexts (B, L, C)."""
        rows = as_rows(torch.from_numpy(context), self.module.embedding.n_channels)
        return as_windows(torch.from_numpy(self._forecast(rows.numpy())), context.shape[2]).numpy()

    @torch.inference_mode()
    def _forecast(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """Return the network's (R, horizon, c) for (R, L, c), computed in batches."""
        device, embedding = next(self.module.parameters()).device, self.module.embedding
        size = max(1, BATCH_TOKENS // embedding.n_patches(embedding.filling(rows.shape[1])))
        outputs: list[Tensor] = []
        for batch in torch.from_numpy(rows).split(size):
            observed = ~batch.isnan().any(dim=2)
            keep = None if observed.all() else observed.to(device)
            outputs.append(self.module(batch.to(device), keep).cpu())
        return torch.cat(outputs).numpy()

    def _answer(self, series: PreparedSeries, rows: NDArray[np.float64], index: int) -> list[Any] | ItemError:
        forecast = self._unscaled(rows)
        if not np.isfinite(forecast).all():
            if np.nanmax(np.abs(series.rows)) < LARGEST_MODERATE:
                raise NonFiniteOutputError("the forecast")
            largest = np.nanmax(np.abs(self._unscaled(series.rows)))
            return ItemError(
                self.item_name, index, f"the forecast is not finite; values of up to {largest:g} are too large"
            )
        return (forecast[:, 0] if series.flat else forecast).tolist()

    def _unscaled(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convert (R, L, c) as the module has it to (L, C) in the units of the file."""
        return self.settings.scale.undo(rows.transpose(1, 0, 2).reshape(rows.shape[1], -1))

    def save_files(self, folder: Path) -> Sequence[str]:
        """Write the linear baseline, if training has fitted one."""
        if self.linear is None:
            return ()
        self.linear.save(folder / LINEAR_FILE)
        return (LINEAR_FILE,)

    @classmethod
    def from_bundle(cls, folder: Path, bundle: Bundle) -> Self:
        forecaster = super().from_bundle(folder, bundle)
        if (folder / LINEAR_FILE).is_file():
            module = forecaster.module
            forecaster.linear = Linear.load(folder / LINEAR_FILE, module.context_length, module.head.horizon)
        return forecaster

    @classmethod
    def from_checkpoint(cls, checkpoint: Imported, folder: Path) -> Self:
        """Return a published model; its channels have no names."""
        return cls(checkpoint.config, checkpoint.module, ForecastSettings())

    def hf_files(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Warn that only the network is published."""
        if (share := self.settings.weights.network) < 1:
            reason = f"whose share in this model's forecast is {100 * share:.0f} %"
            warnings.warn(f"the export has the network alone, {reason}; train with --set combine=false", stacklevel=2)
        return {}

    def inspect(self, item: Any, inspection: Inspection, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the look document of a series, or of a table in a file: the last window of one column.

        The options `series` and `column` select them; by default the first.
        """
        check_options(options, self, "series", "column")
        length = self.module.context_length
        table = self._read_table(Path(item), options) if isinstance(item, str | os.PathLike) else None
        values = item if table is None else table.values
        names = self.settings.columns if table is None else table.columns
        name = options.get("column")
        if name is not None and name not in names:
            raise DataError(
                unknown("column", name, names) if names else f"there is no column {name!r}: none has a name"
            )
        column = 0 if name is None else names.index(name)
        try:
            (forecast,) = self.predict([values])
        except ItemError as error:
            raise DataError(f"{item}: {error.reason}" if table else error.reason) from None
        forecaster, row = self.hookable_copy(), column // self.module.embedding.n_channels
        with trace(forecaster.module) as traced:  # on the row that contains the column
            forecaster._forecast(self.prepared(values).rows[row][None])
        context = newest(values, length).reshape(length, -1)[:, column].tolist()
        times = None if table is None else table.times
        embedding = self.module.embedding
        first, size = length - embedding.filling(length), embedding.patch_length  # the oldest steps may be in no patch
        patches = [[begin, begin + size] for begin in range(first, length - size + 1, embedding.stride)]
        return {
            "kind": "series",
            "question": None if table is None else str(item),
            "sequences": {"source": [patch_token(f"{begin + 1}–{end}") for begin, end in patches]},
            "series": {
                "name": "" if table is None else table.name,
                "column": names[column] if names else "",
                "times": None if times is None else [format_time(time) for time in times[-length:]],
                "context": [None if value != value else value for value in context],  # a gap is NaN, unlike itself
                "forecast": [row[column] if isinstance(row, list) else row for row in forecast],
                "truth": None,
                "patches": patches,
            },
            **inspection.internals(self.module, traced),
        }

    def _read_table(self, path: Path, options: Mapping[str, Any]) -> Series:
        """Read the series that the options name, or the first, with a warning if there are others."""
        name = options.get("series")
        tables = read_series([path], columns=self.settings.columns or None, names=None if name is None else [name])
        first = tables[0]
        if len(tables) > 1:
            warnings.warn(f"{path}: of {len(tables):,} series {first.name!r} is shown", stacklevel=2)
        if len(first.columns) > 1 and "column" not in options:
            warnings.warn(f"{path}: of {len(first.columns):,} columns {first.columns[0]!r} is shown", stacklevel=2)
        return first


def newest(series: object, length: int) -> NDArray[np.float64]:
    """Return the newest steps, (L,) or (L, C) as in the input, with NaN for gaps; DataError if they are no series."""
    if hasattr(series, "__array__"):  # a column or a table of other packages
        series = np.asarray(series)
    elif isinstance(series, Iterable) and not isinstance(series, str | bytes | Mapping):
        series = list(series)
    else:
        raise DataError(f"{FORMS}, not {type(series).__name__}")
    if isinstance(series, np.ndarray) and series.ndim not in (1, 2):
        raise DataError(f"{FORMS}, not an array of shape {series.shape}")
    if len(series) < length:
        raise DataError(f"this model forecasts from {length:,} steps, and it has only {len(series):,}; give as many")
    values = _numbers(series[-length:])
    if values.ndim not in (1, 2) or values.size == 0:
        raise DataError(f"{FORMS}; this one has the shape {values.shape}")
    if np.isinf(values).any():
        raise DataError("it holds an infinite number; use None or NaN for a step that was not observed")
    return values


def _numbers(series: Any) -> NDArray[np.float64]:
    try:
        array = np.asarray(series)
    except ValueError:
        raise DataError(f"{FORMS}; the rows of this one differ in length") from None
    for value in array.flat if array.dtype == object else ():  # with None, or numbers too long for a machine's
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating | None):
            raise DataError(f"{FORMS}; this one holds {value!r:.100} ({type(value).__name__})")
    if array.dtype.kind not in "iufO":
        raise DataError(f"{FORMS}; this one holds {array.dtype}")
    try:
        return array.astype(np.float64)  # None becomes NaN
    except OverflowError:
        return np.full(array.shape, np.inf)
