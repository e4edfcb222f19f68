"""Pairs tokenized once, into files that are mapped and not read (see array_store).

A store is a folder: tokens.bin (all ids, source then target, row after row), lengths.bin (two numbers a row),
places.bin (which file, which line), and meta.json.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from .array_store import ArrayFolder, mapped
from .batch import Sequences

if TYPE_CHECKING:
    from .pairs import Pair
    from .tokenizer import Tokenizer

Place: TypeAlias = tuple[str, int]  # a file and a line
Encoded: TypeAlias = tuple[Sequence[int], Sequence[int], Place]

_FILES = ArrayFolder(
    ("tokens.bin", "lengths.bin", "places.bin"),
    "token store",
    "there is no token store, or it was not finished; build it (again)",
    "delete the folder and build it again",
)
CHUNK = 1 << 24  # tokens counted at once
_TOKEN = {16: np.uint16, 32: np.uint32}
_LARGEST = np.iinfo(np.int32).max  # of a length, a line and the number of files


class TokenStore:
    """Tokenized pairs on disk. `store[i]` is (source ids, target ids); `lengths` is (N, 2)."""

    def __init__(self, folder: str | Path) -> None:
        """Open a store and check every byte of it."""
        self.folder = Path(folder)
        meta, self.fingerprint = _FILES.read(self.folder)
        self._files: list[str] = meta["files"]
        # The ids of all rows, one after the other, source before target.
        self.flat: NDArray[np.integer[Any]] = mapped(self.folder / "tokens.bin", _TOKEN[meta["bits"]])
        self.lengths: NDArray[np.int32] = mapped(self.folder / "lengths.bin", np.int32).reshape(-1, 2)
        self._places: NDArray[np.int32] = mapped(self.folder / "places.bin", np.int32).reshape(-1, 2)
        # Where each row begins in tokens.bin, and where the last one ends.
        self._starts = np.concatenate([[0], np.cumsum(self.lengths.sum(axis=1, dtype=np.int64))])

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row: int) -> tuple[NDArray[np.integer[Any]], NDArray[np.integer[Any]]]:
        if not 0 <= row < len(self):
            raise IndexError(f"the store has the rows 0 to {len(self) - 1}, not {row}")
        start, stop = self._starts[row], self._starts[row + 1]
        middle = start + self.lengths[row, 0]
        return self.flat[start:middle], self.flat[middle:stop]

    def sides(self, rows: NDArray[np.intp]) -> tuple[Sequences, Sequences]:
        """Return the sources and the targets of several rows."""
        starts, lengths = self._starts[rows], self.lengths[rows].astype(np.int64)
        source, target = lengths[:, 0], lengths[:, 1]
        return Sequences(self.flat, starts, source), Sequences(self.flat, starts + source, target)

    def counts(self, vocab_size: int) -> NDArray[np.int64]:
        """Return how often each id occurs."""
        parts = (self.flat[start : start + CHUNK] for start in range(0, len(self.flat), CHUNK))
        return sum((np.bincount(part, minlength=vocab_size) for part in parts), np.zeros(vocab_size, np.int64))

    def place(self, row: int) -> str:
        """Return where a row comes from, as "file:line"."""
        file, line = self._places[row]
        return f"{self._files[file]}:{line}"

    @classmethod
    def write(cls, folder: str | Path, encoded: Iterable[Encoded], *, vocab_size: int) -> TokenStore:
        """Write a store row by row, in place of an older one, and open it. All ids must be below `vocab_size`."""
        folder = Path(folder)
        with _FILES.write(folder) as (files, meta):
            meta.update(_write_arrays([files[name] for name in _FILES.files], encoded, vocab_size))
        return cls(folder)


def encode_pairs(
    pairs: Iterable[Pair],
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    *,
    max_tokens: int,
    too_long: Callable[[Pair, int], None],
    chunk: int = 1024,
) -> Iterator[Encoded]:
    """Yield rows for `TokenStore.write`.

    A pair with more than `max_tokens` on a side, the start or end token included, goes to `too_long` with its length.

    Raises:
        DataError: All pairs are too long, or a text cannot be encoded.
    """
    pairs, n_long, shortest, fits = iter(pairs), 0, sys.maxsize, False
    while several := list(islice(pairs, chunk)):
        sources = _encode_side(source_tokenizer, several, [pair.source for pair in several])
        targets = _encode_side(target_tokenizer, several, [pair.target for pair in several])
        for pair, source, target in zip(several, sources, targets, strict=True):
            longest = max(len(source), len(target)) + 1
            if longest > max_tokens:
                n_long, shortest = n_long + 1, min(shortest, longest)
                too_long(pair, longest)
            else:
                fits = True
                yield source, target, (pair.file, pair.line)
    if n_long and not fits:
        raise DataError(
            f"all {n_long:,} pairs are longer than data.max_tokens={max_tokens:,}; the shortest has {shortest:,} "
            "tokens, so allow more"
        )


def _encode_side(tokenizer: Tokenizer, pairs: Sequence[Pair], texts: Sequence[str]) -> list[list[int]]:
    try:
        return tokenizer.encode_batch(texts)
    except DataError:  # again one by one, to say where
        for pair, text in zip(pairs, texts, strict=True):
            try:
                tokenizer.encode(text)
            except DataError as error:
                raise DataError(f"{pair.place}: {error}") from None
        raise


def _write_arrays(paths: Sequence[Path], encoded: Iterable[Encoded], vocab_size: int) -> dict[str, Any]:
    bits = 16 if vocab_size <= 1 << 16 else 32
    files: dict[str, int] = {}
    rows = 0
    with ExitStack() as stack:
        tokens, lengths, places = [stack.enter_context(path.open("wb", buffering=1 << 20)) for path in paths]
        for source, target, (name, line) in encoded:
            rows += 1
            ids = np.array([*source, *target], dtype=np.int64)
            if len(ids) and not 0 <= ids.min() <= ids.max() < vocab_size:
                raise DataError(f"{name}:{line}: an id is not in the vocabulary, which goes from 0 to {vocab_size - 1}")
            if not 0 <= line <= _LARGEST:
                raise DataError(f"{name}: the line {line} is not a number from 0 to {_LARGEST}")
            tokens.write(ids.astype(_TOKEN[bits]).tobytes())
            lengths.write(np.array([len(source), len(target)], dtype=np.int32).tobytes())
            places.write(np.array([files.setdefault(name, len(files)), line], dtype=np.int32).tobytes())
    if not rows:
        raise DataError("there is no pair to store: the input was empty, or every pair was dropped")
    return {"rows": rows, "bits": bits, "files": list(files)}
