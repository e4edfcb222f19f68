"""The times of a series: how they are written, in which order they stand, and how far apart.

A series is read as evenly spaced, whatever its dates say: nothing is filled in and nothing is left out. Where that is
not the truth (gaps, an irregular step), a note says so.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError

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
