"""Series scaled once, into one file that is mapped and not read: windows are places in it, and nothing is held twice.

A store (see array_store) is a folder: values.bin (float32, all steps of all series, NaN where not observed), times.bin
and lines.bin (when a step was, and on which line it stood), and meta.json.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ...config import Config
from ...errors import DataError
from ..array_store import ArrayFolder, mapped
from .tables import Series, format_time

_ARRAYS: dict[str, Any] = {"values.bin": np.float32, "times.bin": np.int64, "lines.bin": np.int32}
_FILES = ArrayFolder(
    tuple(_ARRAYS),
    "series",
    "there are no series, or they were not finished; read the data (again)",
    "delete the folder and read the data again",
)

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, kw_only=True)
class ColumnScale(Config):
    """The location and width that normalize each column, after its logarithm if `transform` says so.

    Without numbers, values stay as they are.
    """

    title: ClassVar[str] = "scale"

    location: tuple[float, ...] = ()
    width: tuple[float, ...] = ()
    transform: Literal["none", "log"] = "none"

    def check(self) -> None:
        self.require(len(self.location) == len(self.width), "location and width need a number for each column")
        self.require(all(width > 0 for width in self.width), f"widths are above 0, not {self.width}")

    @classmethod
    def of(cls, values: NDArray[np.float64], transform: Literal["none", "log"] = "none") -> ColumnScale:
        """Return the scale by mean and deviation of the observed values of (L, C); a constant is only moved."""
        taken = cls(transform=transform).apply(values)
        location, deviation = np.nanmean(taken, axis=0), np.nanstd(taken, axis=0)
        constant = deviation <= 1e-12 * np.abs(location)
        width = np.where(constant, 1.0, deviation)
        return cls(location=tuple(location.tolist()), width=tuple(width.tolist()), transform=transform)

    def apply(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Normalize (…, C) values. A DataError where a logarithm does not exist."""
        if self.transform == "log":
            if (values <= 0).any():
                raise DataError(f"it holds {values[values <= 0][0]:g}, and only what is above 0 has a logarithm")
            values = np.log(values)
        return (values - np.array(self.location)) / np.array(self.width) if self.width else values

    def undo(self, values: Floats) -> NDArray[np.float64]:
        """Return (…, C) normalized values in their original scale."""
        original = values.astype(np.float64)
        if self.width:
            original = original * np.array(self.width) + np.array(self.location)
        if self.transform == "log":
            with np.errstate(over="ignore"):
                return np.exp(original)
        return original


@dataclass(frozen=True)
class Stored:
    """The place of a series in the store."""

    name: str
    file: str
    start: int
    steps: int
    times: str | None  # "date" or "step"


class SeriesStore:
    """Series on disk: `values` (steps of all series, C), each where `series` says."""

    def __init__(self, folder: str | Path) -> None:
        """Open a store and check every byte of it."""
        folder = Path(folder)
        meta, self.fingerprint = _FILES.read(folder)
        self.columns: tuple[str, ...] = tuple(meta["columns"])
        self.scale = ColumnScale.from_dict(meta["scale"])
        self.season: int | None = meta["season"]
        self.whole: bool = meta["whole"]  # whether everything was observed
        self.series = [Stored(**series) for series in meta["series"]]
        values, self._times, self._lines = (mapped(folder / name, dtype) for name, dtype in _ARRAYS.items())
        self.values: NDArray[np.float32] = values.reshape(-1, len(self.columns))

    def owner(self, row: int) -> Stored:
        """Return the series that a row of `values` belongs to."""
        return self.series[bisect_right(self.series, row, key=lambda series: series.start) - 1]

    def place(self, row: int) -> str:
        return f"{self.owner(row).file}:{self._lines[row]}"

    def when(self, row: int) -> str | None:
        """Return the time of a row in words, or None."""
        kind, time = self.owner(row).times, self._times[row : row + 1]
        if kind is None:
            return None
        return format_time(time.view("datetime64[us]")[0] if kind == "date" else time.view(np.float64)[0])

    @classmethod
    def write(cls, folder: str | Path, series: Sequence[Series], scale: ColumnScale) -> SeriesStore:
        """Write series of the same columns, in place of an older store, and open it."""
        folder = Path(folder)
        with _FILES.write(folder) as (files, meta):
            meta |= {
                "columns": series[0].columns,
                "scale": scale.to_dict(),
                "season": Counter(item.spacing.season for item in series).most_common(1)[0][0],
                "whole": _write_arrays([files[name] for name in _ARRAYS], series, scale),
                "series": [asdict(stored) for stored in _places(series)],
            }
        return cls(folder)


def _places(series: Sequence[Series]) -> Iterator[Stored]:
    start = 0
    for item in series:
        times = None if item.times is None else "date" if item.times.dtype.kind == "M" else "step"
        yield Stored(item.name, item.file, start, len(item), times)
        start += len(item)


def _write_arrays(paths: Sequence[Path], series: Sequence[Series], scale: ColumnScale) -> bool:
    """Write all series one after the other; return True if every value was observed."""
    whole = True
    with ExitStack() as stack:
        values, times, lines = [stack.enter_context(path.open("wb")) for path in paths]
        for item in series:
            if scale.transform == "log":
                item.check_above_zero()
            with np.errstate(over="ignore"):
                scaled = scale.apply(item.values).astype(np.float32)
            if np.isinf(scaled).any():
                step = int(np.flatnonzero(np.isinf(scaled).any(axis=1))[0])
                raise DataError(f"{item.place(step)}: a value is too large compared with the training data")
            whole = whole and not np.isnan(scaled).any()
            values.write(scaled.tobytes())
            times.write((np.zeros(len(item), np.int64) if item.times is None else item.times).tobytes())
            lines.write(item.lines.tobytes())
    return whole
