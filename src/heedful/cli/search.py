"""`heedful predict MODEL --query "…" --index FILE`: the lines of a file that are nearest in meaning."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from ..data.readers.text import every_line
from ..errors import ConfigError, DataError
from ..tasks.embedding import Embedder, Index, Match
from .answering import one_line
from .words import complain

NEAREST = 10


def search(
    model: Any, queries: Sequence[str], index: Path, stream: BinaryIO, *, count: int = NEAREST, as_json: bool = False
) -> None:
    """Write for each query its nearest lines, the nearest first: the score, the number of the line, and the line.

    As JSON, a line holds a query and all its matches. Lines that cannot be read are named and left out.
    """
    if not isinstance(model, Embedder):
        raise ConfigError(
            f"--query searches by the vectors of an embedder; this model is for {model.task}. "
            "Import one: heedful import FOLDER --task embedding --out OUT"
        )
    for number, query in enumerate(queries, 1):
        if why := ("it is empty" if not query.strip() else model.validation_error(query)):
            raise DataError(f"--query {number}: {why}")
    found = Index(model, every_line(index))
    for line in found.refused:
        complain(f"{index}:{line.number}: {line.fault}")
    for query in queries:
        matches = found.search(query, count)
        lines = [_as_json(query, matches)] if as_json else [_plain(match) for match in matches]
        stream.writelines(f"{line}\n".encode() for line in lines)
    stream.flush()
    if found.refused:
        raise DataError(f"{len(found.refused):,} lines of {index} could not be read, and were not searched")


def _plain(match: Match) -> str:
    return f"{match.score:.4f}\t{match.line}\t{one_line(match.text)}"


def _as_json(query: str, matches: Sequence[Match]) -> str:
    return json.dumps({"query": query, "matches": [match._asdict() for match in matches]}, ensure_ascii=False)
