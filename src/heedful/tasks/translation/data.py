"""Sentence pairs: cleaned, split, tokenized by one tokenizer or two; and how a text is cut into sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ...data.labeled_texts import text_digest
from ...data.pairs import Pair, clean, in_direction
from ...data.readers import read_pairs
from ...data.report import PairReport
from ...data.store import TokenStore
from ...data.tokenizer import Tokenizer, TokenizerConfig
from ...errors import DataError
from ..run import DataReport, Files, TrainingData
from ..run.data import Split
from ..seq2seq import split_pairs, spread_evenly
from ..text_generator import SOURCE, TARGET

if TYPE_CHECKING:
    from .task import TranslationConfig

N_SAMPLED = 1000  # sources of which `has_single_sentences` looks at the sentences
MAX_MULTIPLE_SHARE = 0.05  # of the sources of a model of single sentences

# A sentence ends with its mark and whatever closes after it, followed by space; CJK marks need no space.
SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])\s*")
CLAUSE_END = re.compile(r"(?<=[,;:])\s+|(?<=[、，；：])\s*")


class LongTextWarning(UserWarning):
    """Some sentences are longer than any that the model was trained on; `count` of them, the longest with `longest`."""

    def __init__(self, count: int, longest: int, limit: int) -> None:
        super().__init__(
            f"{count:,} sentence{'s' * (count > 1)} longer than the longest in training ({limit:,} tokens) "
            f"{'were' if count > 1 else 'was'} read whole, the longest with {longest:,}; "
            "translations of such sentences may be worse"
        )
        self.count, self.longest, self.limit = count, longest, limit

    @classmethod
    def sum(cls, several: Sequence[Self]) -> Self:
        """Return one warning for those of several calls."""
        total, longest = sum(each.count for each in several), max(each.longest for each in several)
        return cls(total, longest, several[0].limit)


@dataclass(frozen=True)
class Tokenizers:
    """One tokenizer for each language, or the same for both."""

    source: Tokenizer
    target: Tokenizer

    @classmethod
    def train(cls, config: TokenizerConfig, pairs: Callable[[], Iterator[Pair]]) -> Self:
        """Train tokenizers; each call of `pairs` reads the pairs from the beginning."""

        def trained(texts: Iterable[str]) -> Tokenizer:
            return Tokenizer.of(texts, config)

        if config.joint:
            both = trained(text for pair in pairs() for text in pair.texts)
            return cls(both, both)
        return cls(trained(pair.source for pair in pairs()), trained(pair.target for pair in pairs()))

    @classmethod
    def load(cls, folder: Path, *, joint: bool) -> Self:
        source = Tokenizer.load(folder / SOURCE)
        return cls(source, source if joint else Tokenizer.load(folder / TARGET))

    def save(self, folder: Path) -> None:
        """Write the tokenizers; one file where both languages share one."""
        self.source.save(folder / SOURCE)
        if self.target is not self.source:
            self.target.save(folder / TARGET)

    @property
    def vocab_size(self) -> int:
        """The vocabulary size of the source."""
        return self.source.vocab_size

    @property
    def sizes(self) -> tuple[int, int]:
        """The vocabulary sizes of source and target."""
        return self.source.vocab_size, self.target.vocab_size


PairData = TrainingData[TokenStore, Tokenizers, None]


def validation_texts(data: PairData, limit: int | None = None) -> tuple[list[str], list[str]]:
    """Return sources and references for validation, at most `limit` of them, spread evenly over all.

    They are decoded from their ids: the tokenizer loses nothing.
    """
    rows = [data.valid[row] for row in spread_evenly(len(data.valid), limit)]
    sources = [data.tokenizer.source.decode(source) for source, _ in rows]
    return sources, [data.tokenizer.target.decode(target) for _, target in rows]


def has_single_sentences(data: PairData) -> bool:
    """Whether nearly every source is a single sentence: such a model loses what follows the first."""
    rows = spread_evenly(len(data.train), N_SAMPLED)
    texts = (data.tokenizer.source.decode(data.train[row][0]) for row in rows)
    return sum(len(sentences(text)) > 1 for text in texts) < MAX_MULTIPLE_SHARE * len(rows)


def read_set(files: Files, source: str, target: str, reading: PairReport | None = None) -> list[Pair]:
    """Return every pair of a test set, not cleaned: a score over cleaned pairs could be compared with nothing."""
    reading = PairReport() if reading is None else reading
    in_files = read_pairs(files.train, source, target, columns=files.columns, reading=reading)
    pairs = list(in_direction(in_files, source, target, reading))
    if not pairs:
        raise DataError(f"{', '.join(files.train)}: there is no pair to evaluate on")
    return pairs


def split_sentence_pairs(
    config: TranslationConfig, files: Files, scratch: Path
) -> tuple[Split[Pair], DataReport[PairReport]]:
    """Clean the pairs once, into files in `scratch`, and split them.

    No source of the training data is held out; where there are validation files, no pair of them is trained on.
    """
    spools: dict[Sequence[str], Iterable[Pair]] = {}

    def read(paths: Sequence[str], report: PairReport) -> Iterator[Pair]:
        if paths not in spools:
            pairs = read_pairs(paths, config.source, config.target, columns=files.columns, reading=report)
            store = partial(PairSpool, scratch / f"{len(spools)}.tsv")
            spools[paths] = clean(pairs, config.data, config.source, config.target, report, store)
        return iter(spools[paths])

    def digest(pair: Pair) -> bytes:
        return text_digest(*pair.texts) if files.valid else text_digest(pair.source)

    return split_pairs(files, read, PairReport, digest=digest, holdout=config.data.holdout)


class PairSpool:
    """Pairs written to a scratch file, to be read as often as needed. Clean text has no tab and no line end."""

    def __init__(self, path: Path, pairs: Iterable[Pair]) -> None:
        self.path = path
        file_numbers: dict[str, int] = {}  # a file's name may hold anything, so its number is written
        with path.open("w", encoding="utf-8", newline="\n") as file:
            for pair in pairs:
                number = file_numbers.setdefault(pair.file, len(file_numbers))
                file.write(f"{pair.source}\t{pair.target}\t{number}\t{pair.line}\n")
        self._names = list(file_numbers)

    def __iter__(self) -> Iterator[Pair]:
        with self.path.open(encoding="utf-8", newline="\n") as file:
            for row in file:
                source, target, number, line = row.rstrip("\n").split("\t")
                yield Pair(source, target, self._names[int(number)], int(line))


def text_lines(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the white space before each line, the line, and the white space after it with the line break."""
    for line in text.splitlines(keepends=True):
        inner = line.strip()
        begin = line.index(inner)
        yield line[:begin], inner, line[begin + len(inner) :]


def sentences(text: str) -> list[str]:
    """Return the sentences of a text with their marks, without the space between them."""
    edges = [0, *(end.end() for end in SENTENCE_END.finditer(text)), len(text)]
    parts = (text[begin:end].strip() for begin, end in pairwise(edges))
    return [part for part in parts if part]


def parts_within(text: str, limit: int, room: int | None, n_tokens: Callable[[str], int]) -> list[str]:
    """Cut a text at sentence ends into as few parts as possible, each with at most `limit` tokens.

    A sentence that is longer is kept whole where it has room. Otherwise it is cut at clause ends, or else at spaces.

    Raises:
        DataError: A word alone is too long.
    """
    if n_tokens(text) <= limit:
        return [text]
    parts: list[str] = []
    for sentence in sentences(text):
        if (count := n_tokens(sentence)) <= limit or room is None or count <= room:
            pieces = [sentence]
        else:
            pieces = _cut(sentence, limit, n_tokens)
        for piece in pieces:
            joined = f"{parts[-1]} {piece}" if parts else piece
            if parts and n_tokens(joined) <= limit:
                parts[-1] = joined
            else:
                parts.append(piece)
    return parts


def _cut(sentence: str, limit: int, n_tokens: Callable[[str], int]) -> list[str]:
    """Return the clauses of a sentence, and the words of those that are too long."""
    parts: list[str] = []
    for clause in CLAUSE_END.split(sentence):
        parts += [clause] if n_tokens(clause) <= limit else clause.split()
    if longest := next((part for part in parts if n_tokens(part) > limit), None):
        raise DataError(
            f"a word of {n_tokens(longest):,} tokens is longer than the {limit:,} that this model reads at once: "
            f'"{longest[:40]}…"; break it into shorter ones'
        )
    return parts
