"""Texts with a class each, from tables and JSON lines, one by one."""

from __future__ import annotations

import codecs
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import DataError
from .columns import Columns, Places
from .readers.files import InputFile
from .readers.find import walk
from .readers.jsonl import ARRAY, array_hint, is_jsonl
from .readers.tables import Row, looks_tabbed
from .readers.tables import quoted as quoted_rows
from .report import SplitReport, TextReport

TABS, COMMAS, LINES = (".tsv", ".tab", ".txt"), (".csv",), (".jsonl", ".ndjson")
ENDINGS = (*TABS, *COMMAS, *LINES)


@dataclass(frozen=True, slots=True)
class Labelled:
    """A text, or two that belong together, their class, and where they stood."""

    text: str
    second: str | None
    label: str
    file: str
    line: int

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.text,) if self.second is None else (self.text, self.second)

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


class Found(NamedTuple):
    """What a row holds in the columns asked for, as it stands there: JSON may have anything under a label."""

    file: InputFile
    line: int
    texts: list[str]
    label: Any


def labelled_files(paths: Iterable[str | Path], reading: SplitReport | None = None) -> list[Path]:
    """Every file to read for these paths. In a folder, only the known endings count; packed or not."""
    found: dict[Path, Path] = {}  # by where they really are
    for path in map(Path, paths):
        if not path.exists():
            raise DataError(f"{path}: no such file or folder")
        for file in walk(path) if path.is_dir() else [path]:
            if path.is_dir() and _ending(file) not in ENDINGS:
                if reading is not None:
                    reading.skip("not recognised", str(file))
            elif file.resolve() not in found:
                found[file.resolve()] = file
            elif not path.is_dir():
                raise DataError(f"{file}: the file is given twice")
    if not found:
        raise DataError(f"no table of texts was given; the endings read are {', '.join(ENDINGS)}")
    return list(found.values())


def read_labelled(
    paths: str | Path | Iterable[str | Path],
    *,
    columns: Sequence[str] | None = None,
    reading: TextReport | None = None,
) -> Iterator[Labelled]:
    """The labelled texts of files and folders, streamed; `reading` is told what is found and what is left out.

    Without `columns` (see Columns.of), a header or the keys of JSON lines say where text and label are.

    >>> read_labelled("reviews.csv", columns=("review", "stars"))
    """
    reading = TextReport() if reading is None else reading
    given = [paths] if isinstance(paths, str | Path) else paths
    chosen = Columns.of(columns)
    return _labelled(read_rows(given, chosen, reading), reading)


def read_rows(paths: Iterable[str | Path], columns: Columns, reading: SplitReport) -> Iterator[Found]:
    """The rows of files and folders, streamed; `reading` is told of files, and of rows that are none."""
    return _stream([InputFile(path, reading) for path in labelled_files(paths, reading)], columns)


def in_order(labels: Iterable[str]) -> tuple[str, ...]:
    """Every label once, sorted; where all are numbers, by what they are worth."""
    names = sorted(set(labels))
    worth = [_number(name) for name in names]
    if any(value is None for value in worth):
        return tuple(names)
    return tuple(name for _, name in sorted(zip(worth, names, strict=True)))


def _number(name: str) -> float | None:
    try:
        value = float(name)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _labelled(rows: Iterable[Found], reading: TextReport) -> Iterator[Labelled]:
    for row in rows:
        for found in _kept(row.file, row.line, row.texts, _label(row.file, row.line, row.label)):
            reading.keep("\t".join(found.texts), label=found.label)
            yield found


def _stream(files: Sequence[InputFile], columns: Columns) -> Iterator[Found]:
    for file in files:
        name, read = _recognised(file)
        file.begin(name)
        yield from read(file, columns)


def _ending(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _recognised(file: InputFile) -> tuple[str, Callable[[InputFile, Columns], Iterator[Found]]]:
    """By content where that is certain, then by name."""
    head, ending = file.head().removeprefix(codecs.BOM_UTF8), _ending(file.path)
    if not head.strip():
        raise file.error("the file is empty")
    if is_jsonl(head) or ending in LINES:
        return "JSON lines", _of_lines
    if ARRAY.match(head):
        raise file.error(array_hint(file.path))
    tabbed = looks_tabbed(head)
    if ending in COMMAS and not (tabbed and b"," not in head.lstrip().split(b"\n")[0]):
        return "comma-separated text", lambda file, columns: _of_table(file, columns, quoted_rows(file))
    if tabbed or ending in (".tsv", ".tab"):
        return "tab-separated text", lambda file, columns: _of_table(file, columns, _tabbed_rows(file))
    raise file.error(f"not a table of texts: its lines have no tabs; the endings read are {', '.join(ENDINGS)}")


def _tabbed_rows(file: InputFile) -> Iterator[Row]:
    return ((line.number, line.text.split("\t"), line.fault) for line in file.sentences())


def _of_table(file: InputFile, columns: Columns, rows: Iterable[Row]) -> Iterator[Found]:
    places, width = None, 0
    for number, cells, fault in rows:
        if fault or not any(cell.strip() for cell in cells):
            file.drop(fault or "empty", number)
            continue
        if places is None:
            width, header = len(cells), columns.in_header(cells)
            places = _agreed(file, number, cells, header, columns)
            if header is not None:
                continue
        if len(cells) != width:
            file.drop("too few columns" if len(cells) < width else "too many columns", number)
            continue
        yield Found(file, number, [cells[place] for place in places.texts], cells[places.label])


def _agreed(file: InputFile, number: int, cells: Sequence[str], header: Places | None, columns: Columns) -> Places:
    ordered = columns.in_order()
    if ordered is not None and max(ordered.label, *ordered.texts) >= len(cells):
        raise file.error(f"--columns {','.join(columns.order)}: there are only {len(cells)} columns", number)
    if header is not None and ordered is not None and header != ordered:
        asked = ",".join(columns.order)
        raise file.error(f"the header names the columns {','.join(cells)}, but {asked} was asked for", number)
    places = header or ordered
    if places is None:
        raise file.error(columns.missing(cells), number)
    return places


def _of_lines(file: InputFile, columns: Columns) -> Iterator[Found]:
    """The first object's keys are those of all; what is null or not there is missing."""
    texts: list[str] | None = None
    label = ""
    for line in file.lines():
        if line.fault or not line.text.strip():
            file.drop(line.fault or "empty", line.number)
            continue
        row = _object(file, line.number, line.text)
        if texts is None:
            keys = list(row)
            places = columns.in_header(keys)
            if places is None:
                raise file.error(columns.missing(keys), line.number)
            texts, label = [keys[place] for place in places.texts], keys[places.label]
        values = [row.get(key) for key in texts]
        for key, value in zip(texts, values, strict=True):
            if not isinstance(value, str | None):
                raise file.error(f"a text was expected under {key!r}, not {type(value).__name__}", line.number)
        yield Found(file, line.number, [value or "" for value in values], row.get(label))


def _object(file: InputFile, number: int, text: str) -> dict[str, Any]:
    try:
        row = json.loads(text)
    except RecursionError:
        raise file.error("the JSON is nested too deeply", number) from None
    except ValueError as error:
        raise file.error(f"not JSON: {error}", number) from None
    if not isinstance(row, dict):
        raise file.error(f"a JSON object was expected, not {type(row).__name__}", number)
    return row


def _label(file: InputFile, number: int, value: Any) -> str:
    if isinstance(value, list | dict):
        raise file.error(f"one label was expected, not a {type(value).__name__}; a text has one class here", number)
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _kept(file: InputFile, number: int, texts: Sequence[str], label: str) -> Iterator[Labelled]:
    try:
        "".join((*texts, label)).encode()
    except UnicodeEncodeError:
        raise file.error("half a surrogate pair stands in it; it was damaged where it was written", number) from None
    if not all(text.strip() for text in texts):
        file.drop("empty text", number)
    elif not label.strip():
        file.drop("no label", number)
    else:
        pair = file.pair(texts[0], label.strip(), number)
        yield Labelled(pair.source, texts[1] if len(texts) > 1 else None, pair.target, pair.file, pair.line)
