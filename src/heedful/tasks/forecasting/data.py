"""The settings of a forecasting run, and its data: series as windows, divided by time and scaled.

There is a window for every step: a context and the horizon that follows.

A window is a place in the store. Training, validation and test follow each other in time: a window belongs to the part
in which its whole horizon lies, and the contexts of validation and test may reach back into the part before.

Shapes: B windows, L steps of context, H of horizon, C channels. Rows R: what the module reads as one, with c channels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...config import Config, FamilyConfig
from ...data.batch import TensorBatch
from ...data.report import SeriesReport
from ...data.series import ColumnScale, Series, SeriesStore, read_series
from ...errors import DataError
from ...families import PatchTSTConfig, config_of
from ...training.config import TrainingConfig
from ..run import DataReport, Files, RunConfig, TooLittleDataError, TrainingData
from ..run.batches import EvenBatches

SERIES = "series"  # the store, in a run's data
MAX_SIZE_RATIO = 100.0  # series that differ more in size, the larger ones decide alone what is learned
PARTS = {"train": "windows to train on", "valid": "windows to validate on", "test": "windows to test on"}
SIZES = {"family", "context_length", "patch_length", "stride"}  # of a model: with one, all are as the preset has them
LONGEST = 512  # steps of context that a long horizon leads to
Values = NDArray[np.float32]
Mask = NDArray[np.bool_]
Indexes = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class SeriesConfig(Config):
    """Which series are used, and how they are divided and scaled."""

    title: ClassVar[str] = "data"

    series: tuple[str, ...] | None = None  # Names of the series to use; None means all
    split: tuple[float, ...] = (0.7, 0.1, 0.2)  # Training, validation and test part: shares of each series, or steps
    transform: Literal["none", "log"] = "none"  # "log" is for values that grow by percentages, such as prices
    season: int | None = None  # Period in steps, for the seasonal naive forecast; None derives it from the dates

    def check(self) -> None:
        self.require_positive("season")
        shares = sum(self.split) <= 1 + 1e-9
        counts = all(part >= 1 and part == int(part) for part in self.split)
        self.require(
            len(self.split) == 3 and all(part > 0 for part in self.split) and (shares or counts),
            "split is three shares, together at most 1, or three whole numbers of steps: for training, validation "
            f"and test; not {list(self.split)}",
        )

    @property
    def by_counts(self) -> bool:
        return self.split[0] >= 1


@dataclass(frozen=True, kw_only=True)
class ForecastingConfig(RunConfig):
    """The settings of a run. `training.batch_tokens` counts patches."""

    preset: ClassVar[str] = "patchtst-tiny"

    data: SeriesConfig = field(default_factory=SeriesConfig)
    model: FamilyConfig = field(default_factory=lambda: config_of(ForecastingConfig.preset))
    loss: Literal["mse", "mae", "huber"] = "mse"  # Huber is squared up to an error of 1, then absolute
    combine: bool = True  # Forecast a mean of the network and the baselines, weighted by the validation part
    training: TrainingConfig = field(
        default_factory=lambda: TrainingConfig(
            steps=4000,
            batch_tokens=2048,
            patience=10,
            validate_every=200,
            save_every=200,
            schedule="cosine",
            warmup_steps=200,
            label_smoothing=0.0,
        )
    )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read the settings; where the context is the default, it is six times the horizon, from 30 to 512 steps."""
        model = values.get("model")
        if isinstance(model, Mapping) and "horizon" in model and model.keys().isdisjoint(SIZES):
            base, horizon, shortest = config_of(model.get("preset", cls.preset)), model["horizon"], PatchTSTConfig()
            is_default = isinstance(base, PatchTSTConfig) and base.context_length == shortest.context_length
            if is_default and isinstance(horizon, int):
                context = min(max(6 * horizon, shortest.context_length), LONGEST)
                patch = max(context // 16, shortest.patch_length)
                sizes = {"context_length": context, "patch_length": patch, "stride": patch // 2}
                values = {**values, "model": {**model, **sizes}}
        return super().from_dict(values)

    def check(self) -> None:
        self.require(
            isinstance(self.model, PatchTSTConfig),
            f"a model of the family {self.model.title!r} does not forecast; one of 'patchtst' does",
        )
        season, context = self.data.season, self.patchtst.context_length
        self.require(
            season is None or season <= context,
            f"data.season={season} is longer than model.context_length={context}, so that no window shows it",
        )

    @property
    def patchtst(self) -> PatchTSTConfig:
        """The model's config, by its own kind."""
        assert isinstance(self.model, PatchTSTConfig)
        return self.model


class Cut(NamedTuple):
    """The values of some windows: NaN where nothing was observed; `counts` marks the values that are scored."""

    context: Values  # (B, L, C)
    target: Values  # (B, H, C)
    counts: Mask  # (B, H, C)


@dataclass(frozen=True, eq=False)
class WindowBatch(TensorBatch):
    """Windows as the module reads them. Missing values are 0; `keep` is None if nothing is missing."""

    context: Tensor  # (R, L, c)
    keep: Tensor | None  # (R, L)
    target: Tensor  # (R, H, c)
    counts: Tensor  # (R, H, c)
    rows: tuple[int, ...] = ()  # the numbers of the windows


def as_rows(series: Tensor, group_size: int) -> Tensor:
    """Convert (B, L, C) → (R, L, c): channels that are read independently become rows."""
    return series.unflatten(2, (-1, group_size)).transpose(1, 2).flatten(0, 1)


def as_windows(rows: Tensor, channels: int) -> Tensor:
    """Convert rows back into windows, (R, H, c) → (B, H, C)."""
    groups = channels // rows.shape[2]
    return rows.unflatten(0, (-1, groups)).transpose(1, 2).flatten(2)


def sees_a_patch(seen: Mask, patch_length: int, stride: int) -> Mask:
    """Return, (…, L) → (…), whether some patch was observed completely. Patches end at the newest step."""
    over = (seen.shape[-1] - patch_length) % stride
    patches = np.lib.stride_tricks.sliding_window_view(seen[..., over:], patch_length, axis=-1)[..., ::stride, :]
    return np.asarray(patches.all(axis=-1).any(axis=-1))


class SeriesWindows:
    """All windows whose horizon lies in one part, by number: 0 is the earliest of the first series."""

    def __init__(self, store: SeriesStore, spans: Sequence[tuple[int, int]], model: PatchTSTConfig) -> None:
        """`spans`: for each series the row of the first window's first step, and how many windows there are."""
        self.store, self.model = store, model
        self.group_size = model.n_channels if model.channels == "mixed" else 1
        self._first = np.array([first for first, _ in spans], np.int64)
        self._ends = np.cumsum([n for _, n in spans], dtype=np.int64)
        self._steps = np.arange(model.context_length + model.horizon)

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    @property
    def fingerprint(self) -> str:
        return self.store.fingerprint

    def place(self, row: int) -> str:
        return self.store.place(int(self.begins([row])[0]))

    def begins(self, windows: Sequence[int] | Indexes) -> Indexes:
        """Return the rows of the store at which windows begin."""
        numbers = np.asarray(windows, np.int64)
        series = np.searchsorted(self._ends, numbers, side="right")
        before = np.concatenate([[0], self._ends])[series]
        return np.asarray(self._first[series] + numbers - before)

    def cut(self, windows: Sequence[int] | Indexes) -> Cut:
        """Return the values of windows; a row whose context has no complete patch is not scored."""
        values = self.store.values[self.begins(windows)[:, None] + self._steps]
        context, target = np.split(values, [self.model.context_length], axis=1)
        if self.store.whole:
            return Cut(context, target, np.ones(target.shape, np.bool_))
        seen = ~np.isnan(context)
        groups = seen.reshape(*seen.shape[:2], -1, self.group_size).all(axis=3).transpose(0, 2, 1)  # (B, G, L)
        usable = sees_a_patch(groups, self.model.patch_length, self.model.stride)  # (B, G): for each channel, or all
        return Cut(context, target, ~np.isnan(target) & usable[:, None])

    def batch(self, windows: Sequence[int] | Indexes, *, size: int | None = None) -> WindowBatch:
        """Return windows as a batch; the first ones are repeated up to `size`, and do not count.

        A norm over the batch therefore sees only real windows. If there are none, the first of all is repeated.
        """
        numbers = np.asarray(windows, np.int64)
        cut = self.cut(numbers if size is None else np.resize(numbers if len(numbers) else [0], size))
        cut.counts[len(numbers) :] = False
        return self.as_batch(cut, numbers.tolist())

    def as_batch(self, cut: Cut, windows: Sequence[int] = ()) -> WindowBatch:
        """Return cut-out windows as rows of the channels that the module reads together."""
        context, target, counts = (as_rows(torch.from_numpy(part), self.group_size) for part in cut)
        if self.store.whole:
            return WindowBatch(context, None, target, counts, tuple(windows))
        keep = ~context.isnan().any(dim=2)
        return WindowBatch(context.nan_to_num(0.0), keep, target.nan_to_num(0.0), counts, tuple(windows))

    def in_order(self, size: int, every: int = 1) -> Iterator[Indexes]:
        """Yield the numbers of all windows, or of one in `every`, in chunks; the last chunk may be smaller."""
        numbers = np.arange(0, len(self), every)
        for start in range(0, len(numbers), size):
            yield numbers[start : start + size]


class WindowBatches(EvenBatches[WindowBatch]):
    """Training windows in batches of one size."""

    def __init__(self, windows: SeriesWindows, batch_tokens: int, seed: int) -> None:
        super().__init__(np.arange(len(windows)), windows_within(batch_tokens, windows), seed)
        self.windows = windows

    def batch(self, rows: Indexes, size: int) -> WindowBatch:
        return self.windows.batch(rows, size=size)


def windows_within(tokens: int, windows: SeriesWindows) -> int:
    """Return how many windows have so many patches, over all channels; at least one."""
    groups = len(windows.store.columns) // windows.group_size
    return max(1, tokens // (windows.model.n_patches * groups))


def borders(config: SeriesConfig, steps: int) -> tuple[int, int, int]:
    """Return where the training, validation and test parts of a series with so many steps end."""
    if config.by_counts:
        train, valid, test = (int(part) for part in config.split)
        return train, train + valid, train + valid + test
    # A hair more, so that 0.29 of 100 is 29. What rounding leaves over validates, as in the usual benchmarks.
    train, _, test = (int(share * steps + 1e-9) for share in config.split)
    used = int(sum(config.split) * steps + 1e-9)
    return train, used - test, used


def spans(config: SeriesConfig, model: PatchTSTConfig, steps: int) -> dict[str, tuple[int, int]]:
    """Return the first window of each part of a series with so many steps, and the number of windows."""
    windows, begin = {}, 0
    for part, end in zip(PARTS, borders(config, steps), strict=True):
        first = max(0, begin - model.context_length)
        stop = end - model.context_length - model.horizon + 1 if end <= steps else 0
        windows[part] = first, max(0, stop - first)
        begin = end
    return windows


def needed(config: SeriesConfig, model: PatchTSTConfig) -> int:
    """Return the number of steps from which on every part has a window."""

    def enough(steps: int) -> bool:
        return all(n for _, n in spans(config, model, steps).values())

    if config.by_counts:
        steps = int(sum(config.split))
        if not enough(steps):
            raise DataError(
                f"a split of {[int(part) for part in config.split]} steps leaves no window: the training part needs a "
                f"context of {model.context_length} and a horizon of {model.horizon}, the others a horizon"
            )
        return steps
    window = model.context_length + model.horizon
    steps = int((window + 2) / min(config.split)) + 1  # enough however shares are rounded; then the fewest
    while enough(steps - 1):
        steps -= 1
    return steps


def filled(context: NDArray[Any]) -> NDArray[np.float64]:
    """Return (B, L, C) with gaps filled by the last value before them, else by the first after them, else by 0."""
    values = context.astype(np.float64)
    if not np.isnan(values).any():
        return values
    for direction in (values, values[:, ::-1]):
        steps = np.where(np.isnan(direction), 0, np.arange(values.shape[1])[:, None])
        last = np.maximum.accumulate(steps, axis=1)
        direction[:] = np.take_along_axis(direction, last, axis=1)
    return np.nan_to_num(values, nan=0.0)


@dataclass(frozen=True, eq=False)
class SeriesMetadata:
    """The windows of every part, and after how many steps the series come again. Nothing is chosen by the test part."""

    windows: dict[str, SeriesWindows]
    season: int | None


SeriesData = TrainingData[SeriesWindows, None, SeriesMetadata]


def divide_series(folder: Path, store: SeriesStore, config: ForecastingConfig) -> SeriesData:
    """Divide a store by time, as a config says."""
    model = config.patchtst.changed(n_channels=len(store.columns))
    by_part: dict[str, list[tuple[int, int]]] = {part: [] for part in PARTS}
    for series in store.series:
        for part, (first, n) in spans(config.data, model, series.steps).items():
            by_part[part].append((series.start + first, n))
    windows = {part: SeriesWindows(store, by_part[part], model) for part in PARTS}
    metadata = SeriesMetadata(windows, config.data.season or store.season)
    return TrainingData(folder, windows["train"], windows["valid"], None, metadata)


def prepare_series(
    config: ForecastingConfig, files: Files, folder: Path
) -> tuple[SeriesData, DataReport[SeriesReport]]:
    """Read, check, scale by the training parts, and write the store."""
    reading = SeriesReport()
    series = read_series(files.train, columns=files.columns, names=config.data.series, reading=reading)
    reading.extra |= dict.fromkeys(PARTS.values(), 0)
    report = DataReport(reading, held_out=None)
    _check_lengths(series, config, report)
    scale = _scale(series, config.data)
    reading.notes += _sizes(series, config.data)
    data = divide_series(folder, SeriesStore.write(folder / SERIES, series, scale), config)
    reading.extra |= {PARTS[part]: len(windows) for part, windows in data.metadata.windows.items()}
    _check_observed(data, report)
    return data, report


def _check_lengths(series: Sequence[Series], config: ForecastingConfig, report: DataReport[SeriesReport]) -> None:
    """Check that each part has a window of some series; note series without one, and steps that are not used."""
    model, notes = config.patchtst, report.train.notes
    fewest = needed(config.data, model)
    parts_of = {
        item.name: [part for part, (_, n) in spans(config.data, model, len(item)).items() if n] for item in series
    }
    if not all(any(part in parts for parts in parts_of.values()) for part in PARTS):
        longest = max(series, key=len)
        raise TooLittleDataError(
            f"{longest.name} has {len(longest):,} steps, and with a context of {model.context_length} and a horizon of "
            f"{model.horizon} at least {fewest:,} are needed for windows to train, validate and test on; give a longer "
            "series, or set model.context_length, model.horizon or data.split",
            report,
        )
    for item in series:
        if len(parts := parts_of[item.name]) < len(PARTS):
            notes.append(
                f"{item.name}: {len(item):,} steps are too few for every part, for which it would take {fewest:,}; "
                f"it has windows for {' and '.join(parts) or 'none'}"
            )
    for item in series:
        used = borders(config.data, len(item))[2]
        if used < len(item):
            notes.append(f"{item.name}: the last {len(item) - used:,} steps are beyond the split and not used")


def _scale(series: Sequence[Series], config: SeriesConfig) -> ColumnScale:
    """Return the scale of all training parts together: nothing later is known when training."""
    if config.transform == "log":
        for item in series:
            item.check_above_zero()
    training_values = np.concatenate([item.values[: borders(config, len(item))[0]] for item in series])
    nowhere = np.isnan(training_values).all(axis=0)
    if nowhere.any():
        names = [name for name, absent in zip(series[0].columns, nowhere, strict=True) if absent]
        raise DataError(
            f"{', '.join(names)}: nothing was observed in the training part; leave such columns out (--columns)"
        )
    return ColumnScale.of(training_values, config.transform)


def _sizes(series: Sequence[Series], config: SeriesConfig) -> list[str]:
    """Return notes on series of very different size: they share one scale, so small ones have little weight."""
    if len(series) < 2 or config.transform == "log":
        return []
    deviations = np.array(
        [np.nanstd(item.values, axis=0) for item in series if not np.isnan(item.values).all(axis=0).any()]
    )
    deviations = np.where(deviations > 0, deviations, np.nan)
    notes = []
    for column, widths in zip(series[0].columns, deviations.T, strict=True):
        seen = widths[~np.isnan(widths)]
        if len(seen) and seen.max() > MAX_SIZE_RATIO * seen.min():
            notes.append(
                f"{column}: the series differ {seen.max() / seen.min():,.0f} times in size, so that the small ones "
                "count little; where all values are above 0, --set data.transform=log puts that right"
            )
    return notes


def _check_observed(data: SeriesData, report: DataReport[SeriesReport]) -> None:
    """Check that every part has a value to learn from or to score."""
    if data.train.store.whole:
        return
    for part, windows in data.metadata.windows.items():
        if not any(windows.cut(batch).counts.any() for batch in windows.in_order(1024)):
            raise TooLittleDataError(
                f"too little was observed: no window for {part} has both a whole patch of {windows.model.patch_length} "
                "observed steps and a value to forecast",
                report,
            )
