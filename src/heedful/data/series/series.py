"""A series, and what is told about reading some.

Shapes: L steps, C channels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ..report import SeriesReport
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


def report_series(series: Series, report: SeriesReport) -> None:
    """Add a series to a report: how long, how often, from when to when, and what is missing."""
    report.columns = series.columns
    missing = np.isnan(series.values).sum(axis=0)
    first, last = (None, None) if series.times is None else (shown(series.times[0]), shown(series.times[-1]))
    report.series.append(
        {
            "name": series.name,
            "file": series.file,
            "steps": len(series),
            "first": first,
            "last": last,
            "step": series.spacing.step,
            "missing": int(missing.sum()),
        }
    )
    if series.turned:
        report.notes.append(f"{series.name}: the newest step stood first; the series was turned round")
    report.notes += [f"{series.name}: {note}" for note in series.spacing.notes]
    for column, values, absent in zip(series.columns, series.values.T, missing, strict=True):
        seen = values[~np.isnan(values)]
        if absent:
            report.notes.append(f"{series.name}: {column} was not observed at {absent:,} of {len(series):,} steps")
        if len(seen) and (seen == seen[0]).all():
            report.notes.append(f"{series.name}: {column} is {seen[0]:g} at every step")
