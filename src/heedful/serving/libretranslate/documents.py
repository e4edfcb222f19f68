"""A text as what stays and what is translated, so that it can be put together again around the translations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

_LETTER = re.compile(r"[^\W\d_]")

Span = tuple[int, int]  # of characters: from, to


@dataclass(frozen=True)
class Run:
    """A stretch of text to translate, without white space at its ends; `spell` writes its translation in its place."""

    text: str
    spell: Callable[[str], str]


@dataclass(frozen=True)
class Marked:
    """A sentence with tags around some of its words: at `spans`, in order, none inside of another.

    `spell` writes its translation with the same tags at other spans; where nobody knows these, the sentence is
    translated in `pieces`, each between its own tags.
    """

    text: str
    spans: tuple[Span, ...]
    spell: Callable[[str, Sequence[Span]], str]
    pieces: tuple[str | Run, ...]


Document = tuple[str | Run | Marked, ...]


def says_something(text: str) -> bool:
    """Whether there is a letter in it: numbers, signs and empty texts stay as they are."""
    return _LETTER.search(text) is not None


def plain(text: str) -> tuple[str | Run, ...]:
    """A plain text, line by line: line breaks and the white space at the ends of lines stay."""
    return tuple(part for line in text.splitlines(keepends=True) for part in _line(line))


def _line(line: str) -> Iterator[str | Run]:
    inner = line.strip()
    if says_something(inner):
        begin = line.index(inner)
        yield line[:begin]
        yield Run(inner, str)
        yield line[begin + len(inner) :]
    else:
        yield line


def runs(document: Iterable[str | Run | Marked]) -> list[str]:
    """What there is to translate, in order."""
    return [part.text for part in document if not isinstance(part, str)]


def filled(document: Sequence[str | Run], translations: Sequence[str]) -> str:
    """The document again, a translation in the place of each run."""
    following = iter(translations)
    return "".join(part.spell(next(following)) if isinstance(part, Run) else part for part in document)
