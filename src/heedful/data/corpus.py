"""Running text: files and folders as documents, read in passages that can be turned into tokens one by one.

A file is one document; of JSON lines, each line is one. Text is UTF-8, its characters composed (NFC), its line ends
newlines. Nothing here holds more than a passage, however large a file is; a JSON line is held whole.
"""

import codecs
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ..errors import DataError
from .readers.files import find_files, opened, parse_json, split_lines, suffix_of
from .report import CorpusReport, FileReport
from .tokenizer import check_unicode, nfc

TEXT, LINES = (".txt", ".text", ".md"), (".jsonl", ".ndjson")
FIELD = "text"  # of a JSON line
PASSAGE = 1 << 18  # characters, about
LONGEST_LINE = 1 << 26  # bytes of one JSON line


class Passage(NamedTuple):
    """A part of a document that no word crosses; `begins` is True for the first part of a document."""

    text: str
    file: str
    line: int
    begins: bool


@dataclass(frozen=True)
class Corpus:
    """Files as one text that can be read repeatedly: the characters from `start` to before `stop`."""

    files: tuple[Path, ...]
    start: int = 0
    stop: int | None = None

    def __iter__(self) -> Iterator[Passage]:
        at = 0
        for passage in _passages(self.files):
            text, before = passage.text, at
            at += len(text)
            if self.stop is not None and before >= self.stop:
                return
            if not text or at <= self.start:
                continue
            first = max(0, self.start - before)
            part = text[first : None if self.stop is None else self.stop - before]
            line = passage.line + text.count("\n", 0, first)
            yield Passage(part, passage.file, line, passage.begins and not first)

    def documents(self) -> Iterator[tuple[str, str]]:
        """Yield each document whole, with its place."""
        place, parts = "", list[str]()
        for passage in self:
            if passage.begins and parts:
                yield place, "".join(parts)
                parts = []
            if not parts:
                place = f"{passage.file}:{passage.line}"
            parts.append(passage.text)
        if parts:
            yield place, "".join(parts)

    def survey(self, reading: CorpusReport) -> None:
        """Read everything once and report it. A text of only white space is a DataError."""
        for path in self.files:
            file = FileReport(str(path), "text")
            for passage in _passages([path]):
                file.count += passage.begins
                file.characters += len(passage.text)
                reading.alphabet.update(passage.text)
                if passage.begins and not passage.text:
                    reading.skip("empty", f"{path}:{passage.line}")
                    file.count -= 1
            reading.files.append(file)
        if all(character.isspace() for character in reading.alphabet):
            named = ", ".join(map(str, self.files[:3])) + (", …" if len(self.files) > 3 else "")
            raise DataError(f"{named}: there is no text to learn from, only white space or empty files")


def text_files(paths: Iterable[str | Path], reading: CorpusReport | None = None) -> list[Path]:
    """Every file to read for these paths. In a folder, the endings .txt, .text, .md and .jsonl count, packed or not;
    a file that is named is text whatever its ending."""
    reading = CorpusReport() if reading is None else reading
    paths = [Path(path) for path in paths]
    if not paths:
        raise DataError("no file was given to read text from")
    files = find_files(paths, (*TEXT, *LINES), reading)
    if not files:
        raise DataError(
            f"no text among {', '.join(map(str, paths))} ({reading.explain_skipped()}); "
            "supported are .txt, .md and .jsonl"
        )
    return files


def _passages(files: Sequence[Path]) -> Iterator[Passage]:
    for path in files:
        with opened(path) as stream:
            read = _json_lines if suffix_of(path) in LINES else _plain_text
            yield from read(stream, path)


def _plain_text(stream: BinaryIO, path: Path) -> Iterator[Passage]:
    """Read one document, cut after a line, or in very long lines before a space. An empty document is one passage."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    text, line, begins = "", 1, True
    while True:
        block = stream.read(PASSAGE)
        try:
            text += decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            raise _not_text(path, error) from None
        cut = _cut(text) if block else len(text)
        if cut or (begins and not block):
            yield Passage(nfc(text[:cut].replace("\r\n", "\n")), str(path), line, begins)
            line, begins = line + text.count("\n", 0, cut), False
        if not block:
            return
        text = text[cut:]


def _cut(text: str) -> int:
    """Return how much of a text can be tokenized on its own: no token crosses this place."""
    if len(text) < PASSAGE:
        return 0
    if after_line := text.rfind("\n") + 1:
        return after_line
    before_space = text.rfind(" ")
    if before_space > 0 and not text[before_space - 1].isspace():
        return before_space
    return len(text) - 1 if len(text) > 4 * PASSAGE else 0  # no space anywhere: one token may come out otherwise


def _not_text(path: Path, error: UnicodeDecodeError) -> DataError:
    """Return the line reader's error, which names the line, or one that names the byte."""
    try:
        with opened(path) as stream:
            for _ in split_lines(stream, str(path)):
                pass
    except DataError as found:
        return found
    return DataError(f"{path}: byte {error.object[error.start]:#04x} is not UTF-8; convert the file to UTF-8")


def _json_lines(stream: BinaryIO, path: Path) -> Iterator[Passage]:
    """Read the texts of JSON objects, one on each line; empty lines are skipped."""
    for number, raw in enumerate(iter(lambda: stream.readline(LONGEST_LINE), b""), start=1):
        if len(raw) == LONGEST_LINE:
            raise DataError(f"{path}:{number}: the line has more than {LONGEST_LINE:,} bytes; split the document")
        if raw.strip():
            text = _text_of(raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw, f"{path}:{number}")
            yield Passage(nfc(text.replace("\r\n", "\n")), str(path), number, True)


def _text_of(raw: bytes, place: str) -> str:
    row = parse_json(raw, place)
    if not isinstance(row, dict) or not isinstance(row.get(FIELD), str):
        keys = f"an object with the keys {', '.join(map(str, row)) or 'none'}" if isinstance(row, dict) else repr(row)
        raise DataError(f'{place}: an object with a text under "{FIELD}" was expected, not {keys[:200]}')
    text: str = row[FIELD]
    try:
        check_unicode(text)
    except DataError as error:
        raise DataError(f"{place}: {error}") from None
    return text
