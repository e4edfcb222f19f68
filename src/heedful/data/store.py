"""Pairs tokenised once, into files that are mapped and not read: a million pairs take no memory to speak of.

A store is a folder: tokens.bin (all ids, source then target, row after row), lengths.bin (two numbers a row),
places.bin (which file, which line), and meta.json, written last. Without a meta.json that agrees with every byte
of the others there is no store: it is whole or it is not there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..files import replacing, sha256_of
from .batch import Sequences

if TYPE_CHECKING:
    from .pairs import Pair
    from .tokenizer import Tokenizer

Place: TypeAlias = tuple[str, int]  # a file and a line
Encoded: TypeAlias = tuple[Sequence[int], Sequence[int], Place]

_FORMAT = 1
_ARRAYS = ("tokens.bin", "lengths.bin", "places.bin")
_META = "meta.json"
_TOKEN = {16: np.uint16, 32: np.uint32}
_LARGEST = np.iinfo(np.int32).max  # of a length, a line and the number of files


class TokenStore:
    """Tokenised pairs on disk. `store[i]` is (source ids, target ids); `lengths` is (N, 2)."""

    def __init__(self, folder: str | Path) -> None:
        """Open a store and check every byte of it."""
        self.folder = Path(folder)
        meta = _read_meta(self.folder)
        self.fingerprint = _fingerprint(meta)
        if meta.get("fingerprint") != self.fingerprint:
            raise _unusable(self.folder, f"{_META} is not what was written")
        for name in _ARRAYS:
            try:
                found = sha256_of(self.folder / name)
            except OSError as error:
                raise _unusable(self.folder, f"{name} cannot be read: {error.strerror}") from None
            if found != meta["sha256"][name]:
                raise _unusable(self.folder, f"{name} is not what was written")
        self._files: list[str] = meta["files"]
        self._tokens = _mapped(self.folder / "tokens.bin", _TOKEN[meta["bits"]])
        self.lengths: NDArray[np.int32] = _mapped(self.folder / "lengths.bin", np.int32).reshape(-1, 2)
        self._places: NDArray[np.int32] = _mapped(self.folder / "places.bin", np.int32).reshape(-1, 2)
        # Where each row begins in tokens.bin, and where the last one ends.
        self._starts = np.concatenate([[0], np.cumsum(self.lengths.sum(axis=1, dtype=np.int64))])

    @property
    def flat(self) -> NDArray[np.integer[Any]]:
        """The ids of all rows, one after the other, source before target."""
        return self._tokens

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row: int) -> tuple[NDArray[np.integer[Any]], NDArray[np.integer[Any]]]:
        if not 0 <= row < len(self):
            raise IndexError(f"the store has the rows 0 to {len(self) - 1}, not {row}")
        start, stop = self._starts[row], self._starts[row + 1]
        middle = start + self.lengths[row, 0]
        return self._tokens[start:middle], self._tokens[middle:stop]

    def sides(self, rows: NDArray[np.intp]) -> tuple[Sequences, Sequences]:
        """The sources and the targets of several rows."""
        starts, lengths = self._starts[rows], self.lengths[rows].astype(np.int64)
        source, target = lengths[:, 0], lengths[:, 1]
        return Sequences(self._tokens, starts, source), Sequences(self._tokens, starts + source, target)

    def place(self, row: int) -> str:
        """Where a row comes from, as "file:line"."""
        file, line = self._places[row]
        return f"{self._files[file]}:{line}"

    @classmethod
    def write(cls, folder: str | Path, encoded: Iterable[Encoded], *, vocab_size: int) -> TokenStore:
        """Write a store row by row, in place of an older one, and open it. All ids must be below `vocab_size`."""
        folder = Path(folder)
        with ExitStack() as stack:  # which is unwound from its end: what is entered first takes its place last
            partial = {name: stack.enter_context(replacing(folder / name)) for name in (_META, *_ARRAYS)}
            meta = _write_arrays([partial[name] for name in _ARRAYS], encoded, vocab_size)
            meta["sha256"] = {name: sha256_of(partial[name]) for name in _ARRAYS}
            meta["fingerprint"] = _fingerprint(meta)
            partial[_META].write_text(json.dumps(meta, indent=2), encoding="ascii")
            (folder / _META).unlink(missing_ok=True)  # from here to the last rename there is no store
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
    """What `TokenStore.write` takes. A pair with more than `max_tokens` on a side, the start or end token counted,
    is left out and handed to `too_long` with the number it has."""
    pairs = iter(pairs)
    while several := list(islice(pairs, chunk)):
        sources = _encode_side(source_tokenizer, several, [pair.source for pair in several])
        targets = _encode_side(target_tokenizer, several, [pair.target for pair in several])
        for pair, source, target in zip(several, sources, targets, strict=True):
            longest = max(len(source), len(target)) + 1
            if longest > max_tokens:
                too_long(pair, longest)
            else:
                yield source, target, (pair.file, pair.line)


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
        raise DataError("there is no pair to store: the input was empty, or every pair was left out")
    return {"format": _FORMAT, "rows": rows, "bits": bits, "files": list(files)}


def _read_meta(folder: Path) -> dict[str, Any]:
    path = folder / _META
    try:
        meta = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{folder}: there is no token store, or it was not finished; build it (again)") from None
    except (OSError, ValueError, RecursionError) as error:
        raise _unusable(folder, f"{_META} cannot be read: {error}") from None
    if not isinstance(meta, dict) or meta.get("format") != _FORMAT:
        raise _unusable(folder, f"{_META} is not of the format {_FORMAT}, the one this version reads")
    return meta


def _fingerprint(meta: dict[str, Any]) -> str:
    """A sha256 over all else that stands in meta.json, the sums of the arrays among it."""
    content = {key: value for key, value in meta.items() if key != "fingerprint"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("ascii")).hexdigest()


def _mapped(path: Path, dtype: Any) -> NDArray[Any]:
    """The file as a plain array: slicing a `memmap` itself costs many times as much. An empty file cannot be mapped."""
    return np.asarray(np.memmap(path, dtype, mode="r")) if path.stat().st_size else np.empty(0, dtype)


def _unusable(folder: Path, why: str) -> DataError:
    return DataError(f"{folder}: the token store cannot be used: {why}; delete the folder and build it again")
