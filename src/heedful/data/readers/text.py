"""Plain text, a sentence a line: two files side by side for training, one for prediction."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO

from heedful.data.pairs import Pair
from heedful.errors import DataError

from .files import InputFile, Line, opened, split_lines
from .languages import Languages


def every_line(source: str | Path | BinaryIO) -> Iterator[Line]:
    """Every line of a file or a binary stream, empty ones too; where one cannot be used, its fault says why."""
    if isinstance(source, str | Path):
        with opened(Path(source)) as stream:
            yield from every_line(stream)
        return
    for line in split_lines(source, name_of(source), strict=False):
        yield Line(line.number, "", "the line is too long (over 1 MiB)") if line.fault == "too long" else line


def lines_of(source: str | Path | BinaryIO) -> Iterator[str]:
    """Every line as one string: as many come out as went in. One that cannot be used is an error."""
    for line in every_line(source):
        if line.fault:
            raise DataError(f"{name_of(source)}:{line.number}: {line.fault}")
        yield line.text


def name_of(source: str | Path | BinaryIO) -> str:
    """What to call it in a message."""
    return str(source) if isinstance(source, str | Path) else getattr(source, "name", "input")


def code_in(path: Path, languages: Languages) -> re.Match[str] | None:
    """The language code that ends a name, as in train.en, train.en.gz or en.txt."""
    codes = "|".join(re.escape(code) for code in (languages.source, languages.target))
    return re.search(rf"(?<![^._-])(?:{codes})(?=(\.txt)?(\.gz)?$)", path.name, re.IGNORECASE)


def partner_of(file: InputFile, languages: Languages) -> Path:
    """The file of the other language beside this one, packed or not."""
    found = code_in(file.path, languages)
    if found is None:
        raise file.error(f"no language code ends the name, neither {languages.source} nor {languages.target}")
    other = languages.target if _is_source(found, languages) else languages.source
    other = other.upper() if found[0].isupper() else other
    twin = file.path.name[: found.start()] + other + file.path.name[found.end() :]
    repacked = twin.removesuffix(".gz") if twin.endswith(".gz") else f"{twin}.gz"
    for name in (twin, repacked):
        if (path := file.path.with_name(name)).exists():
            return path
    raise file.error(f"this is one side of a pair of files, but there is neither {twin} nor {repacked} beside it")


def _is_source(code: re.Match[str], languages: Languages) -> bool:
    return code[0].lower() == languages.source.lower()


def read(file: InputFile, languages: Languages) -> Iterator[Pair]:
    """Line n of the one file beside line n of the other."""
    code, other = code_in(file.path, languages), file.beside(partner_of(file, languages))
    source, target = (file, other) if code and _is_source(code, languages) else (other, file)
    sources = targets = 0
    for first, second in zip_longest(source.sentences(), target.sentences()):
        sources, targets = sources + (first is not None), targets + (second is not None)
        if first is None or second is None:
            continue  # the longer one is still counted to its end
        if fault := first.fault or second.fault:
            file.drop(fault, first.number)
        else:
            yield file.pair(first.text, second.text, first.number)
    if sources != targets:
        raise DataError(
            f"{source.name} has {sources} lines, but {target.name} has {targets}; "
            "each line needs its translation on the same line of the other file"
        )
