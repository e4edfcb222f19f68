"""Files to read: found in folders, opened (unpacked where compressed), cut into lines and rows, their faults named.

Nothing here holds more than a piece of a file, however large it is or unpacks to, except for a JSON array.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import json
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from ...errors import DataError
from ..pairs import Pair
from ..report import FileReport, SplitReport
from ..tokenizer import check_unicode

MAX_BYTES = 1 << 20  # of one line, one text, one tag: what is longer cannot be a sentence
MAX_JSON_BYTES = 2 << 30  # of a JSON file that is read as a whole; SQuAD 2.0 has 42 MB
ARRAY = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s*\{")  # the beginning of a list of JSON objects
GZIP_MAGIC = b"\x1f\x8b"
_CUT_SHORT = "the compressed file ends too early; it was cut off when it was copied or downloaded"


class OtherLanguageError(DataError):
    """A good file that holds other languages; in a folder it is left out."""


class Line(NamedTuple):
    """A line without its end. If it cannot be used, `fault` says why and the text is empty."""

    number: int
    text: str
    fault: str = ""


class TableRow(NamedTuple):
    """A row of a table: its first line, its cells and, if it cannot be used, the reason."""

    number: int
    cells: list[str]
    fault: str = ""


class InputFile:
    """One input file. Readers report to it what they read and drop."""

    def __init__(self, path: Path, reading: SplitReport, folder: Path | None = None) -> None:
        self.path = path
        self.name = str(path)
        self.folder = folder  # the folder given, where the file was found in one
        self._reading = reading
        self._read = FileReport(self.name, "")
        self._drops: Counter[str] = Counter()

    def beside(self, path: Path) -> InputFile:
        """Return another file that is read together with this one."""
        return InputFile(path, self._reading, self.folder)

    def begin(self, format_name: str) -> None:
        """Add the file to those read."""
        self._read.format = format_name
        self._reading.files.append(self._read)

    def pair(self, source: str, target: str, line: int) -> Pair:
        self._read.count += 1
        return Pair(source, target, self.name, line)

    def drop(self, reason: str, line: int) -> None:
        """Count an example that cannot be used."""
        self._read.count += 1
        self._drops[reason] += 1
        self._reading.drop(reason, f"{self.name}:{line}")

    def tell(self, note: str = "", caution: str = "") -> None:
        """Report how the file is read, and what is probably wrong with that."""
        if note:
            self._reading.note(note, self.name)
        if caution:
            self._reading.cautions.append(f"{self.name}: {caution}")

    def withdraw(self, reason: str) -> None:
        """Remove the file from the report again, with everything it dropped."""
        self._reading.files.remove(self._read)
        for dropped, count in self._drops.items():
            self._reading.forget(dropped, count, f"{self.name}:")
        self._reading.skip(reason, self.name)

    def error(self, message: str, line: int | None = None) -> DataError:
        return DataError(f"{self.name}{'' if line is None else f':{line}'}: {message}")

    def check_unicode(self, line: int, *texts: str) -> None:
        try:
            check_unicode(*texts)
        except DataError as error:
            raise self.error(str(error), line) from None

    def head(self, size: int = 1 << 16) -> bytes:
        with opened(self.path) as stream:
            return stream.read(size)

    def lines(self, encoding: str = "utf-8") -> Iterator[Line]:
        with opened(self.path) as stream:
            yield from split_lines(stream, self.name, encoding)

    def sentences(self) -> Iterator[Line]:
        """Yield lines that are sentences. A carriage return inside means several: old line ends."""
        for line in self.lines():
            yield Line(line.number, "", "carriage return inside") if "\r" in line.text else line

    def tabbed_rows(self) -> Iterator[TableRow]:
        return (TableRow(line.number, line.text.split("\t"), line.fault) for line in self.sentences())

    def quoted_rows(self, delimiter: str = ",") -> Iterator[TableRow]:
        """Yield rows of cells, with quotes around cells that contain the delimiter, quotes or line ends."""
        return csv_rows(self.lines(), self.name, delimiter)

    def filled_rows(self, rows: Iterable[TableRow]) -> Iterator[tuple[int, list[str]]]:
        """Yield the rows that are not empty; drop the others."""
        for number, cells, fault in rows:
            if fault or not any(cell.strip() for cell in cells):
                self.drop(fault or "empty", number)
            else:
                yield number, cells

    def json_rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the JSON object of every line, or the objects of an array; drop empty and too long lines."""
        rows: Iterable[tuple[int, Any]]
        if ARRAY.match(self.head()):
            rows = enumerate(self.whole_json(), 1)
        else:
            lines = (TableRow(line.number, [line.text], line.fault) for line in self.lines())
            rows = ((number, parse_json(text, f"{self.name}:{number}")) for number, (text,) in self.filled_rows(lines))
        for number, row in rows:
            if not isinstance(row, dict):
                raise self.error(f"a JSON object was expected, not {type(row).__name__}", number)
            yield number, row

    def whole_json(self) -> Any:
        """Parse a JSON file that is one value, which takes a multiple of its size in memory."""
        with opened(self.path) as stream:
            raw = stream.read(MAX_JSON_BYTES + 1)
        if len(raw) > MAX_JSON_BYTES:
            raise self.error(f"a JSON file of more than {MAX_JSON_BYTES >> 30} GiB; write one object a line (.jsonl)")
        return parse_json(raw, self.name)

    def chunks(self, size: int = 1 << 16) -> Iterator[bytes]:
        with opened(self.path) as stream:
            yield from iter(lambda: stream.read(size), b"")


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file, unpacked if its content is gzip, whatever its name."""
    try:
        with path.open("rb") as raw:
            packed = raw.peek(2)[:2] == GZIP_MAGIC
            yield cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if packed else raw
    except EOFError:
        raise DataError(f"{path}: {_CUT_SHORT}") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: the compressed file is damaged ({error})") from None
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from None


def split_lines(stream: BinaryIO, name: str, encoding: str = "utf-8", *, strict: bool = True) -> Iterator[Line]:
    """Yield the numbered lines. Only a newline ends one; a carriage return before it is removed, as is a BOM.

    A line that cannot be decoded is an error, or without `strict` a line with that fault.
    """
    number = 0
    while raw := stream.readline(MAX_BYTES):
        number += 1
        if len(raw) == MAX_BYTES and not raw.endswith(b"\n"):
            while (rest := stream.readline(MAX_BYTES)) and not rest.endswith(b"\n"):
                pass
            yield Line(number, "", "too long")
            continue
        if number == 1:
            if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                raise DataError(f"{name}: the text is UTF-16; convert it: iconv -f UTF-16 -t UTF-8 {name}")
            raw = raw.removeprefix(codecs.BOM_UTF8)
        raw = raw.removesuffix(b"\n").removesuffix(b"\r")
        try:
            yield Line(number, raw.decode(encoding))
        except UnicodeDecodeError as error:
            fault = _not_text(raw, error)
            if strict:
                raise DataError(f"{name}:{number}: {fault}") from None
            yield Line(number, "", fault)


def csv_rows(lines: Iterable[Line], name: str, delimiter: str = ",") -> Iterator[TableRow]:
    """Yield rows of quoted cells. The csv module limits a cell to 128 KiB, so an open quote cannot swallow a file."""

    def texts() -> Iterator[str]:
        for line in lines:
            if line.fault:
                raise DataError(f"{name}:{line.number}: the line is over 1 MiB long")
            yield f"{line.text}\n"

    rows = csv.reader(texts(), delimiter=delimiter, strict=True)
    number = 1
    try:
        for cells in rows:
            yield TableRow(number, cells)
            number = rows.line_num + 1
    except csv.Error as error:
        raise DataError(f"{name}:{number}: the row cannot be read: {error}; is a quote left open?") from None


def parse_json(raw: str | bytes, place: str) -> Any:
    """Parse JSON; a DataError names the place of invalid JSON."""
    try:
        return json.loads(raw)
    except RecursionError:
        raise DataError(f"{place}: the JSON is nested too deeply") from None
    except ValueError as error:
        raise DataError(f"{place}: not JSON: {error}") from None


def suffix_of(path: Path) -> str:
    """Return the lower-case ending of a file name, ignoring .gz."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def walk(folder: Path, pass_over: Callable[[Path], object] = lambda _: None) -> Iterator[Path]:
    """Yield the visible files of a folder and its subfolders, sorted.

    `pass_over` is called with everything that is neither a file nor a folder, such as a broken link or a pipe.
    """

    def refuse(error: OSError) -> None:
        raise DataError(f"{error.filename}: {error.strerror}") from None

    for place, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(place, name)
            if name.startswith("."):
                continue
            if path.is_file():
                yield path
            else:
                pass_over(path)


def find_files(
    paths: Iterable[str | Path], endings: Sequence[str], report: SplitReport | None, what: str = ""
) -> list[Path]:
    """Return every file once. In a folder only files with these endings count, packed or not; a named file always does.

    If there is none and `what` names what is missing, raise a DataError.
    """
    report = SplitReport() if report is None else report
    files: dict[Path, Path] = {}  # by where they really are
    for path in map(Path, paths):
        for file in walk(path) if path.is_dir() else [path]:
            if path.is_dir() and suffix_of(file) not in endings:
                report.skip("not recognized", str(file))
            elif file.resolve() not in files:
                if not file.is_file():
                    raise DataError(f"{file}: {'neither a file nor a' if file.exists() else 'no such file or'} folder")
                files[file.resolve()] = file
            elif not path.is_dir():
                raise DataError(f"{file}: the file is given twice")
    if what and not files:
        raise DataError(f"no {what} was given; supported file endings are {', '.join(endings)}")
    return list(files.values())


def every_line(source: str | Path | BinaryIO) -> Iterator[Line]:
    """Yield every line of a file or a binary stream, empty ones too; `fault` says why a line cannot be used."""
    if isinstance(source, str | Path):
        with opened(Path(source)) as stream:
            yield from every_line(stream)
        return
    for line in split_lines(source, name_of(source), strict=False):
        yield Line(line.number, "", "the line is too long (over 1 MiB)") if line.fault == "too long" else line


def lines_of(source: str | Path | BinaryIO) -> Iterator[str]:
    """Yield every line as a string; a line that cannot be used is an error."""
    for line in every_line(source):
        if line.fault:
            raise DataError(f"{name_of(source)}:{line.number}: {line.fault}")
        yield line.text


def name_of(source: str | Path | BinaryIO) -> str:
    """Return the name of a source for messages."""
    return str(source) if isinstance(source, str | Path) else getattr(source, "name", "input")


def _not_text(raw: bytes, error: UnicodeDecodeError) -> str:
    wrong = f"byte {raw[error.start]:#04x} at {error.start + 1} is not {error.encoding.upper()}"
    try:
        korean = re.search("[가-힣]", raw.decode("cp949"))
    except UnicodeDecodeError:
        korean = None
    if korean:
        return f"{wrong}; the line reads as CP949 (EUC-KR): convert the file with iconv -f CP949 -t UTF-8"
    return f"{wrong}; convert the file to UTF-8"
