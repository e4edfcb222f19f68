"""Running text: the settings of a run, and its files as ids: surveyed, cut in two, tokenized once, memory-mapped."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from typing import ClassVar, Literal, get_type_hints

import torch

from ...config import Config, FamilyConfig, read_mapping, write_mapping
from ...core import DecoderOnly
from ...data.corpus import Corpus, Passage, text_files
from ...data.published_tokenizer import NAME, PublishedTokenizer
from ...data.report import CorpusReport
from ...data.store import Encoded, TokenStore
from ...data.text_batch import Row
from ...data.text_tokenizers import encode_passages, end_of, of_characters, of_pieces
from ...data.tokenizer import FIRST_PIECE
from ...errors import ConfigError, DataError
from ...families import FAMILIES, build, config_of
from ...generation import GenerationConfig
from ...training.config import TrainingConfig
from ..run import DataReport, Files, RunConfig, TooLittleDataError, TrainingData
from ..run.task import TRAIN, VALID
from .predictor import LENGTH

PRESET = "gpt2-tiny"
SIZES = "sizes.json"


@dataclass(frozen=True, kw_only=True)
class TextTokenizerConfig(Config):
    """`kind`: "characters" makes each a token; "bpe" learns `vocab_size` pieces, from what occurs `min_frequency`
    times, and spells the rest in bytes."""

    title: ClassVar[str] = "tokenizer"

    kind: Literal["bpe", "characters"] = "bpe"
    vocab_size: int = 8000
    min_frequency: int = 2

    def check(self) -> None:
        self.require_positive("min_frequency")
        self.require(
            self.vocab_size > FIRST_PIECE,
            f"vocab_size must be at least {FIRST_PIECE + 1}, which is 3 special ids, 256 bytes and the space, "
            f"not {self.vocab_size}",
        )


@dataclass(frozen=True, kw_only=True)
class RunningTextConfig(Config):
    """Without validation files, the last `holdout` of the text is set apart, counted in characters."""

    title: ClassVar[str] = "data"

    holdout: float = 0.1

    def check(self) -> None:
        self.require(0 < self.holdout < 1, f"holdout is a share between 0 and 1, not {self.holdout}")


@dataclass(frozen=True, kw_only=True)
class LanguageModelConfig(RunConfig):
    """With which text, tokens, model, training and sampling.

    `context`: how many tokens a window has; None for as many as the model reads (its max_length).
    `stride`: when training is over, a window is scored every so many tokens, so that each token is predicted from at
    least context − stride before it; None for half the context. A validation on the way has windows side by side.
    """

    preset: ClassVar[str] = PRESET

    data: RunningTextConfig = field(default_factory=RunningTextConfig)
    tokenizer: TextTokenizerConfig = field(default_factory=TextTokenizerConfig)
    context: int | None = None
    stride: int | None = None
    model: FamilyConfig = field(default_factory=lambda: config_of(PRESET))
    training: TrainingConfig = field(
        default_factory=lambda: TrainingConfig(
            steps=5000,
            label_smoothing=0.0,
            schedule="cosine",
            warmup_steps=100,
            min_lr_ratio=0.1,
            weight_decay=0.1,
            betas=(0.9, 0.99),
            epsilon=1e-8,
            validate_every=500,
        )
    )
    generation: GenerationConfig = field(
        default_factory=lambda: GenerationConfig(sample=True, temperature=0.8, max_new_tokens=2 * LENGTH)
    )

    def check(self) -> None:
        self.require_positive("context", "stride")
        self.require(
            _continues(self.model),
            f"a model of the family {self.model.title!r} does not continue text; one that does is gpt2 or llama",
        )
        room: int | None = getattr(self.model, "max_length", None)
        self.require(
            self.context is not None or room is not None,
            f"a model of the family {self.model.title!r} has no max_length; give the context",
        )
        self.require(
            self.context is None or room is None or self.context <= room,
            f"context={self.context} is more than the model reads; give model.max_length={self.context} too",
        )
        self.require(
            self.stride is None or self.stride <= self.window,
            f"stride={self.stride} would leave tokens out; it goes from 1 to the context, {self.window}",
        )

    @property
    def window(self) -> int:
        """T, the tokens of a window."""
        if self.context is not None:
            return self.context
        length: int = self.model.max_length  # type: ignore[attr-defined]  # checked above
        return length

    @property
    def batch(self) -> int:
        """B, the windows of a batch."""
        return max(1, self.training.batch_tokens // self.window)


def _continues(model: FamilyConfig) -> bool:
    """Whether it is a decoder alone, as its family's builder says. One that makes several kinds makes it without
    memory, for which torch imports its compiler: that takes seconds."""
    made = get_type_hints(FAMILIES[model.family].build).get("return")
    if isinstance(made, type):
        return issubclass(made, DecoderOnly)
    with torch.device("meta"):
        return isinstance(build(model), DecoderOnly)


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
) -> tuple[CorpusData, DataReport[CorpusReport]]:
    """Survey, learn the tokeniser unless it is given, and write the ids."""
    train, valid, report = _surveyed(config, files)
    if tokenizer is None:
        several = report.train.total > 1
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


def _surveyed(config: LanguageModelConfig, files: Files) -> tuple[Corpus, Corpus, DataReport[CorpusReport]]:
    reading = CorpusReport()
    text = Corpus(tuple(text_files(files.train, reading)))
    if files.valid:
        valid_reading = CorpusReport()
        valid = Corpus(tuple(text_files(files.valid, valid_reading)))
        both = {path.resolve() for path in text.files} & {path.resolve() for path in valid.files}
        if both:
            raise DataError(f"{min(both)} is given for training and for validation; the score would be of memory")
        text.survey(reading)
        valid.survey(valid_reading)
        reading.extra["held_out"] = 0
        return text, valid, DataReport(reading, valid_reading)
    text.survey(reading)
    cut = int(reading.characters * (1 - config.data.holdout))
    n_held_out = reading.characters - cut
    reading.extra["held_out"] = n_held_out
    report = DataReport(reading, None, n_held_out)
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
