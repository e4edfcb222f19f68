"""Plain text, a sentence a line: two files side by side for training, one for prediction."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO

from heedful.data.pairs import Pair
from heedful.errors import DataError

from .files import InputFile, opened, split_lines
from .languages import Languages


def lines_of(source: str | Path | BinaryIO) -> Iterator[str]:
    """Every line of a file or a binary stream as one string: as many come out as went in, empty ones too."""
    if isinstance(source, str | Path):
        with opened(Path(source)) as stream:
            yield from _whole_lines(stream, str(source))
    else:
        yield from _whole_lines(source, getattr(source, "name", "input"))


def _whole_lines(stream: BinaryIO, name: str) -> Iterator[str]:
    for line in split_lines(stream, name):
        if line.fault:
            raise DataError(f"{name}:{line.number}: the line is {line.fault} (over 1 MiB)")
        yield line.text


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
