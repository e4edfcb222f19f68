"""From files of many formats to sentence pairs, one by one.

A file's format is known by content where that is certain, then by name. Everything is looked at before anything is
read.
"""

import codecs
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import DataError
from ..languages import Languages
from ..pairs import Pair
from ..report import PairReport, SplitReport
from . import catalogs, markup, tables
from .files import InputFile, OtherLanguageError, lines_of, suffix_of, walk

__all__ = ["files_of", "lines_of", "read_pairs"]


@dataclass(frozen=True)
class Format:
    """One format: its name, its file endings, a test of a file's beginning, and its reader."""

    name: str
    endings: tuple[str, ...]
    read: Callable[[InputFile, Languages], Iterable[Pair]]
    proves: Callable[[bytes], object] = lambda head: False


TSV = Format("tab-separated text", (".tsv", ".tab"), tables.read_tabs)
CSV = Format("comma-separated text", (".csv",), tables.read_commas)
TEXT = Format("parallel text", (), tables.read_parallel)
FORMATS = (
    Format("compiled gettext catalog", (".mo", ".gmo"), catalogs.read_mo, catalogs.MO_SIGNATURE.match),
    Format("TMX", (".tmx",), markup.TMX, markup.TMX_SIGNATURE.match),
    Format("XLIFF", (".xlf", ".xliff"), markup.XLIFF, markup.XLIFF_SIGNATURE.match),
    Format("JSON lines", (".jsonl", ".ndjson"), tables.read_jsonl, tables.is_json),
    Format("gettext catalog", (".po", ".pot"), catalogs.read_po, catalogs.PO_SIGNATURE.search),
    TSV,
    CSV,
    TEXT,
)
ENDINGS = ", ".join(ending for file_format in FORMATS for ending in file_format.endings)


def files_of(paths: Iterable[str | Path], source_language: str, target_language: str) -> list[Path]:
    """Return every file that `read_pairs` would open for these paths, both sides of parallel text included."""
    languages = Languages(source_language, target_language)
    formats = find([Path(path) for path in paths], languages, PairReport())
    partners = [tables.partner_of(file, languages) for file, file_format in formats if file_format is TEXT]
    return [*(file.path for file, _ in formats), *partners]


def read_pairs(
    paths: str | Path | Iterable[str | Path],
    source_language: str,
    target_language: str,
    *,
    columns: Sequence[str] | None = None,
    reading: PairReport | None = None,
) -> Iterator[Pair]:
    """Yield the pairs of files and folders. The files are found and their formats detected before this returns.

    Args:
        paths: files and folders.
        source_language, target_language: codes such as ko and en.
        columns: the languages of columns without a header, in order; by default the source comes first.
        reading: counts what is read and dropped.
    """
    languages = Languages(source_language, target_language, tuple(columns or ()))
    reading = PairReport() if reading is None else reading
    reading.columns = languages.order
    path_list = [Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
    return _stream(find(path_list, languages, reading), languages, reading)


def _stream(formats: list[tuple[InputFile, Format]], languages: Languages, reading: PairReport) -> Iterator[Pair]:
    for file, file_format in formats:
        file.begin(file_format.name)
        try:
            yield from file_format.read(file, languages)
        except OtherLanguageError:
            if file.folder is None:
                raise
            file.withdraw("other languages")
    if not reading.files:
        raise DataError(f"no file of {languages} among those given ({reading.explain_skipped()})")


def detect_format(file: InputFile, languages: Languages) -> Format | None:
    """Return the format of a file, or None for a file of another kind."""
    head, ending = file.head(), suffix_of(file.path)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        head = head.decode("utf-16", errors="ignore").encode()
    head = head.removeprefix(codecs.BOM_UTF8)
    named = next((file_format for file_format in FORMATS if ending in file_format.endings), None)
    named = named or (TEXT if tables.code_in(file.path, languages) else None)
    # In a folder, tabs alone do not make a table: programs have them too.
    tabbed = tables.looks_tabbed(head) and (file.folder is None or ending in (*TSV.endings, ".txt", ""))
    if proven := next((file_format for file_format in FORMATS if file_format.proves(head)), None):
        return proven
    if not head and (named or file.folder is None):
        raise file.error("the file is empty")
    if named is CSV:
        return TSV if tabbed and b"," not in head.lstrip().split(b"\n")[0] else CSV
    if tabbed and named not in (None, TSV) and not (named is TEXT and ending == ".txt"):
        raise file.error(
            f"by its name this is {named.name}, by its content {TSV.name}; give it the ending .tsv, or put it right"
        )
    return TSV if tabbed else named


def find(paths: Sequence[Path], languages: Languages, reading: SplitReport) -> list[tuple[InputFile, Format]]:
    """Return every file once with its format; one side of parallel text stands for both."""
    formats: list[tuple[InputFile, Format]] = []
    seen: set[Path] = set()
    partners: set[Path] = set()
    for file in _files(paths, reading):
        file_format = detect_format(file, languages)
        if file_format is None:
            _skip_unrecognized(file, reading)
            continue
        real = file.path.resolve()
        if real in seen:
            if file.folder is None:
                raise file.error("the file is given twice")
            reading.skip("read already", file.name)
            continue
        seen.add(real)
        if real in partners:
            continue
        if file_format is TEXT:
            partners.add(tables.partner_of(file, languages).resolve())
        formats.append((file, file_format))
    return formats


def _files(paths: Sequence[Path], reading: SplitReport) -> Iterator[InputFile]:
    def skip(path: Path) -> None:
        reading.skip("neither a file nor a folder", str(path))

    if not paths:
        raise DataError("no file was given to read pairs from")
    for path in paths:
        if path.is_dir():
            yield from (InputFile(inner, reading, folder=path) for inner in walk(path, skip))
        elif path.exists() and not path.is_file():
            raise DataError(f"{path}: neither a file nor a folder")
        else:
            yield InputFile(path, reading)  # one that is missing says so when it is opened


def _skip_unrecognized(file: InputFile, reading: SplitReport) -> None:
    if file.folder is None:
        raise file.error(
            f"not a file of sentence pairs: nothing proves its format and the name does not say it; known endings are "
            f"{ENDINGS}, or a language code as in train.en and train.ko"
        )
    reading.skip("not recognized", file.name)
