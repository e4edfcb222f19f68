"""From raw files to token stores in a run's folder: read once, cleaned, cut into pieces, memory-mapped."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...data.pairs import Pair, clean, in_direction
from ...data.readers import read_pairs
from ...data.report import PairReport
from ...data.store import TokenStore, encode_pairs
from ...errors import DataError
from ..run import Files, TooLittleDataError
from ..run.folder import SCRATCH
from .config import TranslationConfig
from .sentences import sentences
from .tokenizers import Tokenizers

SAMPLED = 1000  # sources looked at
SMALLEST_SHARE = 20  # at most every twentieth pair is held out


@dataclass(frozen=True)
class Prepared:
    """Everything training needs from the data."""

    tokenizers: Tokenizers
    train: TokenStore
    valid: TokenStore

    @classmethod
    def open(cls, folder: Path, *, joint: bool) -> Prepared:
        """What `prepare` has written."""
        return cls(Tokenizers.load(folder, joint=joint), TokenStore(folder / "train"), TokenStore(folder / "valid"))

    def identity(self) -> dict[str, str]:
        """What must stay the same for a run to go on, as fingerprints short enough to be shown."""
        found = {
            "training data": self.train.fingerprint,
            "validation data": self.valid.fingerprint,
            "source tokeniser": self.tokenizers.source.fingerprint,
            "target tokeniser": self.tokenizers.target.fingerprint,
        }
        return {name: fingerprint[:16] for name, fingerprint in found.items()}

    def valid_texts(self, limit: int | None = None) -> tuple[list[str], list[str]]:
        """Sources and references for validation, at most `limit` of them, spread evenly over all.

        The tokeniser loses nothing, so they need not be kept apart.
        """
        count = min(len(self.valid), limit or len(self.valid))
        rows = [self.valid[index * len(self.valid) // count] for index in range(count)]
        sources = [self.tokenizers.source.decode(source) for source, _ in rows]
        return sources, [self.tokenizers.target.decode(target) for _, target in rows]

    def one_sentence(self) -> bool:
        """Whether nearly every source is a single sentence: such a model loses what follows the first."""
        count = min(len(self.train), SAMPLED)
        texts = (self.tokenizers.source.decode(self.train[row * len(self.train) // count][0]) for row in range(count))
        return sum(len(sentences(text)) > 1 for text in texts) * SMALLEST_SHARE < count


@dataclass(frozen=True)
class Readings:
    """What was read for training and for validation. Where `valid` is None, `held_out` pairs of `train` serve."""

    train: PairReport
    valid: PairReport | None
    held_out: int = 0

    def to_dict(self) -> dict[str, Any]:
        """For a file."""
        return {
            "train": self.train.to_dict(),
            "valid": None if self.valid is None else self.valid.to_dict(),
            "held_out": self.held_out,
        }


def prepare(
    config: TranslationConfig, files: Files, folder: Path, *, tokenizers: Tokenizers | None = None
) -> tuple[Prepared, Readings]:
    """Read, clean, learn the tokenisers unless they are given, and write the stores."""
    with _scratch(folder / SCRATCH) as scratch:
        train, valid, readings = _read(config, files, scratch)
        tokenizers = Tokenizers.learn(config.tokenizer, train) if tokenizers is None else tokenizers
        tokenizers.save(folder)
        stores = []
        for pairs, reading, name in ((train, readings.train, "train"), (valid, readings.valid, "valid")):
            too_long = _counting(readings.train if reading is None else reading)
            encoded = encode_pairs(
                pairs(), tokenizers.source, tokenizers.target, max_tokens=config.data.max_tokens, too_long=too_long
            )
            try:
                stores.append(TokenStore.write(folder / name, encoded, vocab_size=max(tokenizers.sizes)))
            except DataError as error:
                raise TooLittleDataError(str(error), readings) from None
    if readings.valid is None:
        readings = replace(readings, held_out=len(stores[1]))
    return Prepared(tokenizers, *stores), readings


@contextmanager
def _scratch(folder: Path) -> Iterator[Path]:
    """An empty folder that is gone afterwards; one that a killed run has left is emptied."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def read_set(files: Files, source: str, target: str, reading: PairReport | None = None) -> list[Pair]:
    """Every pair of a test set as it stands: a score over cleaned pairs could be compared with nothing."""
    reading = PairReport() if reading is None else reading
    found = read_pairs(files.train, source, target, columns=files.columns, reading=reading)
    pairs = list(in_direction(found, source, target, reading))
    if not pairs:
        raise DataError(f"{', '.join(files.train)}: there is no pair to evaluate on")
    return pairs


PairsAgain = Callable[[], Iterator[Pair]]


def _read(config: TranslationConfig, files: Files, scratch: Path) -> tuple[PairsAgain, PairsAgain, Readings]:
    """Clean pairs on disk, for training and for validation, with no sentence pair in both."""
    reading = PairReport()
    if not files.valid:
        everything = _Spool(scratch / "all.tsv", _cleaned(config, files, files.train, reading))
        held_out = _held_out(everything.count, config.data.holdout)
        train = _Spool(scratch / "train.tsv", (pair for pair in everything() if not held_out(pair)))
        valid = _Spool(scratch / "valid.tsv", (pair for pair in everything() if held_out(pair)))
        readings = Readings(reading, None)
        if not valid.count or not train.count:
            raise TooLittleDataError(
                f"{everything.count} usable pairs are too few to set some apart for validation; "
                "give more data, or validation pairs of your own (--valid)",
                readings,
            )
        return train, valid, readings
    valid_reading = PairReport()
    valid = _Spool(scratch / "valid.tsv", _cleaned(config, files, files.valid, valid_reading))
    seen = {_digest(pair.source, pair.target) for pair in valid()}
    train = _Spool(scratch / "train.tsv", _without(_cleaned(config, files, files.train, reading), seen, reading))
    readings = Readings(reading, valid_reading)
    if not train.count:
        raise TooLittleDataError(
            f"all {reading.total} training pairs are dropped or also in validation; give other data", readings
        )
    return train, valid, readings


def _cleaned(config: TranslationConfig, files: Files, paths: Sequence[str], reading: PairReport) -> Iterator[Pair]:
    pairs = read_pairs(paths, config.source, config.target, columns=files.columns, reading=reading)
    return clean(pairs, config.data, config.source, config.target, reading)


def _without(pairs: Iterable[Pair], seen: set[bytes], reading: PairReport) -> Iterator[Pair]:
    """A pair that validation uses is no training pair: the score would be of memory."""
    for pair in pairs:
        if _digest(pair.source, pair.target) in seen:
            reading.drop_kept("also in validation", pair.place, *pair.texts)
        else:
            yield pair


def _held_out(count: int, wanted: int) -> Callable[[Pair], bool]:
    """Choose by the source's text, so that no source is on both sides."""
    share = min(wanted, count // SMALLEST_SHARE) / max(1, count)
    edge = int(share * 2**64)
    return lambda pair: int.from_bytes(_digest(pair.source)) < edge


def _digest(*texts: str) -> bytes:
    return hashlib.blake2b("\t".join(texts).encode(), digest_size=8).digest()


def _counting(reading: PairReport) -> Callable[[Pair, int], None]:
    def too_long(pair: Pair, _: int) -> None:
        reading.drop_kept("too many tokens", pair.place, *pair.texts)

    return too_long


class _Spool:
    """Pairs written to a scratch file, to be read again as often as needed. Clean text has no tab and no line end."""

    def __init__(self, path: Path, pairs: Iterable[Pair]) -> None:
        self.path = path
        self.count = 0
        names: dict[str, int] = {}  # a file's name may hold anything, so its number is written
        with path.open("w", encoding="utf-8", newline="\n") as file:
            for self.count, pair in enumerate(pairs, 1):
                number = names.setdefault(pair.file, len(names))
                file.write(f"{pair.source}\t{pair.target}\t{number}\t{pair.line}\n")
        self._names = list(names)

    def __call__(self) -> Iterator[Pair]:
        with self.path.open(encoding="utf-8", newline="\n") as file:
            for row in file:
                source, target, number, line = row.rstrip("\n").split("\t")
                yield Pair(source, target, self._names[int(number)], int(line))
