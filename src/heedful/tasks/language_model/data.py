"""From text files to ids in a run's folder: surveyed, cut in training and validation, tokenised once, memory-mapped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

from ...config import read_mapping, write_mapping
from ...data.corpus import Corpus, CorpusReading, Passage, text_files
from ...data.published_tokenizer import NAME, PublishedTokenizer
from ...data.store import Encoded, TokenStore
from ...data.text_tokenizers import encode_passages, end_of, of_characters, of_pieces
from ...data.windows import Row
from ...errors import ConfigError, DataError
from ..run import DataReport, Files, TooLittleDataError, TrainingData
from ..run.data import TRAIN, VALID
from .config import LanguageModelConfig, TextTokenizerConfig

SIZES = "sizes.json"


@dataclass(frozen=True)
class CorpusSizes:
    """What ids do not tell: how large the validation text is, the token that a text is taken to follow, and the one
    that ends a document, where the training text has several."""

    characters: int
    bytes: int
    start: int
    end: int | None


CorpusData = TrainingData[TokenStore, PublishedTokenizer, CorpusSizes]


def open_corpus(folder: Path) -> CorpusData:
    """What `prepare_corpus` has written. The validation row begins with a token that is read and not scored."""
    try:
        sizes = CorpusSizes(**read_mapping(folder / SIZES))
    except (ConfigError, TypeError) as error:  # not there, or other keys
        raise DataError(f"{folder / SIZES} is not as it was written: {error}") from None
    stores = TokenStore(folder / TRAIN), TokenStore(folder / VALID)
    return TrainingData(folder, *stores, PublishedTokenizer.load(folder / NAME), sizes)


def prepare_corpus(
    config: LanguageModelConfig, files: Files, folder: Path, *, tokenizer: PublishedTokenizer | None = None
) -> tuple[CorpusData, DataReport[CorpusReading]]:
    """Survey, learn the tokeniser unless it is given, and write the ids."""
    train, valid, report = _surveyed(config, files)
    if tokenizer is None:
        several = report.train.documents > 1
        alphabet = report.train.alphabet | (report.valid.alphabet if report.valid else set())
        tokenizer = _learned(config.tokenizer, train, alphabet, several=several)
    tokenizer.save(folder / NAME)
    end, size = end_of(tokenizer), tokenizer.vocab_size
    stored = TokenStore.write(folder / TRAIN, _encoded(tokenizer, train, end), vocab_size=size)
    row = row_of(stored)
    if len(row) <= config.window:
        raise TooLittleDataError(
            f"the training text has {len(row):,} tokens, too few for one window of {config.window:,} and the token "
            f"after it; give more text, or a smaller context: {max(1, len(row) - 1):,} at most",
            report,
        )
    end = end if end in row else None  # one that was never seen means nothing
    start = _start(tokenizer, row, end)
    goes_on = valid.start > 0  # what is held out follows the training text
    before: Encoded = ([int(row[-1]) if goes_on else start], [], ("the token before", 0))
    counts = _Counts()
    coming = _encoded(tokenizer, counts.counting(valid), end, goes_on=goes_on)
    held = TokenStore.write(folder / VALID, chain([before], coming), vocab_size=size)
    sizes = CorpusSizes(counts.characters, counts.bytes, start, end)
    write_mapping(folder / SIZES, asdict(sizes))
    return TrainingData(folder, stored, held, tokenizer, sizes), report


def row_of(store: TokenStore) -> Row:
    """All ids of a store, one after the other."""
    return store.flat


def _surveyed(config: LanguageModelConfig, files: Files) -> tuple[Corpus, Corpus, DataReport[CorpusReading]]:
    reading = CorpusReading()
    text = Corpus(tuple(text_files(files.train, reading)))
    if files.valid:
        valid_reading = CorpusReading()
        valid = Corpus(tuple(text_files(files.valid, valid_reading)))
        both = {path.resolve() for path in text.files} & {path.resolve() for path in valid.files}
        if both:
            raise DataError(f"{min(both)} is given for training and for validation; the score would be of memory")
        text.survey(reading)
        valid.survey(valid_reading)
        return text, valid, DataReport(reading, valid_reading, extra={"held_out": 0})
    text.survey(reading)
    cut = int(reading.characters * (1 - config.data.holdout))
    n_held_out = reading.characters - cut
    report = DataReport(reading, None, n_held_out, extra={"held_out": n_held_out})
    if not 0 < cut < reading.characters:
        raise TooLittleDataError(
            f"{reading.characters:,} characters are too few to hold out {config.data.holdout:g} of them; "
            "give more text, or validation text of your own (--valid)",
            report,
        )
    return Corpus(text.files, 0, cut), Corpus(text.files, cut), report


def _learned(config: TextTokenizerConfig, train: Corpus, alphabet: set[str], *, several: bool) -> PublishedTokenizer:
    """Characters are those of all the text, validation included: which there are tells nothing of how they follow."""
    if config.kind == "characters":
        return of_characters(alphabet, end=several)
    texts = (passage.text for passage in train)
    return of_pieces(texts, vocab_size=config.vocab_size, min_frequency=config.min_frequency)


def _encoded(
    tokenizer: PublishedTokenizer, passages: Iterable[Passage], end: int | None, *, goes_on: bool = False
) -> Iterator[Encoded]:
    """Rows of a store: the passages, and before a document that follows another one, the end of that."""
    for passage, ids in encode_passages(tokenizer, passages):
        between = [end] if passage.begins and goes_on and end is not None else []
        yield [*between, *ids.tolist()], [], (passage.file, passage.line)
        goes_on = True


def _start(tokenizer: PublishedTokenizer, row: Row, end: int | None) -> int:
    """What a text may be taken to follow: the end of another one, a line, a space; or how the training text begins."""
    known = (end, tokenizer.id_of("\n"), tokenizer.id_of(" "))
    return next((index for index in known if index is not None), int(row[0]))


class _Counts:
    """Characters and bytes of passages that stream by."""

    def __init__(self) -> None:
        self.characters = self.bytes = 0

    def counting(self, passages: Iterable[Passage]) -> Iterator[Passage]:
        for passage in passages:
            self.characters += len(passage.text)
            self.bytes += len(passage.text.encode("utf-8"))
            yield passage
