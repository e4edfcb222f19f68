"""What every task of a text encoder shares: the predictor, the settings, the data, and the weights to start from.

A task over texts subclasses `TextEncoderPredictor`, `TextEncoderConfig` and `TextEncoderTask`: it says how examples are
read and encoded, and what the head's output is worth. `masked/` and `classification/` are examples.

Shapes: B batch, T tokens.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import torch
from torch import Tensor, nn

from ..config import Config, FamilyConfig, read_mapping
from ..data.published_tokenizer import NAME, ROLES, PublishedTokenizer
from ..data.report import DataReport
from ..data.store import Encoded, TokenStore
from ..data.text_tokenizers import PiecesConfig, learn_tokenizer
from ..errors import ConfigError, DataError
from ..families import Imported, build, config_of
from ..families.encoder_only import EncoderOnlyConfig
from ..families.hf_io import read_checkpoint
from ..families.weights import put_weights, weights_of
from ..files import write_text
from ..lens.tokens import tokens_of
from ..lens.trace import trace
from ..training.config import TrainingConfig
from ..training.objective import B
from .bundle import Bundle, hf_tokenizer, is_bundle, sized_tokenizer
from .inspection.document import EMPTY, Inspection, check_options, ranked_classes
from .predictor import Predictor, plain, within
from .run import Files, RunConfig, Task, TrainingData
from .run.task import DATA, START, TRAIN, VALID, Split, settings_json, write_start_weights

BATCH_TOKENS = 4096  # read at once, padding included
SEGMENTS = "token_type_ids"  # as transformers calls them
HEAD = "head."  # before the names of a head's weights
PRESET = "bert-mini"
LABELS = "labels.json"
SEPARATOR = " | "  # between two texts that are shown as one
TOKENIZER, BASE = "the tokeniser settings", "the base"

FROM_SCRATCH = TrainingConfig(
    epochs=10,
    label_smoothing=0.0,
    learning_rate=5e-4,
    schedule="cosine",
    warmup_steps=200,
    weight_decay=0.01,
    validate_every=250,
)
FINE_TUNING = FROM_SCRATCH.changed(epochs=3, learning_rate=5e-5, warmup_steps=50, betas=(0.9, 0.999), epsilon=1e-8)

Text = str | tuple[str, str]  # two texts where a model compares them
Output = TypeVar("Output")


class Row(NamedTuple):
    """A text in ids, and which of two texts each id belongs to, where the model wants to know."""

    ids: list[int]
    segments: list[int] | None


class InspectedText(NamedTuple):
    """What was read of a text, the answer as a person reads it, and probabilities to show, where there are any."""

    row: Row
    answer: str | None = None
    probabilities: Mapping[str, float] | None = None


class TextEncoderPredictor(Predictor[Text, Output], Generic[Output]):
    """An encoder over a tokenizer of any make; a task says what its output means.

    A published model is read with the `head` of a task, and `checkpoint_settings` says what the task's settings are.
    """

    head: ClassVar[str]
    batch_method: ClassVar[str | None] = "outputs"
    tokenizer: PublishedTokenizer

    def __init__(self, config: FamilyConfig, module: nn.Module, settings: Any, tokenizer: PublishedTokenizer) -> None:
        super().__init__(config, module, settings)
        self.tokenizer = tokenizer

    def outputs(self, texts: Sequence[Text]) -> list[Tensor]:
        """What the module says of each text, on the CPU: (C,), (D,), or of each token that is `needed`, (…, V).

        Texts of similar length are read together; an answer does not depend on the others.
        """
        return self.read_rows([self._numbered(text, index) for index, text in enumerate(self._listed(texts))])

    def read_rows(self, rows: Sequence[Row]) -> list[Tensor]:
        """`outputs` of texts that are in ids already."""
        outputs: dict[int, Tensor] = {}
        for batch in _batches([len(row.ids) for row in rows]):
            for index, output in zip(batch, self._read([rows[index] for index in batch]), strict=True):
                outputs[index] = self.needed(rows[index], output)
        return [outputs[index] for index in range(len(rows))]

    def needed(self, row: Row, output: Tensor) -> Tensor:
        """What is kept of a text's output: all of it, unless a task needs less."""
        return output

    @torch.inference_mode()
    def _read(self, rows: Sequence[Row]) -> list[Tensor]:
        device = next(self.module.parameters()).device
        lengths = [len(row.ids) for row in rows]
        ids, segments = torch.zeros(2, len(rows), max(lengths), dtype=torch.long)
        for place, row in enumerate(rows):
            ids[place, : lengths[place]] = torch.tensor(row.ids)
            if row.segments is not None:
                segments[place, : lengths[place]] = torch.tensor(row.segments)
        keep = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
        known = segments.to(device) if rows[0].segments is not None else None
        out = self.module(ids.to(device), keep.to(device), segments=known).float().cpu()
        return [row[:length] if out.dim() == 3 else row for row, length in zip(out, lengths, strict=True)]

    def prepared(self, text: Any) -> Row:
        """In ids, with what belongs around it."""
        first, second = text if isinstance(text, tuple) and len(text) == 2 else (text, None)
        one, other = plain(first), None if second is None else plain(second)
        ids, segments = self.tokenizer.encode_pair(one, other)
        if not ids:
            raise DataError("it is empty, and this model's tokeniser puts nothing around a text")
        ids = self.fitted(ids, alone=other is None)
        return Row(ids, segments[: len(ids)] if uses_segments(self.module, self.tokenizer) else None)

    def fitted(self, ids: list[int], *, alone: bool) -> list[int]:
        """No more ids than the model reads, of a text `alone` or of two: what is too long is refused."""
        return within(ids, self.module.encoder.positions.limit)

    def inspect(self, item: Any, inspection: Inspection, options: Mapping[str, Any]) -> dict[str, Any]:
        """What was read of a text, and what the model makes of it: see `run_inspected`."""
        check_options(options, self)
        predictor = self.hookable_copy()
        with trace(predictor.module) as seen:
            row, answer, probabilities = predictor.run_inspected(item)
        if not any(text.strip() for text in (item if isinstance(item, tuple) else (item,))):
            raise DataError(EMPTY)
        return {
            "kind": "reading",
            "question": display_text(item),
            "answer": answer,
            "sequences": {"source": tokens_of(self.tokenizer, row.ids)},
            "classes": None if probabilities is None else ranked_classes(probabilities),
            **inspection.internals(self.module, seen),
        }

    def run_inspected(self, item: Any) -> InspectedText:
        """Run one item through the module, once, as one row; a task says what of its answer is shown."""
        row = self.prepared(item)
        self.read_rows([row])
        return InspectedText(row)

    @classmethod
    def from_checkpoint(cls, checkpoint: Imported, folder: Path) -> Self:
        """A published model that was read with this task's head."""
        tokenizer = hf_tokenizer(folder, len(checkpoint.module.embedding.weight))
        settings = cls.checkpoint_settings(checkpoint, folder, tokenizer)
        return cls(checkpoint.config, checkpoint.module, settings, tokenizer)

    @classmethod
    def checkpoint_settings(cls, checkpoint: Imported, folder: Path, tokenizer: PublishedTokenizer) -> Any:
        """The task's settings, as a published folder says them; the usual ones unless a task reads more."""
        return cls.settings_class()

    @classmethod
    def from_bundle(cls, folder: Path, bundle: Bundle) -> Self:
        """The model in a folder."""
        tokenizer = PublishedTokenizer.load(folder / NAME)
        return cls(bundle.model, bundle.module(folder), bundle.settings_as(cls.settings_class, folder), tokenizer)


def display_text(text: Text) -> str:
    """One text, or two as one, for a page."""
    return text if isinstance(text, str) else SEPARATOR.join(text)


def uses_segments(module: Any, tokenizer: PublishedTokenizer) -> bool:
    """Whether a model is told which of two texts a token is of; a table with one row says nothing (RoBERTa)."""
    table = module.embedding.segments
    return table is not None and len(table) > 1 and SEGMENTS in tokenizer.roles.get("model_input_names", [SEGMENTS])


def _batches(lengths: Sequence[int]) -> list[list[int]]:
    """Which texts are read together: the longest first, so that what does not fit is known at once."""
    batches: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        if batches and (len(batches[-1]) + 1) * lengths[batches[-1][0]] <= BATCH_TOKENS:
            batches[-1].append(index)
        else:
            batches.append([index])
    return batches


@dataclass(frozen=True, eq=False)
class PretrainedEncoder:
    """A model to start from: a bundle of masked words, of classes or of embeddings, or a published one."""

    config: EncoderOnlyConfig
    module: nn.Module
    tokenizer: PublishedTokenizer

    @classmethod
    def read(cls, folder: str | Path) -> PretrainedEncoder:
        """A bundle's folder, or one in Hugging Face's layout."""
        folder = Path(folder)
        if is_bundle(folder):
            bundle = Bundle.read(folder)
            config: Any = bundle.model
            module = bundle.module(folder) if isinstance(config, EncoderOnlyConfig) else nn.Identity()
        else:
            checkpoint = read_checkpoint(folder)
            config, module = checkpoint.config, checkpoint.module
        if not isinstance(config, EncoderOnlyConfig):
            raise ConfigError(f"{folder} is of the family {config.family}, which does not read as BERT and its kin do")
        if not (folder / NAME).is_file():
            raise DataError(f"{folder} has no {NAME}; the weights mean nothing without their tokeniser")
        return cls(config, module, sized_tokenizer(folder / NAME, config.vocab_size))

    def weights(self, head: str) -> dict[str, Tensor]:
        """All of them where the head is the same and has no classes, otherwise those below it."""
        whole = head == self.config.head and head not in ("classes", "token-classes")
        return {name: tensor for name, tensor in weights_of(self.module).items() if whole or not name.startswith(HEAD)}


def load_start_weights(module: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Put weights into a module: all below its head and no others, every shape right, or nothing is changed.

    Of the head, what is not given stays as it is.
    """
    head = {name: tensor for name, tensor in weights_of(module).items() if name.startswith(HEAD)}
    put_weights(module, {**head, **weights})


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
    from_scratch: ClassVar[TrainingConfig] = FROM_SCRATCH  # the training settings without a base
    fine_tuning: ClassVar[TrainingConfig] = FINE_TUNING  # and those with one

    base: str | None = None
    data: TextConfig = field(default_factory=TextConfig)
    tokenizer: PiecesConfig = field(default_factory=PiecesConfig)
    model: FamilyConfig = field(default_factory=lambda: config_of(PRESET))
    training: TrainingConfig = field(default_factory=lambda: FROM_SCRATCH)

    def check(self) -> None:
        self.require(
            isinstance(self.model, EncoderOnlyConfig),
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
        assert isinstance(self.model, EncoderOnlyConfig)  # checked above
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

    def write_examples(self, folder: Path, split: Split[E]) -> None:
        """Keep validation examples as they were read, where scores need more than tokens."""

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
        self.write_examples(folder, split)
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


def write_examples(path: Path, examples: Iterable[Any]) -> None:
    """Keep examples, which are dataclasses, as JSON lines."""
    lines = (json.dumps(asdict(example), ensure_ascii=False) for example in examples)
    write_text(path, "".join(f"{line}\n" for line in lines))


def read_examples(path: Path, make: Callable[[dict[str, Any]], E]) -> list[E]:
    """What `write_examples` has written, each made again of its values."""
    try:
        with path.open(encoding="utf-8") as lines:
            return [make(json.loads(line)) for line in lines]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DataError(f"{path}: the validation examples cannot be read: {error}") from None
