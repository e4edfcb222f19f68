"""Training a text encoder: settings, data, and the weights that training starts from.

A task subclasses `TextEncoderConfig` and `TextEncoderTask` and says how examples are read, encoded and scored.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import torch
from torch import Tensor, nn

from ..config import Config, FamilyConfig, read_mapping, write_mapping
from ..core import padding
from ..data.labeled_texts import text_digest
from ..data.pairs import TextExample
from ..data.published_tokenizer import NAME, ROLES, PublishedTokenizer
from ..data.report import DataReport, TextReport
from ..data.store import TokenStore
from ..data.text_batch import TextBatch, TextLoader
from ..data.text_tokenizers import EncoderTokenizerConfig, learn_tokenizer
from ..errors import ConfigError, DataError
from ..families import build, config_of
from ..families.encoder_only import EncoderOnlyConfig
from ..families.hf_io import read_checkpoint
from ..families.weights import put_weights, weights_of
from ..files import write_text
from ..lens.report import ScoredSample
from ..training.config import TrainingConfig
from ..training.objective import B
from .bundle import Bundle, is_bundle, sized_tokenizer
from .run import Files, Refusals, RunConfig, Task, TrainingData
from .run.config import settings_json
from .run.data import DATA, START, TRAIN, VALID, Split, left_out, split_examples, write_start_weights
from .text_encoder import STRIDE

HEAD = "head."  # prefix of the names of a head's weights
PRESET = "bert-mini"
METADATA = "metadata.json"
EXAMPLES = "examples.jsonl"  # examples as they were read, where scores need more than tokens
TOKENIZER, BASE = "the tokenizer settings", "the base"

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


@dataclass(frozen=True, eq=False)
class PretrainedEncoder:
    """A model to start from: the bundle of any text encoder, or a published one."""

    config: EncoderOnlyConfig
    module: nn.Module
    tokenizer: PublishedTokenizer

    @classmethod
    def read(cls, folder: str | Path) -> Self:
        """Read a bundle, or a folder in Hugging Face's layout."""
        folder = Path(folder)
        if is_bundle(folder):
            bundle = Bundle.read(folder)
            config: Any = bundle.model
            module = bundle.module(folder) if isinstance(config, EncoderOnlyConfig) else nn.Identity()
        else:
            checkpoint = read_checkpoint(folder)
            config, module = checkpoint.config, checkpoint.module
        if not isinstance(config, EncoderOnlyConfig):
            raise ConfigError(f"{folder} is of the family {config.family}, which is not a text encoder such as BERT")
        if not (folder / NAME).is_file():
            raise DataError(f"{folder} has no {NAME}; the weights are useless without their tokenizer")
        return cls(config, module, sized_tokenizer(folder / NAME, config.vocab_size))

    def weights(self, head: str) -> dict[str, Tensor]:
        """Return all weights if the head is the same and has no classes, otherwise those below the head."""
        whole = head == self.config.head and head not in ("classes", "token-classes")
        return {name: tensor for name, tensor in weights_of(self.module).items() if whole or not name.startswith(HEAD)}


def load_start_weights(module: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Copy weights into a module; weights of its head that are missing keep their values.

    Below the head, names and shapes must match exactly; otherwise nothing is changed.
    """
    head = {name: tensor for name, tensor in weights_of(module).items() if name.startswith(HEAD)}
    put_weights(module, {**head, **weights})


@dataclass(frozen=True, kw_only=True)
class TextConfig(Config):
    """How texts are read, and how many are held out."""

    title: ClassVar[str] = "data"

    max_tokens: int | None = None  # The most tokens of a text or window; None: model.max_length (questions: up to 384)
    holdout: int = 1000  # Texts for validation, at most a tenth, if there are no validation files

    def check(self) -> None:
        self.require_positive("holdout")
        self.require(
            self.max_tokens is None or self.max_tokens >= 4, f"max_tokens must be 4 or more, not {self.max_tokens}"
        )


@dataclass(frozen=True, kw_only=True)
class WindowedTextConfig(TextConfig):
    """How texts are read, long ones in overlapping windows."""

    stride: int = STRIDE  # Tokens that neighboring windows of a long text share

    def check(self) -> None:
        super().check()
        self.require(self.stride >= 0, f"stride must be 0 or more, not {self.stride}")


@dataclass(frozen=True, kw_only=True)
class TextEncoderConfig(RunConfig):
    """The settings of a run. `base` is a model to start from: its config and its tokenizer are then the run's."""

    preset: ClassVar[str] = PRESET
    head: ClassVar[str]
    from_scratch: ClassVar[TrainingConfig] = FROM_SCRATCH  # the default training settings without a base
    fine_tuning: ClassVar[TrainingConfig] = FINE_TUNING  # and with one

    base: str | None = None  # Folder of a model to start from, with its tokenizer; None starts from scratch
    data: TextConfig = field(default_factory=TextConfig)
    tokenizer: EncoderTokenizerConfig = field(default_factory=EncoderTokenizerConfig)
    model: FamilyConfig = field(default_factory=lambda: config_of(PRESET))
    training: TrainingConfig = field(default_factory=lambda: FROM_SCRATCH)

    def check(self) -> None:
        self.require(
            isinstance(self.model, EncoderOnlyConfig),
            f"a model of the family {self.model.title!r} is not a text encoder such as BERT",
        )
        max_length = getattr(self.model, "max_length", None)
        self.require(
            max_length is None or self.data.max_tokens is None or self.data.max_tokens <= max_length,
            f"data.max_tokens={self.data.max_tokens} is more than the model's max_length={max_length}",
        )

    @classmethod
    def settings_on_base(cls, base: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the model's config, with the head of this task."""
        model = {**values.get("model", {}), "head": cls.head}
        return {"model": PretrainedEncoder.read(base).config.changed(**model)}

    @classmethod
    def default_training(cls, values: Mapping[str, Any]) -> TrainingConfig:
        """Return the defaults of fine-tuning if there is a base."""
        return cls.from_scratch if values.get("base") is None else cls.fine_tuning

    @property
    def limit(self) -> int:
        """The largest number of tokens read at once."""
        assert isinstance(self.model, EncoderOnlyConfig)  # checked above
        return self.model.max_length if self.data.max_tokens is None else self.data.max_tokens

    def model_for(self, vocab_size: int, **changes: Any) -> FamilyConfig:
        """Return the model's config once the data is known; a base keeps its own vocabulary."""
        vocabulary = {} if self.base is not None else {"vocab_size": vocab_size}
        return self.model.changed(**vocabulary, head=self.head, **changes)


@dataclass(frozen=True, kw_only=True)
class TextMetadata(Config):
    """What a task must know of its training data beside the tokens."""

    title: ClassVar[str] = "metadata"

    labels: tuple[str, ...] = ()  # the names of the classes or tags
    can_refuse: bool = False  # some questions have no answer, so the model can learn to refuse
    characters: bool = False  # the words with tags are single characters


C = TypeVar("C", bound=TextEncoderConfig)
E = TypeVar("E", bound=TextExample)

EncodedRow = tuple[Sequence[int], Sequence[int]]  # ids and targets
TextData = TrainingData[TokenStore, PublishedTokenizer, TextMetadata]


class TextEncoderTask(Task[C, TextData, B], Generic[C, E, B]):
    """A task on a text encoder, trained from scratch or from a pretrained model.

    A task writes `list_files`, `read`, `encode` and (with classes) `metadata` for its data, and the
    abstract methods of `Task` that are left: `setup`, `loss`, `validate`, `predictor`, `final_evaluation`, `title`.
    """

    example_name: ClassVar[str] = "texts"
    artifacts: ClassVar[tuple[str, ...]] = (
        NAME,
        ROLES,
        *(f"{DATA}/{name}" for name in (TRAIN, VALID, START, NAME, ROLES, METADATA)),
    )
    frozen_settings: ClassVar[tuple[str, ...]] = (TOKENIZER, BASE)
    stratified: ClassVar[bool] = False  # hold out a part of the examples with each label
    uses_segments: bool = False  # set by `setup` of a task with pairs of texts

    # From files to rows of a token store. `prepare` sets `config` in a copy of the task.

    def data_settings(self, config: C, files: Files) -> dict[str, str]:
        """Return columns, lengths, tokenizer and base; the base is copied into the run and not needed again."""
        return {
            "the columns": json.dumps(files.columns),
            "the data settings": settings_json(config.data, max_tokens=config.limit),
            TOKENIZER: settings_json(config.tokenizer),
            BASE: str(config.base),
        }

    @abstractmethod
    def read(self, columns: Sequence[str] | None, paths: Sequence[str], report: TextReport) -> Iterator[E]:
        """Read the examples of some paths, and count them in the report."""

    def label_of(self, example: E) -> str | None:
        """Return the label of an example, which the report counts."""
        return None

    def drop(self, report: TextReport, reason: str, example: E) -> None:
        """Count an example as dropped that was counted as kept."""
        report.drop_kept(reason, example.place, "\t".join(example.texts), label=self.label_of(example))

    def split(self, files: Files) -> tuple[Split[E], DataReport[TextReport]]:
        """Read everything once, and hold out examples for validation if there are no files for it."""
        return split_examples(
            files,
            lambda paths, report: self.read(files.columns, paths, report or TextReport()),
            TextReport,
            digest=lambda example: text_digest(*example.key),
            drop=self.drop,
            wanted=self.config.data.holdout,
            label=lambda example: self.label_of(example) or "" if self.stratified else "",
            name=self.example_name,
        )

    @abstractmethod
    def encode(
        self, example: E, tokenizer: PublishedTokenizer, metadata: TextMetadata, report: TextReport
    ) -> Iterator[EncodedRow]:
        """Yield the rows of an example in a token store; what is truncated or dropped is counted in the report."""

    def metadata(self, report: DataReport[TextReport]) -> TextMetadata:
        """Return what the task must know of the data that was read."""
        return TextMetadata()

    def tokenizer_config(self, config: C, report: DataReport[TextReport]) -> EncoderTokenizerConfig:
        """Return the settings of a new tokenizer; those that were not chosen may depend on the data."""
        return config.tokenizer

    def write_examples(self, folder: Path, split: Split[E]) -> None:
        """Write validation examples as they were read, if scores need more than tokens."""

    def prepare(
        self, config: C, files: Files, folder: Path, *, keep: bool = False
    ) -> tuple[TextData, DataReport[TextReport]]:
        """Read the files and write tokenizer, metadata and stores; `keep` uses the tokenizer and metadata there."""
        task = copy(self)
        task.config = config
        split, report = task.split(files)
        metadata = read_metadata(folder) if keep else self.metadata(report)
        texts = (text for example in split.train() for text in example.texts)
        tokenizer = prepare_tokenizer(config, self.tokenizer_config(config, report), folder, texts, keep=keep)
        write_mapping(folder / METADATA, metadata.to_dict())
        self.write_examples(folder, split)
        # A row holds ids, and as targets classes (from 1 on) or places in the text.
        largest = max(tokenizer.largest, len(metadata.labels), config.limit)

        def write(name: str, examples: Iterable[E], part: TextReport) -> TokenStore:
            rows = (
                (ids, targets, (example.file, example.line))
                for example in examples
                for ids, targets in task.encode(example, tokenizer, metadata, part)
            )
            return TokenStore.write(folder / name, rows, vocab_size=largest + 1)

        train = write(TRAIN, split.train(), report.train)
        valid = write(VALID, split.valid(), report.valid or report.train)
        if report.valid is None:
            report.held_out = len({valid.place(row) for row in range(len(valid))})
        return TrainingData(folder, train, valid, tokenizer, metadata), report

    def open(self, config: C, folder: Path) -> TextData:
        metadata = read_metadata(folder)
        stores = TokenStore(folder / TRAIN), TokenStore(folder / VALID)
        return TrainingData(folder, *stores, PublishedTokenizer.load(folder / NAME), metadata)

    # The objective.

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the classes, in the order of their ids."""
        return self.data.metadata.labels

    def model_config(self) -> FamilyConfig:
        """Return the model's config for the vocabulary and the classes."""
        classes = {"n_classes": len(self.labels)} if self.labels else {}
        return self.config.model_for(self.data.tokenizer.largest + 1, **classes)

    def build(self) -> nn.Module:
        """Build the module: new weights, or those of the base below the head."""
        module = build(self.model_config())
        start = self.data.start_weights()
        if start is not None:
            load_start_weights(module, start)
        return module

    def identity(self) -> dict[str, str]:
        """Add the names of the classes."""
        return {**super().identity(), **({"labels": json.dumps(self.labels)} if self.labels else {})}

    def forward(self, module: nn.Module, batch: TextBatch) -> Tensor:
        """Return the output of a module for a batch, with segment ids if the model uses them."""
        keep = padding(batch.keep, lengths=batch.lengths, at_the_end=True)
        logits: Tensor = module(batch.ids, keep, segments=batch.segments if self.uses_segments else None)
        return logits

    @torch.inference_mode()
    def mean_loss(self, module: nn.Module, loader: TextLoader) -> float:
        """Return the loss over all rows of a loader, without smoothing."""
        device = next(module.parameters()).device
        total = count = torch.zeros((), device=device)
        for batch in loader.in_order():
            loss = self.loss(module, batch.to(device))  # type: ignore[arg-type]
            total, count = total + loss.plain, count + loss.n
        return float(total / count)


class WindowTask(TextEncoderTask[C, E, TextBatch], Generic[C, E]):
    """A task that trains on windows and validates on whole examples, which it keeps as they were read."""

    artifacts: ClassVar[tuple[str, ...]] = (*TextEncoderTask.artifacts, f"{DATA}/{EXAMPLES}")
    batch_class: ClassVar[type[TextBatch]]
    n_samples: ClassVar[int] = 200  # validation examples in metrics.json

    @abstractmethod
    def parse_example(self, values: dict[str, Any]) -> E:
        """Return the example that these JSON values are of."""

    def item_of(self, example: E) -> Any:
        """Return what the predictor reads of an example."""
        return example.texts

    @abstractmethod
    def scores(self, predictor: Any, examples: Sequence[E]) -> dict[str, Any]:
        """Return the scores of a predictor on some examples, in the form of `evaluate`."""

    def write_examples(self, folder: Path, split: Split[E]) -> None:
        """Write the validation examples as JSON lines, since scores are of texts or words."""
        lines = (json.dumps(asdict(example), ensure_ascii=False) for example in split.valid())  # type: ignore[call-overload]
        write_text(folder / EXAMPLES, "".join(f"{line}\n" for line in lines))

    def setup(self) -> None:
        """Create the batches of windows and read the validation examples."""
        size = self.config.training.batch_tokens
        self.batches = TextLoader(self.data.train, size, seed=self.config.training.seed, batch_class=self.batch_class)
        self.validation = TextLoader(self.data.valid, size, batch_class=self.batch_class)
        path = self.data.folder / EXAMPLES
        try:
            with path.open(encoding="utf-8") as lines:
                self.examples = [self.parse_example(json.loads(line)) for line in lines]
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise DataError(f"{path}: the validation examples cannot be read: {error}") from None

    def validate(self, module: nn.Module) -> dict[str, float]:
        """Return the loss of all windows and the scores of all validation examples."""
        scores = self.scores(self.predictor(module), self.examples)["scores"]
        loss = self.mean_loss(module, self.validation)
        return {"loss": loss} | {name: score["value"] for name, score in scores.items()}

    def evaluate(self, predictor: Any, files: Files, *, strict: bool = False) -> dict[str, Any]:
        """Return every score over the examples of the files, and how many were left out."""
        report, refusals = TextReport(), Refusals(strict=strict)
        read = self.read(files.columns, files.train, report)
        examples = list(refusals.accepted(read, lambda example: predictor.validation_error(self.item_of(example))))
        if not examples:
            raise DataError(f"there are no {self.example_name} to evaluate on")
        scores = self.scores(predictor, examples)
        notes = left_out(report).get("verdict", []) + scores.get("verdict", [])
        return scores | ({"verdict": notes} if notes else {}) | refusals.to_dict()

    def report_sections(self, predictor: Any, metrics: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        return {"samples": [ScoredSample(**sample) for sample in metrics["samples"]]}


def read_metadata(folder: Path) -> TextMetadata:
    """Read the metadata of a run's data folder."""
    path = folder / METADATA
    try:
        return TextMetadata.from_dict(read_mapping(path))
    except ConfigError as error:
        raise DataError(f"{path}: the metadata of the training data cannot be read: {error}") from None


def prepare_tokenizer(
    config: TextEncoderConfig, pieces: EncoderTokenizerConfig, folder: Path, texts: Iterable[str], *, keep: bool
) -> PublishedTokenizer:
    """Write a tokenizer into a folder: the base's, with its weights beside it, or one of `pieces` of the texts.

    With `keep`, load the one in the folder: a run that has trained cannot use another.
    """
    if keep:
        return PublishedTokenizer.load(folder / NAME)
    if config.base is None:
        tokenizer = learn_tokenizer(texts, pieces)
        (folder / START).unlink(missing_ok=True)
    else:
        base = PretrainedEncoder.read(config.base)
        tokenizer = base.tokenizer
        write_start_weights(folder / START, base.weights(config.head))
    tokenizer.save(folder / NAME)
    return tokenizer
