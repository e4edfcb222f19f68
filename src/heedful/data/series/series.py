"""A series, and what is told about reading some.

Shapes: L steps, C channels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from .dates import Spacing, Times, shown


@dataclass(frozen=True, eq=False)
class Series:
    """One series as it stood in a file, oldest step first; NaN where it was not observed."""

    name: str
    columns: tuple[str, ...]
    values: NDArray[np.float64]  # (L, C)
    times: Times | None
    lines: NDArray[np.int32]  # of the file, one a step
    file: str
    spacing: Spacing
    turned: bool = False  # whether the newest step stood first

    def __len__(self) -> int:
        return len(self.values)

    def place(self, step: int) -> str:
        """Where a step stood."""
        return f"{self.file}:{self.lines[step]}"

    def check_above_zero(self) -> None:
        """For whoever takes logarithms: a DataError names the first value that has none."""
        wrong = np.argwhere(self.values <= 0)
        if len(wrong):
            step, column = wrong[0].tolist()
            raise DataError(
                f"{self.place(step)}: the column {self.columns[column]!r} holds {self.values[step, column]:g}, and "
                "transform=log needs values above 0; choose other columns (--columns) or transform=none"
            )


@dataclass
class SeriesReading:
    """What was read, and what there is to know about it."""

    columns: tuple[str, ...] = ()
    series: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def keep(self, series: Series) -> None:
        """Remember a series: how long, how often, from when to when, and what is missing."""
        self.columns = series.columns
        missing = np.isnan(series.values).sum(axis=0)
        times = [] if series.times is None else [shown(series.times[0]), shown(series.times[-1])]
        self.series.append(
            {
                "name": series.name,
                "file": series.file,
                "steps": len(series),
                "first": times[0] if times else None,
                "last": times[-1] if times else None,
                "step": series.spacing.step,
                "missing": int(missing.sum()),
            }
        )
        if series.turned:
            self.notes.append(f"{series.name}: the newest step stood first; the series was turned round")
        self.notes += [f"{series.name}: {note}" for note in series.spacing.notes]
        for column, values, absent in zip(series.columns, series.values.T, missing, strict=True):
            seen = values[~np.isnan(values)]
            if absent:
                self.notes.append(f"{series.name}: {column} was not observed at {absent:,} of {len(series):,} steps")
            if len(seen) and (seen == seen[0]).all():
                self.notes.append(f"{series.name}: {column} is {seen[0]:g} at every step")

    def to_dict(self) -> dict[str, Any]:
        """For reading.json."""
        files: dict[str, int] = {}
        for series in self.series:
            files[series["file"]] = files.get(series["file"], 0) + series["steps"]
        return {
            "columns": list(self.columns),
            "files": [{"path": path, "format": "table", "steps": steps} for path, steps in files.items()],
            "series": self.series,
            "notes": self.notes,
        }
