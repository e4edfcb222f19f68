"""How tests make bad files, and see what becomes of them."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from corpus_writers import texts_of

from heedful.data.readers import read_pairs
from heedful.data.report import PairReport
from heedful.errors import DataError


def refused(path: Path, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        texts_of(path)
    assert str(path) in str(caught.value)


def drops(path: Path) -> tuple[int, dict[str, list[str]]]:
    """How many pairs came out, and the places of those that did not."""
    reading = PairReport()
    count = sum(1 for _ in read_pairs(path, "en", "ko", reading=reading))
    assert reading.total == count + sum(tally.count for tally in reading.dropped.values())
    return count, {reason: [place.rpartition(":")[2] for place in t.places] for reason, t in reading.dropped.items()}


@contextmanager
def little_memory(limit: int = 24 << 20) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()


def bomb(path: Path, before: str, after: str, filler: bytes = b"x", megabytes: int = 200) -> Path:
    """A small file that unpacks to a large one."""
    block = gzip.compress(filler * ((1 << 20) // len(filler)))  # members of a gzip file follow one another
    path.write_bytes(gzip.compress(before.encode()) + block * megabytes + gzip.compress(after.encode()))
    return path
