"""Running text: the settings of a run, and how its files are split, tokenized and counted."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_type_hints

import torch

from ...config import Config, FamilyConfig
from ...core import DecoderOnly
from ...data.corpus import Corpus, Passage, text_files
from ...data.published_tokenizer import PublishedTokenizer
from ...data.report import CorpusReport
from ...data.store import Encoded, TokenStore
from ...data.text_tokenizers import encode_passages, of_characters, of_pieces
from ...data.tokenizer import PiecesConfig
from ...errors import DataError
from ...families import FAMILIES, build, config_of
from ...generation import GenerationConfig
from ...training.config import TrainingConfig
from ..run import DataReport, Files, RunConfig, TooLittleDataError, TrainingData
from .predictor import DEFAULT_MAX_NEW_TOKENS

PRESET = "gpt2-tiny"


@dataclass(frozen=True, kw_only=True)
class TextTokenizerConfig(PiecesConfig):
    """Which kind of tokenizer is trained, and how."""

    kind: Literal["bpe", "characters"] = "bpe"  # Learn pieces, or take every character as a token


@dataclass(frozen=True, kw_only=True)
class RunningTextConfig(Config):
    """How much of the text is held out for validation."""

    title: ClassVar[str] = "data"

    holdout: float = 0.1  # Share of the characters, from the end, for validation, if there are no validation files

    def check(self) -> None:
        self.require(0 < self.holdout < 1, f"holdout must be between 0 and 1, not {self.holdout}")


@dataclass(frozen=True, kw_only=True)
class LanguageModelConfig(RunConfig):
    """The settings of a language model's run. Validations during training use windows side by side."""

    preset: ClassVar[str] = PRESET

    data: RunningTextConfig = field(default_factory=RunningTextConfig)
    tokenizer: TextTokenizerConfig = field(default_factory=TextTokenizerConfig)
    context: int | None = None  # Tokens of a window; None means model.max_length
    # Tokens from one window of the final evaluation to the next; each token is predicted from at
    # least context − stride tokens. None means half the context.
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
        default_factory=lambda: GenerationConfig(
            sample=True, temperature=0.8, max_new_tokens=2 * DEFAULT_MAX_NEW_TOKENS
        )
    )

    def check(self) -> None:
        self.require_positive("context", "stride")
        self.require(
            is_decoder_only(self.model),
            f"a model of the family {self.model.title!r} is not a language model; use gpt2 or llama, for example",
        )
        room: int | None = getattr(self.model, "max_length", None)
        self.require(
            self.context is not None or room is not None,
            f"a model of the family {self.model.title!r} has no max_length; give the context",
        )
        self.require(
            self.context is None or room is None or self.context <= room,
            f"context={self.context} is more than the model reads; set model.max_length={self.context} too",
        )
        self.require(
            self.stride is None or self.stride <= self.window,
            f"stride={self.stride} would leave tokens out; it must be from 1 to the context, {self.window}",
        )

    @property
    def window(self) -> int:
        """T, the number of tokens of a window."""
        if self.context is not None:
            return self.context
        length: int = self.model.max_length  # type: ignore[attr-defined]  # checked above
        return length

    @property
    def batch(self) -> int:
        """B, the number of windows in a batch."""
        return max(1, self.training.batch_tokens // self.window)


def is_decoder_only(model: FamilyConfig) -> bool:
    """Whether the family builds a decoder without an encoder, as its builder's return type says.

    A family that builds several wirings builds one on the meta device. That is the slower way: torch imports its
    compiler for it, which takes seconds.
    """
    wiring = get_type_hints(FAMILIES[model.family].build).get("return")
    if isinstance(wiring, type):
        return issubclass(wiring, DecoderOnly)
    with torch.device("meta"):
        return isinstance(build(model), DecoderOnly)


@dataclass(frozen=True)
class CorpusSizes:
    """What the token ids do not say about a corpus."""

    characters: int  # of the validation text
    bytes: int  # of the validation text in UTF-8
    start: int  # the token that stands before a text
    end: int | None  # the token between documents; None where the training text has only one document


CorpusData = TrainingData[TokenStore, PublishedTokenizer, CorpusSizes]


def split_corpus(config: LanguageModelConfig, files: Files) -> tuple[Corpus, Corpus, DataReport[CorpusReport]]:
    """Return the training text, the validation text and a report of both."""
    report = DataReport(CorpusReport())
    text = Corpus(tuple(text_files(files.train, report.train)))
    if files.valid:
        report.valid = CorpusReport()
        valid = Corpus(tuple(text_files(files.valid, report.valid)))
        in_both = {path.resolve() for path in text.files} & {path.resolve() for path in valid.files}
        if in_both:
            raise DataError(f"{min(in_both)} is given for both training and validation; the score would be invalid")
        text.survey(report.train)
        valid.survey(report.valid)
        report.train.extra["held_out"] = 0
        return text, valid, report
    text.survey(report.train)
    n_characters = report.train.characters
    n_train = int(n_characters * (1 - config.data.holdout))
    report.held_out = report.train.extra["held_out"] = n_characters - n_train
    if not 0 < n_train < n_characters:
        raise TooLittleDataError(
            f"{n_characters:,} characters are too few to hold out {config.data.holdout:g} of them; "
            "give more text, or validation text of your own (--valid)",
            report,
        )
    return Corpus(text.files, 0, n_train), Corpus(text.files, n_train), report


def train_tokenizer(config: TextTokenizerConfig, train: Corpus, report: DataReport[CorpusReport]) -> PublishedTokenizer:
    """Train a tokenizer; one of characters has those of the validation text too, as no model learns from that."""
    if config.kind == "characters":
        alphabet = report.train.alphabet | (report.valid.alphabet if report.valid else set())
        return of_characters(alphabet, end=report.train.total > 1)
    texts = (passage.text for passage in train)
    return of_pieces(texts, vocab_size=config.vocab_size, min_frequency=config.min_frequency)


def encode_corpus(
    tokenizer: PublishedTokenizer, passages: Iterable[Passage], end: int | None, *, continues: bool = False
) -> Iterator[Encoded]:
    """Yield the rows of a store: the passages, with an end token between two documents.

    `continues` says that other text comes before these passages.
    """
    for passage, ids in encode_passages(tokenizer, passages):
        between = [end] if passage.begins and continues and end is not None else []
        yield [*between, *ids.tolist()], [], (passage.file, passage.line)
        continues = True
