"""Tables: a pair a row, further columns left alone, a header that names the languages understood."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator

from heedful.data.pairs import Pair

from .files import InputFile, OtherLanguageError
from .languages import Languages

Row = tuple[int, list[str], str]  # the line it begins on, its columns, and why it cannot be used


def looks_tabbed(head: bytes) -> bool:
    """Whether every line has a tab, as far as can be seen. Likely, never certain: prose may hold tabs too."""
    *lines, last = [line for line in head.split(b"\n") if line.strip()] or [b""]
    return all(b"\t" in line for line in lines or [last])  # the last one may be cut off


def read_tabs(file: InputFile, languages: Languages) -> Iterator[Pair]:
    """A row a line, its columns between tabs."""
    rows = ((line.number, line.text.split("\t"), line.fault) for line in file.sentences())
    return _pairs(file, languages, rows, "tabs")


def read_commas(file: InputFile, languages: Languages) -> Iterator[Pair]:
    """As spreadsheets write it: commas, and quotes around what holds commas, quotes or line ends.

    More than two columns must be named: in such tables the source is seldom the first.
    """
    return _pairs(file, languages, quoted(file), "commas", unnamed=2)


def _pairs(
    file: InputFile, languages: Languages, rows: Iterable[Row], between: str, unnamed: int | None = None
) -> Iterator[Pair]:
    """Which columns: the header says it, or `columns`, or else the source comes first."""
    source, target = languages.places(languages.order) or (0, 1)
    started = False
    for number, columns, fault in rows:
        blank = not any(cell.strip() for cell in columns)
        if not started and not blank:
            started = True
            if header := languages.keys(columns):
                if languages.columns and header != (source, target):
                    asked, named = ",".join(languages.columns), ",".join(columns)
                    raise file.error(f"the header names the columns {named}, but {asked} was asked for", number)
                source, target = header
                continue
            if len(columns) < 2:
                raise file.error(f"one column; two or more were expected, with {between} between them", number)
            if unnamed and len(columns) > unnamed and not languages.columns:
                raise OtherLanguageError(
                    f"{file.name}:{number}: {len(columns)} columns, {','.join(columns)[:100]}, and none is named "
                    f"{languages}; say which they are: --columns {languages.source},{languages.target},…"
                )
        if fault or blank:
            file.drop(fault or "empty", number)
        elif len(columns) <= max(source, target):
            file.drop("too few columns", number)
        else:
            yield file.pair(columns[source], columns[target], number)


def quoted(file: InputFile) -> Iterator[Row]:
    """A text stops at the library's limit of 128 KiB, so that a quote left open does not swallow the file."""

    def lines() -> Iterator[str]:
        for line in file.lines():
            if line.fault:
                raise file.error("the line is over 1 MiB long", line.number)
            yield f"{line.text}\n"

    rows = csv.reader(lines(), strict=True)
    number = 1
    try:
        for columns in rows:
            yield number, columns, ""
            number = rows.line_num + 1
    except csv.Error as error:
        raise file.error(f"the row cannot be read: {error}; is a quote left open?", number) from None
