"""From the paths given to the files to read, each with its format. Everything is looked at before anything is read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from heedful.data.report import SplitReport
from heedful.errors import DataError

from .files import InputFile
from .formats import ENDINGS, TEXT, Format, recognise
from .jsonl import ARRAY, array_hint
from .languages import Languages
from .text import partner_of

Found = tuple[InputFile, Format]


def find(paths: Iterable[Path], languages: Languages, reading: SplitReport) -> list[Found]:
    """Every file once; of parallel text, one side stands for both."""
    found: list[Found] = []
    seen: set[Path] = set()
    partners: set[Path] = set()
    for file in _files(paths, reading):
        known = recognise(file, languages)
        if known is None:
            _pass_over(file, reading)
            continue
        real = file.path.resolve()
        if real in seen:
            _already_read(file, reading)
            continue
        seen.add(real)
        if real in partners:
            continue
        if known is TEXT:
            partners.add(partner_of(file, languages).resolve())
        found.append((file, known))
    return found


def _files(paths: Iterable[Path], reading: SplitReport) -> Iterator[InputFile]:
    given = False
    for path in paths:
        given = True
        if path.is_dir():
            yield from (InputFile(inner, reading, folder=path) for inner in walk(path, _skipping(reading)))
        elif path.exists() and not path.is_file():
            raise DataError(f"{path}: neither a file nor a folder")
        else:
            yield InputFile(path, reading)  # one that is missing says so when it is opened
    if not given:
        raise DataError("no file was given to read pairs from")


def walk(folder: Path, pass_over: Callable[[Path], object] = lambda _: None) -> Iterator[Path]:
    """The files of a folder and of those within it, sorted; hidden ones are left alone.

    `pass_over` is told what is neither a file nor a folder: a link to nothing, a pipe.
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


def _skipping(reading: SplitReport) -> Callable[[Path], None]:
    return lambda path: reading.skip("neither a file nor a folder", str(path))


def _already_read(file: InputFile, reading: SplitReport) -> None:
    if file.folder is None:
        raise file.error("the file is given twice")
    reading.skip("read already", file.name)


def _pass_over(file: InputFile, reading: SplitReport) -> None:
    if file.folder is None:
        if ARRAY.match(file.head()):
            raise file.error(array_hint(file.path))
        raise file.error(
            f"not a file of sentence pairs: nothing proves its format and the name does not say it; known endings are "
            f"{ENDINGS}, or a language code as in train.en and train.ko"
        )
    reading.skip("not recognised", file.name)
