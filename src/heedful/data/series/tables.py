"""Series, and the tables they are read from: a step a row, a channel a column.

With a column of names, a table has several series. A series is read as evenly spaced, whatever its dates say: nothing
is filled in and nothing is left out. Where that is not the truth (gaps, an irregular step), a note says so.

Shapes: L steps, C channels.
"""

import math
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError, unknown
from ..readers.files import Line, TableRow, csv_rows, opened, split_lines
from ..report import SeriesReport

TIMES = ("date", "time", "timestamp", "datetime", "ds", "day", "month", "unnamed: 0", "")
NAMES = ("symbol", "ticker", "unique_id", "series")
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "-", "?", "."})

Times = NDArray[Any]  # of datetime64[us], or of float64 where steps are numbered

_YEAR = r"(?P<year>(?:18|19|20|21)\d\d)"
_TIME = r"(?:[ T](?P<time>.+))?"
_APART = re.compile(rf"{_YEAR}(?P<sign>[-/.])(?P<month>\d\d?)(?:(?P=sign)(?P<day>\d\d?))?{_TIME}")
_TOGETHER = re.compile(rf"{_YEAR}(?P<month>\d\d)(?P<day>\d\d){_TIME}")
_US = np.timedelta64(1, "us")
_DAY = 86_400.0  # seconds
_NAMED_STEPS = {1.0: "second", 60.0: "minute", 3600.0: "hour", _DAY: "day", 7 * _DAY: "week"}
_EVEN = 0.01  # how far, as a share of the usual step, a step may be off it


@dataclass(frozen=True)
class Spacing:
    """How far apart the steps of a series are.

    `step` is in words; `season` is the number of steps in a usual cycle (a day of hours, a week of days, a year of
    months), or None if the times do not determine it.
    """

    step: str | None
    season: int | None
    notes: tuple[str, ...] = ()


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
    first, last = (None if series.times is None else format_time(series.times[step]) for step in (0, -1))
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
        if columns is None:
            if not others:
                raise DataError(f"{self.path}: there is no column of numbers besides {', '.join(self.header)}")
            return others
        chosen = []
        for name in columns:
            exact = [place for place in others if self.header[place] == name]
            alike = [place for place in others if self.header[place].casefold() == name.casefold()]
            if not exact and len(alike) != 1:
                raise DataError(f"{self.path}: {unknown('column', name, [self.header[place] for place in others])}")
            chosen += exact or alike
        return chosen

    def series(self) -> Iterator[Series]:
        """Yield the series in the order in which they begin."""
        by_name: dict[str, tuple[array[float], list[str], array[int]]] = {}  # in little memory
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
            numbers, times, lines = by_name.setdefault(name, (array("d"), [], array("i")))
            numbers.extend(self._number(cells[place], place, line) for place in self._channels)
            times.append(" ".join(cells[place] for place in self._time))
            lines.append(line)
        if not by_name:
            raise DataError(f"{self.path}: there is no row below the header")
        for name, rows in by_name.items():
            yield self._whole(name, *rows)

    def _number(self, cell: str, place: int, line: int) -> float:
        try:
            return parse_number(cell)
        except ValueError as error:
            others = [self.header[other] for other in self._channels if other != place]
            choice = f"; to leave the column out: --columns {','.join(others)}" if others else ""
            raise DataError(f"{self.path}:{line}: the column {self.header[place]!r} holds {error}{choice}") from None

    def _whole(self, name: str, numbers: Sequence[float], cells: Sequence[str], numbered: Sequence[int]) -> Series:
        lines = np.array(numbered, np.int32)
        values = np.array(numbers, np.float64).reshape(len(lines), -1)
        place: Callable[[int], str] = lambda row: f"{self.path}:{lines[row]}"  # noqa: E731
        if not self._time:
            return Series(name, self.columns, values, None, lines, str(self.path), Spacing(None, None))
        times = read_times(cells, place)
        notes: tuple[str, ...] = ()
        if descending(times):
            times, values, lines = times[::-1].copy(), values[::-1].copy(), lines[::-1].copy()
            notes = ("the newest step stood first; the series was turned round",)
        check_order(times, place)
        spaced = spacing(times)
        spaced = replace(spaced, notes=notes + spaced.notes)
        return Series(name, self.columns, values, times, lines, str(self.path), spaced)


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


def read_times(cells: Sequence[str], place: Any) -> Times:
    """Parse dates or step numbers. `place(row)` names the line of a row for messages."""
    if cells and _matched(cells[0]) is None:
        return np.array([_step(cell, place(row)) for row, cell in enumerate(cells)], np.float64)
    dates = [_date(cell, place(row)) for row, cell in enumerate(cells)]
    zoned = [date.tzinfo is not None for date in dates]
    if any(zoned) and not all(zoned):
        row = zoned.index(not zoned[0])
        raise DataError(f"{place(row)}: {cells[row]!r}: some dates have a time zone and some have none")
    naive = [date.astimezone(UTC).replace(tzinfo=None) if date.tzinfo else date for date in dates]
    return np.array(naive, "datetime64[us]")


def _step(cell: str, place: str) -> float:
    try:
        number = float(cell)
    except ValueError:
        number = np.nan
    if not np.isfinite(number):
        raise DataError(
            f"{place}: {cell!r:.100} is not a date; dates are written 2013-03-01, 2013/03/01, 20130301 or "
            "2013-03-01 16:30:00, and steps as numbers"
        )
    return number


def _matched(cell: str) -> re.Match[str] | None:
    return _APART.fullmatch(cell.strip()) or _TOGETHER.fullmatch(cell.strip())


def _date(cell: str, place: str) -> datetime:
    try:
        if (match := _matched(cell)) is None:
            raise ValueError
        time = match["time"] or "00:00"
        time = f"0{time}" if time[1:2] == ":" else time
        return datetime.fromisoformat(f"{match['year']}-{match['month']:0>2}-{match['day'] or '01':0>2}T{time}")
    except ValueError:
        raise DataError(f"{place}: {cell!r:.100} is not a date as in earlier lines, such as 2013-03-01") from None


def descending(times: Times) -> bool:
    """Return True if the newest step comes first, as in many files of prices."""
    return len(times) > 1 and bool((times[1:] < times[:-1]).all())


def check_order(times: Times, place: Any) -> None:
    """Raise a DataError at the first time that repeats or comes before its predecessor."""
    _, first, inverse, counts = np.unique(times, return_index=True, return_inverse=True, return_counts=True)
    if (counts > 1).any():
        row = int(np.flatnonzero(np.arange(len(times)) != first[inverse])[0])
        raise DataError(
            f"{place(row)}: {format_time(times[row])} occurred before, at {place(int(first[inverse[row]]))}. "
            "If these are several series, a column 'symbol' or 'unique_id' must tell them apart"
        )
    wrong = np.flatnonzero(times[1:] < times[:-1])
    if len(wrong):
        row = int(wrong[0]) + 1
        raise DataError(
            f"{place(row)}: {format_time(times[row])} comes after {format_time(times[row - 1])}; "
            "sort the rows by their time"
        )


def format_time(time: Any) -> str:
    """Return a time as people write it."""
    if isinstance(time, np.datetime64):
        return str(time.astype("datetime64[s]").item()).removesuffix(" 00:00:00")
    return f"{time:g}"


def spacing(times: Times) -> Spacing:
    """Return the typical step, with notes on irregularities."""
    if len(times) < 3:
        return Spacing(None, None)
    if times.dtype.kind != "M":
        typical = float(np.median(np.diff(times)))
        return Spacing(f"{typical:g}", None, tuple(_gaps(times, np.diff(times), typical, f"{typical:g}")))
    if (months := _in_months(times)) is not None:
        typical = float(np.median(np.diff(months)))
        step = {1.0: "month", 3.0: "quarter", 12.0: "year"}.get(typical, f"{typical:g} months")
        season = round(12 / typical) if typical < 12 and 12 % typical == 0 else None
        return Spacing(step, season, tuple(_gaps(times, np.diff(months).astype(np.float64), typical, step)))
    seconds = np.diff(times) / _US / 1e6
    typical = float(np.median(seconds))
    if typical == _DAY and np.is_busday(times.astype("datetime64[D]")).all():
        return Spacing("business day", 5, tuple(_without_trading(times)))
    day = _DAY / typical
    season = {_DAY: 7, 7 * _DAY: 52}.get(typical, round(day) if typical < _DAY and day == round(day) else None)
    step = _NAMED_STEPS.get(typical) or (f"{typical / 60:g} minutes" if typical >= 60 else f"{typical:g} seconds")
    return Spacing(step, season, tuple(_gaps(times, seconds, typical, step)))


def _in_months(times: Times) -> NDArray[np.int64] | None:
    """Return the times as numbers of months if all are on the same day of the month or on its last, else None."""
    months = times.astype("datetime64[M]")
    within = times - months.astype(times.dtype)
    left = (months + 1).astype(times.dtype) - times
    same = (within == within[0]).all() or (left == left[0]).all()
    return months.astype(np.int64) if same and (np.diff(months.astype(np.int64)) > 0).all() else None


def _without_trading(times: Times) -> list[str]:
    """Count business days without a row; weekends are no gaps in daily prices."""
    days = times.astype("datetime64[D]")
    missing = np.busday_count(days[:-1], days[1:]) - 1
    if not missing.any():
        return []
    longest = int(missing.argmax())
    return [
        f"{missing.sum():,} business days have no row (holidays, as a rule); the most in a row are "
        f"{missing[longest]:,}, after {format_time(times[longest])}"
    ]


def _gaps(times: Times, steps: NDArray[np.float64], typical: float, step: str) -> list[str]:
    long, short = steps > typical * (1 + _EVEN), steps < typical * (1 - _EVEN)
    notes = []
    if long.any():
        largest = int(steps.argmax())
        notes.append(
            f"{long.sum():,} gaps: steps longer than the usual one ({step}); the largest, {steps[largest] / typical:g} "
            f"times as long, is after {format_time(times[largest])}"
        )
    if short.any():
        notes.append(f"{short.sum():,} steps are shorter than the usual one ({step})")
    if notes:
        notes.append("steps are read as evenly spaced; nothing is filled in")
    return notes
