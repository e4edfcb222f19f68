"""From files of many formats to sentence pairs, one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ...errors import DataError
from ..languages import Languages
from ..pairs import Pair
from ..report import PairReport
from .files import InputFile, OtherLanguageError, lines_of
from .formats import TEXT, Format, find
from .tables import partner_of

__all__ = ["files_of", "lines_of", "read_pairs"]


def files_of(paths: Iterable[str | Path], source_language: str, target_language: str) -> list[Path]:
    """Every file that `read_pairs` would open for these paths, both sides of parallel text among them."""
    languages = Languages(source_language, target_language)
    found = find([Path(path) for path in paths], languages, PairReport())
    partners = [partner_of(file, languages) for file, known in found if known is TEXT]
    return [*(file.path for file, _ in found), *partners]


def read_pairs(
    paths: str | Path | Iterable[str | Path],
    source_language: str,
    target_language: str,
    *,
    columns: Sequence[str] | None = None,
    reading: PairReport | None = None,
) -> Iterator[Pair]:
    """The pairs of files and folders, streamed. The files are found and recognised before this returns.

    `columns`, such as ("en", "ko"), names the languages of columns without a header, in their order; without it the
    source comes first. `reading` is told what is read and what is left out.
    """
    languages = Languages(source_language, target_language, tuple(columns or ()))
    reading = PairReport() if reading is None else reading
    reading.columns = languages.order
    given = [Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
    return _stream(find(given, languages, reading), languages, reading)


def _stream(found: list[tuple[InputFile, Format]], languages: Languages, reading: PairReport) -> Iterator[Pair]:
    for file, known in found:
        file.begin(known.name)
        try:
            yield from known.read(file, languages)
        except OtherLanguageError:
            if file.folder is None:
                raise
            file.withdraw("other languages")
    if not reading.files:
        raise DataError(f"no file of {languages} among those given ({reading.explain_skipped()})")
