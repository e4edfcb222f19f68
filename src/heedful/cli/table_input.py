"""Tables as the input of `heedful predict`: the columns that a model reads, and a line of output for each row."""

import json
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ..data.readers.files import InputFile, Line, TableRow, csv_rows, every_line, suffix_of
from ..data.readers.tables import looks_tabbed
from ..data.report import SplitReport
from ..errors import DataError

JSON_LINES = (".jsonl", ".ndjson")
ENDINGS = (".tsv", ".tab", ".csv", *JSON_LINES)
CATALOGS = (".po", ".pot", ".mo", ".gmo")
N_SAMPLED = 20  # rows that tell which columns of a table without names hold labels


def check_kind(path: Path) -> None:
    """Raise a DataError for a file whose lines are no texts."""
    if suffix_of(path) in CATALOGS:
        table = path.with_suffix(".csv").name
        raise DataError(
            f"{path} is a gettext catalog, whose lines are no texts; make a table of it, with a column named source, "
            f"and give that to predict: po2csv {path} {table} (of translate-toolkit), then heedful predict … {table}"
        )


def is_table(path: Path) -> bool:
    """Return whether a file is a table by its name."""
    return suffix_of(path) in ENDINGS


def table_lines(path: Path, predictor: Any) -> tuple[str, Iterator[Line]]:
    """Return in words which columns are read, and for each row its text, or two with a tab between them.

    Of a tabbed table without names, a model of two texts reads the lines: they have a tab between the texts already.
    """
    file = InputFile(path, SplitReport())
    rows = _rows(file)
    sample = list(islice(rows, N_SAMPLED))
    header = sample[0].cells if sample else []
    columns = predictor.text_columns(header)
    if columns is not None:
        named, sample = ", ".join(header[column].strip() for column in columns), sample[1:]
        ignored = ", ".join(name.strip() for place, name in enumerate(header) if place not in columns)
        note = f"{path}: reads {named}" + (f", not {ignored}" if ignored else "")
    elif predictor.takes_pairs and _is_tabbed(file):
        return "", every_line(path)
    else:
        columns = _unnamed_columns(path, [row.cells for row in sample if any(row.cells)], predictor)
        numbers = " and ".join(str(column + 1) for column in columns)
        note = f"{path}: reads column {numbers} of {len(header)}" if len(header) > len(columns) else ""
    return note, (_line(row, columns) for row in chain(sample, rows))


def _unnamed_columns(path: Path, cells: Sequence[Sequence[str]], predictor: Any) -> tuple[int, ...]:
    """Return the columns that hold no labels of the model, or the first one, where training has the source."""
    labels, n_texts = set(getattr(predictor.settings, "labels", ())), 1 + predictor.takes_pairs
    width = min(map(len, cells), default=1)
    texts = tuple(column for column in range(width) if not labels.issuperset(row[column].strip() for row in cells))
    if len(texts) == n_texts or (predictor.generates_text and texts) or not cells:
        return texts[:n_texts] or (0,)
    expected = " and ".join(predictor.column_names[0])
    raise DataError(
        f"{path}: none of the columns {', '.join(cells[0])[:100]} is named as a text's usually is; name what the "
        f"model should read in a first line: {expected}"
    )


def _rows(file: InputFile) -> Iterator[TableRow]:
    """Yield all rows, empty ones too; of JSON lines first the keys of the first object, then the values."""
    if suffix_of(file.path) in JSON_LINES:
        yield from _json_rows(file)
    elif _is_tabbed(file):
        yield from file.tabbed_rows()
    else:
        first = _first_line(file.head())
        yield from csv_rows(file.lines(), file.name, ";" if first.count(b";") > first.count(b",") else ",")


def _is_tabbed(file: InputFile) -> bool:
    """Return whether tabs are between the cells of a table."""
    ending, head = suffix_of(file.path), file.head()
    if ending == ".csv":
        return looks_tabbed(head) and b"," not in _first_line(head)
    return ending not in JSON_LINES


def _first_line(head: bytes) -> bytes:
    return head.lstrip().split(b"\n")[0]


def _json_rows(file: InputFile) -> Iterator[TableRow]:
    keys: list[str] | None = None
    for line in file.lines():
        try:
            row = json.loads(line.text) if line.text.strip() else {}
        except (ValueError, RecursionError):
            row = None
        row = row.get("translation", row) if isinstance(row, dict) else row
        if not isinstance(row, dict):
            yield TableRow(line.number, [], line.fault or "not a JSON object")
            continue
        if keys is None and row:
            keys = list(row)
            yield TableRow(0, keys)
        values = [row.get(key) for key in keys or ()]
        cells = [" ".join(map(str, value)) if isinstance(value, list) else str(value or "") for value in values]
        yield TableRow(line.number, cells, line.fault)


def _line(row: TableRow, columns: Sequence[int]) -> Line:
    if row.fault or not any(row.cells):
        return Line(row.number, "", row.fault)
    if len(row.cells) <= max(columns):
        return Line(row.number, "", f"{len(row.cells)} columns, and column {max(columns) + 1} is read")
    texts = [row.cells[column] for column in columns]
    return Line(row.number, texts[0] if len(texts) == 1 else "\t".join(text.replace("\t", " ") for text in texts))
