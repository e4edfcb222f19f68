"""Sentence pairs: cleaned, divided, cut into pieces by one tokenizer or two, and memory-mapped in a run's folder."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ...data.pairs import Pair, clean, in_direction
from ...data.readers import read_pairs
from ...data.report import PairReport
from ...data.store import TokenStore, encode_pairs
from ...data.tokenizer import Tokenizer, TokenizerConfig
from ...errors import DataError
from ..run import DataReport, Files, TooLittleDataError, TrainingData
from ..run.task import SCRATCH, TRAIN, VALID
from ..seq2seq import spread_evenly
from ..text_generator import SOURCE, TARGET

if TYPE_CHECKING:
    from .task import TranslationConfig

SAMPLED = 1000  # sources looked at
SMALLEST_SHARE = 20  # at most every twentieth pair is held out

# A sentence ends with its mark and whatever closes after it, followed by space; CJK marks need no space.
_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])\s*")


@dataclass(frozen=True)
class Tokenizers:
    """One for each language, or the same for both."""

    source: Tokenizer
    target: Tokenizer

    @classmethod
    def learn(cls, config: TokenizerConfig, pairs: Callable[[], Iterator[Pair]]) -> Self:
        """From pairs that can be read again."""

        def learned(texts: Iterable[str]) -> Tokenizer:
            return Tokenizer.train(texts, vocab_size=config.vocab_size, min_frequency=config.min_frequency)

        if config.joint:
            both = learned(text for pair in pairs() for text in (pair.source, pair.target))
            return cls(both, both)
        return cls(learned(pair.source for pair in pairs()), learned(pair.target for pair in pairs()))

    @classmethod
    def load(cls, folder: Path, *, joint: bool) -> Self:
        """What `save` wrote."""
        source = Tokenizer.load(folder / SOURCE)
        return cls(source, source if joint else Tokenizer.load(folder / TARGET))

    def save(self, folder: Path) -> None:
        """Write them, one file where they are the same."""
        self.source.save(folder / SOURCE)
        if self.target is not self.source:
            self.target.save(folder / TARGET)

    @property
    def sizes(self) -> tuple[int, int]:
        """The vocabularies of source and target."""
        return self.source.vocab_size, self.target.vocab_size


PairData = TrainingData[TokenStore, Tokenizers, None]


def open_pairs(folder: Path, *, joint: bool) -> PairData:
    """What `prepare_pairs` has written."""
    stores = TokenStore(folder / TRAIN), TokenStore(folder / VALID)
    return TrainingData(folder, *stores, Tokenizers.load(folder, joint=joint), None)


def validation_texts(data: PairData, limit: int | None = None) -> tuple[list[str], list[str]]:
    """Sources and references for validation, at most `limit` of them, spread evenly over all.

    The tokenizer loses nothing, so they need not be kept apart.
    """
    rows = [data.valid[row] for row in spread_evenly(len(data.valid), limit)]
    sources = [data.tokenizer.source.decode(source) for source, _ in rows]
    return sources, [data.tokenizer.target.decode(target) for _, target in rows]


def has_single_sentences(data: PairData) -> bool:
    """Whether nearly every source is a single sentence: such a model loses what follows the first."""
    rows = spread_evenly(len(data.train), SAMPLED)
    texts = (data.tokenizer.source.decode(data.train[row][0]) for row in rows)
    return sum(len(sentences(text)) > 1 for text in texts) * SMALLEST_SHARE < len(rows)


def prepare_pairs(
    config: TranslationConfig, files: Files, folder: Path, *, tokenizers: Tokenizers | None = None
) -> tuple[PairData, DataReport[PairReport]]:
    """Read, clean, learn the tokenisers unless they are given, and write the stores."""
    with _scratch(folder / SCRATCH) as scratch:
        train, valid, report = _read(config, files, scratch)
        tokenizers = Tokenizers.learn(config.tokenizer, train) if tokenizers is None else tokenizers
        tokenizers.save(folder)
        stores = {}
        for pairs, reading, name in ((train, report.train, TRAIN), (valid, report.valid or report.train, VALID)):
            sides, limit = (tokenizers.source, tokenizers.target), config.data.max_tokens
            encoded = encode_pairs(pairs(), *sides, max_tokens=limit, too_long=_counting(reading))
            try:
                stores[name] = TokenStore.write(folder / name, encoded, vocab_size=max(tokenizers.sizes))
            except DataError as error:
                raise TooLittleDataError(str(error), report) from None
    if report.valid is None:
        report.held_out = len(stores[VALID])
    return TrainingData(folder, stores[TRAIN], stores[VALID], tokenizers, None), report


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


def _read(
    config: TranslationConfig, files: Files, scratch: Path
) -> tuple[PairsAgain, PairsAgain, DataReport[PairReport]]:
    """Clean pairs on disk, for training and for validation, with no sentence pair in both."""
    reading = PairReport()
    if not files.valid:
        everything = _Spool(scratch / "all.tsv", _cleaned(config, files, files.train, reading))
        held_out = _held_out(everything.count, config.data.holdout)
        train = _Spool(scratch / "train.tsv", (pair for pair in everything() if not held_out(pair)))
        valid = _Spool(scratch / "valid.tsv", (pair for pair in everything() if held_out(pair)))
        report = DataReport(reading, None)
        if not valid.count or not train.count:
            raise TooLittleDataError(
                f"{everything.count} usable pairs are too few to set some apart for validation; "
                "give more data, or validation pairs of your own (--valid)",
                report,
            )
        return train, valid, report
    valid_reading = PairReport()
    valid = _Spool(scratch / "valid.tsv", _cleaned(config, files, files.valid, valid_reading))
    seen = {_digest(pair.source, pair.target) for pair in valid()}
    train = _Spool(scratch / "train.tsv", _without(_cleaned(config, files, files.train, reading), seen, reading))
    report = DataReport(reading, valid_reading)
    if not train.count:
        raise TooLittleDataError(
            f"all {reading.total} training pairs are dropped or also in validation; give other data", report
        )
    return train, valid, report


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


def sentences(text: str) -> list[str]:
    """The sentences of a text, their own marks kept, the space between them gone."""
    found, begin = [], 0
    for end in _END.finditer(text):
        found.append(text[begin : end.end()].strip())
        begin = end.end()
    return [sentence for sentence in [*found, text[begin:].strip()] if sentence]


def parts_within(text: str, limit: int, n_tokens: Callable[[str], int]) -> list[str]:
    """The text in as few parts as have at most `limit` tokens each, cut only at sentence ends."""
    if n_tokens(text) <= limit:
        return [text]
    parts: list[str] = []
    for sentence in sentences(text):
        count = n_tokens(sentence)
        if count > limit:
            raise DataError(
                f"a sentence of {count:,} tokens is longer than the {limit:,} this model was trained for, "
                f'and has no sentence end to cut it at: "{sentence[:40]}…"; break it into shorter sentences'
            )
        joined = f"{parts[-1]} {sentence}" if parts else sentence
        if parts and n_tokens(joined) <= limit:
            parts[-1] = joined
        else:
            parts.append(sentence)
    return parts
