"""Tables of series: which columns, which dates, what is noted and what is refused; and the store they go into."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from heedful.data.report import SeriesReport
from heedful.data.series import ColumnScale, Series, SeriesStore, read_series
from heedful.errors import ConfigError, DataError

Read = Callable[..., tuple[Series, SeriesReport]]


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read(text: str, columns: Sequence[str] | None = None, name: str = "prices.csv") -> tuple[Series, SeriesReport]:
        reading = SeriesReport()
        (series,) = read_series([written(tmp_path / name, text)], columns=columns, reading=reading)
        return series, reading

    return read


def dated(dates: Sequence[str]) -> str:
    return "date,close\n" + "".join(f"{date},{place}\n" for place, date in enumerate(dates))


# Columns


def test_the_columns_of_numbers_are_the_channels(read: Read) -> None:
    series, reading = read("Date,Open,Close\n2013-03-01,1,2.5\n2013-03-04,-3,4e1\n")
    assert (series.name, series.columns) == ("prices", ("Open", "Close"))
    assert series.values.tolist() == [[1, 2.5], [-3, 40]]
    assert series.times is not None
    assert series.times.tolist() == np.array(["2013-03-01", "2013-03-04"], "datetime64[us]").tolist()
    assert series.place(1).endswith("prices.csv:3")
    assert reading.series[0]["steps"] == 2


@pytest.mark.parametrize(("columns", "rows"), [(["close", "open"], [[2, 1]]), (["Close"], [[2]])])
def test_columns_can_be_chosen_in_any_order_and_case(read: Read, columns: list[str], rows: list[list[int]]) -> None:
    assert read("date,Open,Close,remark\n2013-03-01,1,2,split\n", columns)[0].values.tolist() == rows


def test_a_missing_column_is_told_with_those_there_are(read: Read) -> None:
    with pytest.raises(DataError, match=r"unknown column 'clsoe' \(did you mean 'close'\?\); allowed: close, open$"):
        read("date,open,close\n2013-03-01,1,2\n", ["clsoe"])


@pytest.mark.parametrize("between", [",", "\t", ";"])
def test_commas_tabs_and_semicolons(read: Read, between: str) -> None:
    assert read("a,b\n1,2\n".replace(",", between))[0].values.tolist() == [[1, 2]]


def test_compressed_quoted_with_a_mark_and_other_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "p.csv.gz"
    path.write_bytes(gzip.compress('\ufeffdate,"close"\r\n"2013-03-01","1.5"\r\n\r\n'.encode()))
    (series,) = read_series([path])
    assert (series.name, series.columns, series.values.tolist()) == ("p", ("close",), [[1.5]])


@pytest.mark.parametrize("header", ["symbol", "Ticker", "unique_id"])
def test_a_column_of_names_makes_several_series(tmp_path: Path, header: str) -> None:
    text = f"date,{header},close\n2013-03-01,B,1\n2013-03-01,A,10\n2013-03-02,B,2\n2013-03-02,A,20\n"
    first, second = read_series([written(tmp_path / "p.csv", text)])
    assert (first.name, first.values.tolist(), first.lines.tolist()) == ("B", [[1], [2]], [2, 4])
    assert (second.name, second.values.tolist(), second.place(1)) == ("A", [[10], [20]], f"{tmp_path / 'p.csv'}:5")


def test_series_can_be_chosen_by_name(tmp_path: Path) -> None:
    path = written(tmp_path / "p.csv", "symbol,x\nAAPL,1\nIBM,2\nMSFT,3\n")
    reading = SeriesReport()
    assert [one.name for one in read_series([path], names=["MSFT", "AAPL"], reading=reading)] == ["MSFT", "AAPL"]
    assert [one["name"] for one in reading.series] == ["MSFT", "AAPL"]
    with pytest.raises(DataError, match=r"unknown series 'APPL'.*'AAPL'.*; allowed: AAPL, IBM, MSFT"):
        read_series([path], names=["APPL"])


def test_several_files_are_several_series_of_the_same_columns(tmp_path: Path) -> None:
    one, two = written(tmp_path / "a.csv", "x\n1\n"), written(tmp_path / "b.csv", "x\n2\n3\n")
    assert [(series.name, len(series)) for series in read_series([one, two])] == [("a", 1), ("b", 2)]
    with pytest.raises(DataError, match=r"c\.csv has the columns y, but .*a\.csv has x"):
        read_series([one, written(tmp_path / "c.csv", "y\n1\n")])
    with pytest.raises(DataError, match="the series 'a' was read before"):
        read_series([one, one])


# Cells


def test_what_was_not_observed_is_nan_and_counted(read: Read) -> None:
    series, reading = read("a,b\n1,NA\n,2\nnan,3\n4,N/A\n")
    np.testing.assert_array_equal(series.values, [[1, np.nan], [np.nan, 2], [np.nan, 3], [4, np.nan]])
    assert reading.series[0]["missing"] == 4
    assert "prices: a was not observed at 2 of 4 steps" in reading.notes


def test_an_empty_line_is_no_step_and_empty_cells_without_times_are(read: Read) -> None:
    assert read("a,b\n1,2\n\n,\n3,4\n")[0].lines.tolist() == [2, 4, 5]
    assert read("date,b\n2013-03-01,2\n,\n2013-03-02,4\n,\n")[0].lines.tolist() == [2, 4]
    assert read("a\n1\n\n2\n \n")[0].lines.tolist() == [2, 4]


def test_a_constant_is_noted(read: Read) -> None:
    assert read("a,b\n7,1\n7,2\n")[1].notes == ["prices: a is 7 at every step"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"prices\.csv: the file is empty"),
        ("\n\n", "the file is empty"),
        ("date,close\n", "there is no row below the header"),
        ("date\n2013-03-01\n", "no column of numbers besides date"),
        ("1.5,2\n3,4\n", r":1: the first line holds the number 1\.5, so it is not a header"),
        ("a,a\n1,2\n", ":1: the column 'a' occurs twice"),
        ("a,b\n1,2\n3,x\n", r":3: the column 'b' holds 'x', which is not a number; to leave .* --columns a$"),
        ("a\n1_000\n", "'1_000', which is not a number"),
        ('a,b\n1,"1,234.5"\n', r":2: the column 'b' holds '1,234\.5', with a comma; write numbers as 1234\.5"),
        ("a;b\n1,5;2\n", r"'1,5', with a comma"),
        ("a,b\n1,234,5\n", ":2: 3 cells under 2 columns; does a number hold a comma"),
        ("a,b\n1\n", ":2: 1 cells under 2 columns"),
        ("a\ninf\n", r"'inf', which is infinite"),
        ("a\n1e999\n", r"'1e999', which is infinite"),
        ("symbol,a\n,1\n", ":2: the row has no 'symbol'"),
        ('a\n"1\n', "is a quote left open"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(read: Read, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(text)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.csv: No such file"):
        read_series([tmp_path / "none.csv"])


# Dates


@pytest.mark.parametrize(
    "cell",
    [
        "2013-03-01",
        "2013/03/01",
        "2013/3/1",
        "2013.03.01",
        "20130301",
        "2013-03",
        "2013-03-01 00:00:00",
        "2013-03-01T00:00:00",
        "2013/3/1 0:00",
        "2013-03-01T00:00:00Z",
        "2013-03-01 01:00+01:00",
        "2013-03-01 00:00",
    ],
)
@pytest.mark.parametrize("header", ["date", "Timestamp", "DATETIME", "time", ""])
def test_one_day_written_in_many_ways(read: Read, cell: str, header: str) -> None:
    series, reading = read(f"{header},close\n{cell},1\n")
    assert series.times is not None
    assert str(series.times[0]) == "2013-03-01T00:00:00.000000"
    assert (series.columns, reading.series[0]["first"]) == (("close",), "2013-03-01")


def test_a_date_and_a_time_in_two_columns(read: Read) -> None:
    series, _ = read("date,time,close\n20130301,09:30,1\n20130301,09:31,2\n20130301,09:32,2\n")
    assert series.times is not None
    assert (str(series.times[1]), series.spacing.step) == ("2013-03-01T09:31:00.000000", "minute")


def test_steps_may_be_numbers_or_not_be_there(read: Read) -> None:
    numbered, _ = read("time,x\n0,1\n0.5,2\n1.0,3\n123456,4\n")
    assert numbered.times is not None
    assert (numbered.times.tolist(), numbered.spacing.step) == ([0, 0.5, 1, 123456], "0.5")
    bare, _ = read("x\n1\n2\n3\n")
    assert (bare.times, bare.spacing.step, bare.spacing.season) == (None, None, None)


@pytest.mark.parametrize(
    ("dates", "message"),
    [
        (["03/01/2013"], "'03/01/2013' is not a date; dates are written 2013-03-01"),
        (["2013-03-01", "soon"], ":3: 'soon' is not a date"),
        (["2013-02-30"], ":2: '2013-02-30' is not a date"),
        (["2013-03-01", "2013-03-02T00:00Z"], ":3: .* some dates have a time zone"),
        (["2013-03-01", "2013-03-02", "2013-03-01"], r":4: 2013-03-01 occurred before, at .*prices\.csv:2\. "),
        (["2013-03-01", "2013-03-03", "2013-03-02"], ":4: 2013-03-02 comes after 2013-03-03; sort the rows"),
        (["2013-03-03", "2013-03-01", "2013-03-02"], ":3: 2013-03-01 comes after 2013-03-03"),
        (["1", "nan"], ":3: 'nan' is not a date"),
    ],
)
def test_dates_that_cannot_be(read: Read, dates: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(dated(dates))


def test_the_newest_first_is_turned_round(read: Read) -> None:
    series, reading = read(dated(["2013-03-03", "2013-03-02", "2013-03-01"]))
    assert series.values[:, 0].tolist() == [2, 1, 0]
    assert series.times is not None
    assert (str(series.times[0])[:10], series.lines.tolist()) == ("2013-03-01", [4, 3, 2])
    assert "the newest step stood first" in reading.notes[0]


def days(first: str, count: int, unit: str = "D") -> list[str]:
    return [str(day) for day in np.datetime64(first) + np.arange(count).astype(f"timedelta64[{unit}]")]


@pytest.mark.parametrize(
    ("dates", "step", "season"),
    [
        (days("2016-07-01T00", 50, "h"), "hour", 24),
        ([f"2016-07-01 {hour:02}:{minute:02}:00" for hour in range(9) for minute in (0, 15, 30, 45)], "15 minutes", 96),
        (days("2016-07-01T00:00", 50, "m"), "minute", 1440),
        (days("2016-07-01", 30), "day", 7),
        ([day for day in days("2016-07-01", 30) if np.is_busday(np.datetime64(day))], "business day", 5),
        (days("2016-07-01", 30, "W")[:9], "week", 52),
        ([f"{year}-{month:02}-01" for year in (2015, 2016) for month in range(1, 13)], "month", 12),
        ([str((np.datetime64("2016-01") + n + 1).astype("datetime64[D]") - 1) for n in range(14)], "month", 12),
        ([f"{year}-{month:02}-15" for year in (2015, 2016) for month in (1, 4, 7, 10)], "quarter", 4),
        ([f"{year}-12-31" for year in range(1990, 2000)], "year", None),
    ],
)
def test_the_usual_step_and_its_season(read: Read, dates: list[str], step: str, season: int | None) -> None:
    series, reading = read(dated(dates))
    assert (series.spacing.step, series.spacing.season, reading.notes) == (step, season, [])


def test_weekends_are_no_gaps_and_holidays_are_counted(read: Read) -> None:
    dates = [day for day in days("2013-03-01", 40) if np.is_busday(np.datetime64(day))]
    for holiday in ("2013-03-28", "2013-03-29", "2013-03-12"):
        dates.remove(holiday)
    series, reading = read(dated(dates))
    assert series.spacing.step == "business day"
    assert reading.notes == [
        "prices: 3 business days have no row (holidays, as a rule); the most in a row are 2, after 2013-03-27"
    ]


def test_gaps_are_counted_and_the_largest_named_and_nothing_is_filled_in(read: Read) -> None:
    dates = days("2016-07-01T00", 48, "h")
    series, reading = read(dated(dates[:10] + dates[12:30] + dates[35:]))
    assert len(series) == 41
    assert reading.notes == [
        "prices: 2 gaps: steps longer than the usual one (hour); the largest, 6 times as long, "
        "is after 2016-07-02 05:00:00",
        "prices: steps are read as evenly spaced; nothing is filled in",
    ]


def test_a_month_that_is_missing_is_a_gap(read: Read) -> None:
    notes = read(dated([f"2016-{month:02}-01" for month in (1, 2, 3, 5, 6)]))[1].notes
    assert "1 gaps" in notes[0]
    assert "2 times as long, is after 2016-03-01" in notes[0]


def test_an_irregular_step_is_noted(read: Read) -> None:
    notes = read(dated(["2016-07-01", "2016-07-02", "2016-07-03", "2016-07-03 12:00", "2016-07-04 12:00"]))[1].notes
    assert notes[0] == "prices: 1 steps are shorter than the usual one (day)"


# The scale and the store


def test_a_scale_is_the_mean_and_the_deviation_of_what_was_observed() -> None:
    values = np.array([[1.0, 5.0, 4.0], [3.0, 5.0, np.nan], [8.0, 5.0, 6.0]])
    scale = ColumnScale.of(values)
    assert scale.location == (4.0, 5.0, 5.0)
    np.testing.assert_allclose(np.array(scale.width), np.array([np.std([1, 3, 8]), 1.0, 1.0]))
    np.testing.assert_allclose(scale.undo(scale.apply(values)), values)
    assert ColumnScale().apply(values) is values


def test_logarithms_come_first() -> None:
    values = np.array([[1.0], [np.e**2]])
    scale = ColumnScale.of(values, "log")
    np.testing.assert_allclose([scale.location, scale.width], [[1.0], [1.0]])
    np.testing.assert_allclose(scale.undo(scale.apply(values)), values)
    with pytest.raises(DataError, match="holds 0, and only what is above 0"):
        scale.apply(np.array([[1.0], [0.0]]))
    with pytest.raises(ConfigError, match="widths are above 0"):
        ColumnScale(location=(1.0,), width=(0.0,))


def test_a_store_says_what_was_read(tmp_path: Path) -> None:
    text = "symbol,date,x,y\n" + "".join(f"{s},2013-03-{d:02},{d},{d * d}\n" for s in "AB" for d in range(4, 9))
    series = read_series([written(tmp_path / "p.csv", text)])
    scale = ColumnScale.of(series[0].values)
    store = SeriesStore.write(tmp_path / "store", series, scale)
    np.testing.assert_allclose(scale.undo(store.values), np.concatenate([one.values for one in series]), rtol=1e-6)
    assert store.values.dtype == np.float32
    assert (store.columns, store.season, store.whole, store.scale) == (("x", "y"), 5, True, scale)
    assert [(store.owner(row).name, store.when(row)) for row in (0, 4, 5)] == [
        ("A", "2013-03-04"),
        ("A", "2013-03-08"),
        ("B", "2013-03-04"),
    ]
    assert store.place(6) == f"{tmp_path / 'p.csv'}:8"
    assert SeriesStore(tmp_path / "store").fingerprint == store.fingerprint


def test_a_store_that_was_changed_or_not_finished_is_none(tmp_path: Path) -> None:
    series = read_series([written(tmp_path / "p.csv", "x\n1\n\n2\n")])
    store = tmp_path / "store"
    SeriesStore.write(store, series, ColumnScale())
    (store / "values.bin").write_bytes(b"\0" * 8)
    with pytest.raises(DataError, match=r"values\.bin is not what was written"):
        SeriesStore(store)
    (store / "meta.json").unlink()
    with pytest.raises(DataError, match="there are no series"):
        SeriesStore(store)


def test_values_that_the_scale_cannot_hold(tmp_path: Path) -> None:
    series = read_series([written(tmp_path / "p.csv", "x\n1\n1e300\n")])
    with pytest.raises(DataError, match=r"p\.csv:3: a value is too large"):
        SeriesStore.write(tmp_path / "store", series, ColumnScale())
    series = read_series([written(tmp_path / "q.csv", "x\n1\n-2\n")])
    with pytest.raises(DataError, match=r"q\.csv:3: the column 'x' holds -2, and transform=log needs"):
        SeriesStore.write(tmp_path / "store", series, ColumnScale(transform="log"))
