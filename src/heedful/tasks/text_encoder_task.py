"""What runs of text encoders share: settings, tokenizer, token stores, and the weights that training starts from.

A task over texts subclasses `TextEncoderConfig` and `TextEncoderTask`: it says how examples are read and encoded, and
what the head's output is worth. `classification/task.py` is an example.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from torch import nn

from ..config import Config, FamilyConfig, read_mapping
from ..data.published_tokenizer import NAME, ROLES, PublishedTokenizer
from ..data.reader_tokenizer import PiecesConfig, learn_tokenizer
from ..data.report import DataReport
from ..data.store import Encoded, TokenStore
from ..errors import ConfigError, DataError
from ..families import build, config_of
from ..families.reader import ReaderConfig
from ..training.config import TrainingConfig
from ..training.objective import B
from .run import Files, RunConfig, Task, TrainingData
from .run.data import START, TRAIN, VALID, Split, write_start_weights
from .run.task import DATA, settings_json
from .text_encoder import PretrainedEncoder, load_start_weights

PRESET = "bert-mini"
LABELS = "labels.json"
TOKENIZER, BASE = "the tokeniser settings", "the base"


@dataclass(frozen=True, kw_only=True)
class TextConfig(Config):
    """`max_tokens` of a text are read, with what stands around it: as many as the model can unless given.

    Without validation files, `holdout` texts (at most a tenth) are set apart.
    """

    title: ClassVar[str] = "data"

    max_tokens: int | None = None
    holdout: int = 1000

    def check(self) -> None:
        self.require_positive("holdout")
        self.require(
            self.max_tokens is None or self.max_tokens >= 4, f"max_tokens must be 4 or more, not {self.max_tokens}"
        )


@dataclass(frozen=True, kw_only=True)
class TextEncoderConfig(RunConfig):
    """`base` is a model to start from, a bundle or a published one: then its config and its tokenizer are the run's."""

    preset: ClassVar[str] = PRESET
    head: ClassVar[str]
    from_scratch: ClassVar[TrainingConfig]  # the training settings without a base
    fine_tuning: ClassVar[TrainingConfig]  # and those with one

    base: str | None = None
    data: TextConfig = field(default_factory=TextConfig)
    tokenizer: PiecesConfig = field(default_factory=PiecesConfig)
    model: FamilyConfig = field(default_factory=lambda: config_of(PRESET))

    def check(self) -> None:
        self.require(
            isinstance(self.model, ReaderConfig),
            f"a model of the family {self.model.title!r} does not read as BERT and its kin do",
        )
        room = getattr(self.model, "max_length", None)
        self.require(
            room is None or self.data.max_tokens is None or self.data.max_tokens <= room,
            f"data.max_tokens={self.data.max_tokens} is more than the model's max_length={room}",
        )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """As a file says it. With a base, the model is the base's, with the changes that are given."""
        given = dict(values)
        model = given.get("model", {})
        if given.get("base") is not None:
            if isinstance(model, str) or (isinstance(model, Mapping) and "preset" in model):
                raise ConfigError(f"{cls.title}: the base {given['base']} is a model already; leave out the preset")
            if isinstance(model, Mapping) and "family" not in model:
                base = PretrainedEncoder.read(str(given["base"]))
                given["model"] = base.config.changed(**{**model, "head": cls.head})
        return super().from_dict(given)

    @classmethod
    def default_training(cls, given: Mapping[str, Any]) -> TrainingConfig:
        """Gentler where there is a base."""
        return cls.from_scratch if given.get("base") is None else cls.fine_tuning

    @property
    def limit(self) -> int:
        """How many tokens of a text are read."""
        assert isinstance(self.model, ReaderConfig)  # checked above
        return self.model.max_length if self.data.max_tokens is None else self.data.max_tokens

    def model_for(self, vocab_size: int, **changes: Any) -> FamilyConfig:
        """The model's config once the data is known; a base has its own vocabulary."""
        vocabulary = {} if self.base is not None else {"vocab_size": vocab_size}
        return self.model.changed(**vocabulary, head=self.head, **changes)


C = TypeVar("C", bound=TextEncoderConfig)
E = TypeVar("E")  # an example, as it is read
M = TypeVar("M")  # what the task must know of its data beside the tokens: its classes, or None


class TextEncoderTask(Task[C, TrainingData[TokenStore, PublishedTokenizer, M], B], Generic[C, E, M, B]):
    """From scratch, or from a model that has read before.

    A task writes `list_files`, `split`, `texts_of`, `encode` and `metadata` for its data, and of `Task` what is still
    abstract: `setup`, `loss`, `validate`, `predictor`, `final_evaluation` and `title`.
    """

    example_name: ClassVar[str] = "texts"
    artifacts: ClassVar[tuple[str, ...]] = (
        NAME,
        ROLES,
        *(f"{DATA}/{name}" for name in (TRAIN, VALID, START, NAME, ROLES)),
    )
    frozen_settings: ClassVar[tuple[str, ...]] = (TOKENIZER, BASE)

    def data_settings(self, config: C, files: Files) -> dict[str, str]:
        """Lengths, pieces, and the base, which is copied into the run and not needed any more."""
        return {
            "the data settings": settings_json(config.data, max_tokens=config.limit),
            TOKENIZER: settings_json(config.tokenizer),
            BASE: str(config.base),
        }

    @abstractmethod
    def split(self, config: C, files: Files) -> tuple[Split[E], DataReport[Any]]:
        """Read everything once: what there is, and what is set apart for validation."""

    @abstractmethod
    def texts_of(self, example: E) -> Iterable[str]:
        """What a tokenizer is learned from."""

    @abstractmethod
    def encode(
        self, config: C, examples: Iterable[E], tokenizer: PublishedTokenizer, metadata: M, report: Any
    ) -> Iterator[Encoded]:
        """The rows of a token store; what is cut or left out is counted in the report of its split."""

    @abstractmethod
    def metadata(self, report: DataReport[Any]) -> M:
        """What the task must know of the data that was read; None where that is nothing."""

    @abstractmethod
    def read_metadata(self, folder: Path) -> M:
        """What `write_metadata` has written."""

    def write_metadata(self, folder: Path, metadata: M) -> None:
        """Keep it in the run's data folder."""

    def store_vocab_size(self, config: C, tokenizer: PublishedTokenizer, metadata: M) -> int:
        """More than any number in a row of a store."""
        return tokenizer.largest + 1

    def prepare(
        self, config: C, files: Files, folder: Path, *, keep: bool = False
    ) -> tuple[TrainingData[TokenStore, PublishedTokenizer, M], DataReport[Any]]:
        """Read, settle the tokenizer and the metadata, which `keep` leaves as they are, and write the stores."""
        split, report = self.split(config, files)
        metadata = self.read_metadata(folder) if keep else self.metadata(report)
        texts = (text for example in split.train() for text in self.texts_of(example))
        tokenizer = prepare_tokenizer(config, folder, texts, keep=keep)
        self.write_metadata(folder, metadata)
        size = self.store_vocab_size(config, tokenizer, metadata)

        def write(name: str, examples: Iterable[E], part: Any) -> TokenStore:
            rows = self.encode(config, examples, tokenizer, metadata, part)
            return TokenStore.write(folder / name, rows, vocab_size=size)

        train = write(TRAIN, split.train(), report.train)
        valid = write(VALID, split.valid(), report.valid or report.train)
        return TrainingData(folder, train, valid, tokenizer, metadata), report

    def open(self, config: C, folder: Path) -> TrainingData[TokenStore, PublishedTokenizer, M]:
        """The stores, the tokenizer and the metadata."""
        metadata = self.read_metadata(folder)
        stores = TokenStore(folder / TRAIN), TokenStore(folder / VALID)
        return TrainingData(folder, *stores, PublishedTokenizer.load(folder / NAME), metadata)

    def model_config(self) -> FamilyConfig:
        """For the tokenizer's vocabulary."""
        return self.config.model_for(self.data.tokenizer.largest + 1)

    def build(self) -> nn.Module:
        """With fresh weights, or below the head with those of the base."""
        module = build(self.model_config())
        start = self.data.start_weights()
        if start is not None:
            load_start_weights(module, start)
        return module


def prepare_tokenizer(
    config: TextEncoderConfig, folder: Path, texts: Iterable[str], *, keep: bool
) -> PublishedTokenizer:
    """The base's tokenizer, its weights beside it, or one learned from the texts; in the folder.

    With `keep`, the one that is there: a run that has trained has no other.
    """
    if keep:
        return PublishedTokenizer.load(folder / NAME)
    if config.base is None:
        tokenizer = learn_tokenizer(texts, config.tokenizer)
        (folder / START).unlink(missing_ok=True)
    else:
        base = PretrainedEncoder.read(config.base)
        tokenizer = base.tokenizer
        write_start_weights(folder / START, base.weights(config.head))
    tokenizer.save(folder / NAME)
    return tokenizer


def read_labels(folder: Path) -> tuple[str, ...]:
    """The classes of a run, in the order of their numbers."""
    try:
        return tuple(read_mapping(folder / LABELS)["labels"])
    except (ConfigError, KeyError, TypeError) as error:
        raise DataError(f"{folder / LABELS}: the classes cannot be read: {error}") from None
