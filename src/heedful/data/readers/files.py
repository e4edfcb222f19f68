"""A file to read: opened (unpacked where it is compressed), cut into lines, and answering for its own mistakes.

Nothing here holds more than a piece of a file, however large it is or unpacks to.
"""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from heedful.data.pairs import Pair
from heedful.data.report import FileReport, SplitReport
from heedful.errors import DataError

MAX_BYTES = 1 << 20  # of one line, one text, one tag: what is longer cannot be a sentence
GZIP_MAGIC = b"\x1f\x8b"
_CUT_SHORT = "the compressed file ends too early; it was cut off when it was copied or downloaded"


class OtherLanguageError(DataError):
    """A good file that holds other languages; in a folder it is left out."""


class Line(NamedTuple):
    """A line without its end. Where it cannot be used, `fault` says why and the text is empty."""

    number: int
    text: str
    fault: str = ""


class InputFile:
    """One file of pairs. Readers take it, and tell it what they leave out."""

    def __init__(self, path: Path, reading: SplitReport, folder: Path | None = None) -> None:
        self.path = path
        self.name = str(path)
        self.folder = folder  # the folder given, where the file was found in one
        self._reading = reading
        self._read = FileReport(self.name, "")
        self._drops: Counter[str] = Counter()

    def beside(self, path: Path) -> InputFile:
        """Another file that is read along with this one."""
        return InputFile(path, self._reading, self.folder)

    def begin(self, format_name: str) -> None:
        """From here on the file is among those read."""
        self._read.format = format_name
        self._reading.files.append(self._read)

    def pair(self, source: str, target: str, line: int) -> Pair:
        self._read.count += 1
        return Pair(source, target, self.name, line)

    def drop(self, reason: str, line: int) -> None:
        """Count a pair that was found and is of no use."""
        self._read.count += 1
        self._drops[reason] += 1
        self._reading.drop(reason, f"{self.name}:{line}")

    def withdraw(self, reason: str) -> None:
        """Nothing in it was wanted after all: the reading forgets what it dropped."""
        self._reading.files.remove(self._read)
        for dropped, count in self._drops.items():
            self._reading.forget(dropped, count, f"{self.name}:")
        self._reading.skip(reason, self.name)

    def error(self, message: str, line: int | None = None) -> DataError:
        return DataError(f"{self.name}{'' if line is None else f':{line}'}: {message}")

    def head(self, size: int = 1 << 16) -> bytes:
        """The first bytes."""
        with opened(self.path) as stream:
            return stream.read(size)

    def lines(self, encoding: str = "utf-8") -> Iterator[Line]:
        with opened(self.path) as stream:
            yield from split_lines(stream, self.name, encoding)

    def sentences(self) -> Iterator[Line]:
        """Lines that are sentences. With a carriage return inside, one line would mean several: old line ends."""
        for line in self.lines():
            yield Line(line.number, "", "carriage return inside") if "\r" in line.text else line

    def chunks(self, size: int = 1 << 16) -> Iterator[bytes]:
        with opened(self.path) as stream:
            while chunk := stream.read(size):
                yield chunk


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The file's bytes, unpacked if its content is gzip, whatever its name."""
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
    """Lines as numbers and text. Only a newline ends one; a carriage return before it goes, as does a BOM.

    A line that is no text is an error, or with `strict` off a line with that fault.
    """
    number = 0
    while raw := stream.readline(MAX_BYTES):
        number += 1
        if len(raw) == MAX_BYTES and not raw.endswith(b"\n"):
            _skip_line(stream)
            yield Line(number, "", "too long")
            continue
        if number == 1:
            raw = _without_bom(raw, name)
        raw = raw.removesuffix(b"\n").removesuffix(b"\r")
        try:
            yield Line(number, raw.decode(encoding))
        except UnicodeDecodeError as error:
            fault = _not_text(raw, error)
            if strict:
                raise DataError(f"{name}:{number}: {fault}") from None
            yield Line(number, "", fault)


def _skip_line(stream: BinaryIO) -> None:
    while (rest := stream.readline(MAX_BYTES)) and not rest.endswith(b"\n"):
        pass


def _without_bom(raw: bytes, name: str) -> bytes:
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError(f"{name}: the text is UTF-16; convert it: iconv -f UTF-16 -t UTF-8 {name}")
    return raw.removeprefix(codecs.BOM_UTF8)


def _not_text(raw: bytes, error: UnicodeDecodeError) -> str:
    wrong = f"byte {raw[error.start]:#04x} at {error.start + 1} is not {error.encoding.upper()}"
    try:
        korean = re.search("[가-힣]", raw.decode("cp949"))
    except UnicodeDecodeError:
        korean = None
    if korean:
        return f"{wrong}; the line reads as CP949 (EUC-KR): convert the file with iconv -f CP949 -t UTF-8"
    return f"{wrong}; convert the file to UTF-8"
