"""True word alignments from a file: a line a pair, "0-0 1-2", and "0?1" for a link that is only possible."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ...data.pairs import Pair
from ...data.readers.files import lines_of
from ...errors import DataError
from ...lens.alignment import Gold, Link

_LINK = re.compile(r"(\d{1,6})([-?])(\d{1,6})")


def read_alignments(path: Path, pairs: Sequence[Pair]) -> list[Gold]:
    """One set of links for each pair; every link names words that the pair has."""
    lines = list(lines_of(path))
    if len(lines) != len(pairs):
        raise DataError(f"{path} has {len(lines)} lines for {len(pairs)} pairs; each pair needs its own line")
    return [
        _gold(line, f"{path}:{number}", pair) for number, (line, pair) in enumerate(zip(lines, pairs, strict=True), 1)
    ]


def _gold(line: str, place: str, pair: Pair) -> Gold:
    sure: set[Link] = set()
    possible: set[Link] = set()
    n_source, n_target = len(pair.source.split()), len(pair.target.split())
    for word in line.split():
        found = _LINK.fullmatch(word)
        if not found:
            raise DataError(f"{place}: a link looks like 0-2, or 0?2 where it is only possible, not {word!r}")
        link = int(found[1]), int(found[3])
        if link[0] >= n_source or link[1] >= n_target:
            raise DataError(f"{place}: {word} points beyond the {n_source} source and {n_target} target words")
        (sure if found[2] == "-" else possible).add(link)
    return Gold(frozenset(sure), frozenset(possible))
