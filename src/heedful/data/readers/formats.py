"""Every format that can be read, and how one tells which a file is: by content where that is certain, then by name."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from heedful.data.pairs import Pair

from . import jsonl, mo, po, tables, text, tmx, xliff
from .files import InputFile
from .languages import Languages


def _never(head: bytes) -> bool:
    return False


@dataclass(frozen=True)
class Format:
    """One format: its name, the endings it is known by, whether a file's beginning proves it, and its reader."""

    name: str
    endings: tuple[str, ...]
    read: Callable[[InputFile, Languages], Iterator[Pair]]
    proves: Callable[[bytes], object] = _never


TSV = Format("tab-separated text", (".tsv", ".tab"), tables.read_tabs)
CSV = Format("comma-separated text", (".csv",), tables.read_commas)
TEXT = Format("parallel text", (), text.read)
FORMATS = (
    Format("compiled gettext catalogue", (".mo", ".gmo"), mo.read, mo.SIGNATURE.match),
    Format("TMX", (".tmx",), tmx.read, tmx.SIGNATURE.match),
    Format("XLIFF", (".xlf", ".xliff"), xliff.read, xliff.SIGNATURE.match),
    Format("JSON lines", (".jsonl", ".ndjson"), jsonl.read, jsonl.is_jsonl),
    Format("gettext catalogue", (".po", ".pot"), po.read, po.SIGNATURE.search),
    TSV,
    CSV,
    TEXT,
)
ENDINGS = ", ".join(ending for known in FORMATS for ending in known.endings)


def recognise(file: InputFile, languages: Languages) -> Format | None:
    """The format of a file, or None for one that is nothing of ours."""
    head = _plain(file.head())
    named, tabbed = _by_name(file.path, languages), tables.looks_tabbed(head) and _may_be_table(file)
    if proven := next((known for known in FORMATS if known.proves(head)), None):
        return proven
    if not head and (named or file.folder is None):
        raise file.error("the file is empty")
    if named is CSV:
        return TSV if tabbed and b"," not in head.lstrip().split(b"\n")[0] else CSV
    if tabbed and named not in (None, TSV) and not (named is TEXT and _ending(file.path) == ".txt"):
        raise file.error(
            f"by its name this is {named.name}, by its content {TSV.name}; give it the ending .tsv, or put it right"
        )
    return TSV if tabbed else named


def _by_name(path: Path, languages: Languages) -> Format | None:
    named = next((known for known in FORMATS if _ending(path) in known.endings), None)
    return named or (TEXT if text.code_in(path, languages) else None)


def _may_be_table(file: InputFile) -> bool:
    """In a folder, tabs alone do not make a table: programs have them too."""
    return file.folder is None or _ending(file.path) in (*TSV.endings, ".txt", "")


def _ending(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _plain(head: bytes) -> bytes:
    """A file's beginning without byte order mark, UTF-16 as UTF-8."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return head.decode("utf-16", errors="ignore").encode()
    return head.removeprefix(codecs.BOM_UTF8)
