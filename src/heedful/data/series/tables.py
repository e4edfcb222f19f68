"""Series, and the tables they are read from: a step a row, a channel a column.

With a column of names, a table has several series. Shapes: L steps, C channels.
"""

import math
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError, unknown
from ..readers.files import Line, TableRow, csv_rows, opened, split_lines
from ..report import SeriesReport
from .dates import Spacing, Times, check_order, descending, format_time, read_times, spacing

TIMES = ("date", "time", "timestamp", "datetime", "ds", "day", "month", "unnamed: 0", "")
NAMES = ("symbol", "ticker", "unique_id", "series")
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "-", "?", "."})


@dataclass(frozen=True, eq=False)
class Series:
    """One series, oldest step first; NaN where it was not observed."""

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
        return f"{self.file}:{self.lines[step]}"

    def check_above_zero(self) -> None:
        """Raise a DataError at the first value that has no logarithm."""
        wrong = np.argwhere(self.values <= 0)
        if len(wrong):
            step, column = wrong[0].tolist()
            raise DataError(
                f"{self.place(step)}: the column {self.columns[column]!r} holds {self.values[step, column]:g}, and "
                "transform=log needs values above 0; choose other columns (--columns) or transform=none"
            )


def report_series(series: Series, report: SeriesReport) -> None:
    """Add a series to a report: length, step, first and last time, and what is missing."""
    report.columns = series.columns
    missing = np.isnan(series.values).sum(axis=0)
    first, last = (
        (None, None) if series.times is None else (format_time(series.times[0]), format_time(series.times[-1]))
    )
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


def read_series(
    paths: Sequence[str | Path],
    *,
    columns: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    reading: SeriesReport | None = None,
) -> list[Series]:
    """Read the series of csv or tsv files, which must have the same columns.

    `columns` selects some of these, `names` some of the series; by default all.
    """
    reading = SeriesReport() if reading is None else reading
    by_name: dict[str, Series] = {}
    for path in map(Path, paths):
        table = _Table(path, columns)
        first = next(iter(by_name.values()), None)
        if first is not None and first.columns != table.columns:
            raise DataError(
                f"{path} has the columns {', '.join(table.columns)}, but {first.file} has {', '.join(first.columns)}; "
                "choose those that both have with --columns"
            )
        for series in table.series():
            if series.name in by_name:
                raise DataError(
                    f"{path}: the series {series.name!r} was read before, from {by_name[series.name].file}; "
                    "give each series a name of its own, or each file one"
                )
            by_name[series.name] = series
    if missing := [name for name in names or () if name not in by_name]:
        raise DataError(unknown("series", missing[0], by_name))
    chosen = list(by_name.values()) if names is None else [by_name[name] for name in names]
    for series in chosen:
        report_series(series, reading)
    return chosen


class _Rows:
    """The cells of one series, one after the other, in little memory."""

    def __init__(self) -> None:
        self.numbers = array("d")
        self.times: list[str] = []
        self.lines = array("i")


class _Table:
    """A table that is being read."""

    def __init__(self, path: Path, columns: Sequence[str] | None) -> None:
        self.path = path
        self._rows = _rows(path)
        line, header, _ = next(self._rows, TableRow(1, []))
        self.header = [name.strip() for name in header]
        if not any(self.header):
            raise DataError(f"{path}: the file is empty; a table with a header is needed, such as date,close")
        for name in self.header:
            try:
                float(name)
            except ValueError:
                continue
            raise DataError(
                f"{path}:{line}: the first line holds the number {name}, so it is not a header; "
                "write the names of the columns above it, such as date,close"
            )
        twice = {name for name in self.header if self.header.count(name) > 1}
        if twice:
            raise DataError(f"{path}:{line}: the column {min(twice)!r} occurs twice; give each its own name")
        column_names = [name.casefold() for name in self.header]
        both = "date" in column_names and "time" in column_names  # the two make up the times
        times = ["date", "time"] if both else [name for name in TIMES if name in column_names][:1]
        self._time = [column_names.index(name) for name in times]
        self._name = next((column_names.index(name) for name in NAMES if name in column_names), None)
        self._channels = self._chosen(columns)
        self.columns = tuple(self.header[place] for place in self._channels)

    def _chosen(self, columns: Sequence[str] | None) -> list[int]:
        others = [place for place in range(len(self.header)) if place not in self._time and place != self._name]
        names = [self.header[place] for place in others]
        if columns is None:
            if not others:
                raise DataError(f"{self.path}: there is no column of numbers besides {', '.join(self.header)}")
            return others
        folded = [name.casefold() for name in names]
        chosen = []
        for name in columns:
            exact = name if name in names else None
            if exact is None and folded.count(name.casefold()) != 1:
                raise DataError(f"{self.path}: {unknown('column', name, names)}")
            chosen.append(others[names.index(exact) if exact is not None else folded.index(name.casefold())])
        return chosen

    def series(self) -> Iterator[Series]:
        """Yield the series in the order in which they begin."""
        by_name: dict[str, _Rows] = {}
        for line, cells, _ in self._rows:
            if not any(cell.strip() for cell in cells) and (self._time or len(cells) < 2):
                continue  # an empty line; without times, a row of empty cells is a step at which nothing was observed
            if len(cells) != len(self.header):
                raise DataError(
                    f"{self.path}:{line}: {len(cells)} cells under {len(self.header)} columns; "
                    "does a number hold a comma? Write 1234.5"
                )
            name = self.path.name.split(".")[0] if self._name is None else cells[self._name].strip()
            if not name:
                raise DataError(f"{self.path}:{line}: the row has no {self.header[self._name or 0]!r}")
            rows = by_name.setdefault(name, _Rows())
            rows.lines.append(line)
            rows.times.append(" ".join(cells[place] for place in self._time))
            rows.numbers.extend(self._number(cells[place], place, line) for place in self._channels)
        if not by_name:
            raise DataError(f"{self.path}: there is no row below the header")
        for name, rows in by_name.items():
            yield self._whole(name, rows)

    def _number(self, cell: str, place: int, line: int) -> float:
        try:
            return parse_number(cell)
        except ValueError as error:
            others = [self.header[other] for other in self._channels if other != place]
            choice = f"; to leave the column out: --columns {','.join(others)}" if others else ""
            raise DataError(f"{self.path}:{line}: the column {self.header[place]!r} holds {error}{choice}") from None

    def _whole(self, name: str, rows: _Rows) -> Series:
        lines = np.array(rows.lines, np.int32)
        values = np.array(rows.numbers, np.float64).reshape(len(lines), -1)
        place: Callable[[int], str] = lambda row: f"{self.path}:{lines[row]}"  # noqa: E731
        if not self._time:
            return Series(name, self.columns, values, None, lines, str(self.path), Spacing(None, None))
        times = read_times(rows.times, place)
        turned = descending(times)
        if turned:
            times, values, lines = times[::-1].copy(), values[::-1].copy(), lines[::-1].copy()
        check_order(times, place)
        return Series(name, self.columns, values, times, lines, str(self.path), spacing(times), turned)


def parse_number(cell: str) -> float:
    """Return a cell's number, NaN for an empty cell. A ValueError says what else it contains."""
    text = cell.strip()
    if text.casefold() in MISSING:
        return math.nan
    try:
        value = float(text) if "_" not in text else math.nan  # Python would read 1_000
    except ValueError:
        value = math.nan
    if math.isnan(value):
        if "," in text:
            raise ValueError(f"{text!r:.100}, with a comma; write numbers as 1234.5")
        raise ValueError(f"{text!r:.100}, which is not a number")
    if math.isinf(value):
        raise ValueError(f"{text!r:.100}, which is infinite; leave a cell empty where nothing was observed")
    return value


def _rows(path: Path) -> Iterator[TableRow]:
    """Yield rows with their first lines; the header determines the delimiter."""
    with opened(path) as stream:
        lines = split_lines(stream, str(path))
        head = next(lines, Line(1, ""))
        yield from csv_rows(chain([head], lines), str(path), delimiter=max(",\t;", key=head.text.count))
