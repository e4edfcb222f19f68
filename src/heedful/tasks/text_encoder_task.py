"""Training a text encoder: settings, data, and the weights that training starts from.

A task subclasses `TextEncoderConfig` and `TextEncoderTask` and says how examples are read, encoded and scored.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import torch
from torch import Tensor, nn

from ..config import Config, FamilyConfig, read_mapping, write_mapping
from ..core import padding
from ..data.labeled_texts import text_digest
from ..data.published_tokenizer import NAME, ROLES, PublishedTokenizer
from ..data.report import DataReport, TextReport
from ..data.store import Encoded, TokenStore
from ..data.text_batch import TextBatch, TextLoader
from ..data.text_tokenizers import learn_tokenizer
from ..data.tokenizer import PiecesConfig
from ..errors import ConfigError, DataError
from ..families import build, config_of
from ..families.encoder_only import EncoderOnlyConfig
from ..families.hf_io import read_checkpoint
from ..families.weights import put_weights, weights_of
from ..training.config import TrainingConfig
from ..training.objective import B
from .bundle import Bundle, is_bundle, sized_tokenizer
from .run import Files, RunConfig, Task, TooLittleDataError, TrainingData
from .run.task import DATA, START, TRAIN, VALID, Split, settings_json, split_examples, write_start_weights

HEAD = "head."  # prefix of the names of a head's weights
PRESET = "bert-mini"
METADATA = "metadata.json"
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
    def read(cls, folder: str | Path) -> PretrainedEncoder:
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
class TextEncoderConfig(RunConfig):
    """The settings of a run. `base` is a model to start from: its config and its tokenizer are then the run's."""

    preset: ClassVar[str] = PRESET
    head: ClassVar[str]
    from_scratch: ClassVar[TrainingConfig] = FROM_SCRATCH  # the default training settings without a base
    fine_tuning: ClassVar[TrainingConfig] = FINE_TUNING  # and with one

    base: str | None = None  # Folder of a model to start from, with its tokenizer; None starts from scratch
    data: TextConfig = field(default_factory=TextConfig)
    tokenizer: PiecesConfig = field(default_factory=PiecesConfig)
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
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read settings from a file. With a base, the model is the base's, with the changes in `values`."""
        values = dict(values)
        model, folder = values.get("model", {}), values.get("base")
        if folder is not None:
            if isinstance(model, str) or (isinstance(model, Mapping) and "preset" in model):
                raise ConfigError(f"{cls.title}: the base {folder} is a model already; leave out the preset")
            if isinstance(model, Mapping) and "family" not in model:
                base = PretrainedEncoder.read(str(folder))
                values["model"] = base.config.changed(**{**model, "head": cls.head})
        return super().from_dict(values)

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
    """What a task must know of its training data beside the tokens: the names of the classes, if it has any."""

    title: ClassVar[str] = "metadata"

    labels: tuple[str, ...] = ()


class TextExample(Protocol):
    """An example that knows where it was read."""

    @property
    def place(self) -> str: ...


C = TypeVar("C", bound=TextEncoderConfig)
E = TypeVar("E", bound=TextExample)
M = TypeVar("M", bound=TextMetadata)

TextData = TrainingData[TokenStore, PublishedTokenizer, M]


class TextEncoderTask(Task[C, TextData[M], B], Generic[C, E, M, B]):
    """A task on a text encoder, trained from scratch or from a pretrained model.

    A task writes `list_files`, `read`, `texts_of`, `encode` and (with classes) `metadata` for its data, and the
    abstract methods of `Task` that are left: `setup`, `loss`, `validate`, `predictor`, `final_evaluation`, `title`.
    """

    example_name: ClassVar[str] = "texts"
    artifacts: ClassVar[tuple[str, ...]] = (
        NAME,
        ROLES,
        *(f"{DATA}/{name}" for name in (TRAIN, VALID, START, NAME, ROLES, METADATA)),
    )
    frozen_settings: ClassVar[tuple[str, ...]] = (TOKENIZER, BASE)
    metadata_class: ClassVar[type[Any]] = TextMetadata
    stratified: ClassVar[bool] = False  # hold out a part of the examples with each label
    uses_segments: bool = False  # set by `setup` of a task with pairs of texts

    # From files to rows of a token store.

    def data_settings(self, config: C, files: Files) -> dict[str, str]:
        """Return columns, lengths, tokenizer and base; the base is copied into the run and not needed again."""
        return {
            "the columns": json.dumps(files.columns),
            "the data settings": settings_json(config.data, max_tokens=config.limit),
            TOKENIZER: settings_json(config.tokenizer),
            BASE: str(config.base),
        }

    @abstractmethod
    def read(
        self, config: C, columns: Sequence[str] | None, paths: Sequence[str], report: TextReport | None
    ) -> Iterator[E]:
        """Read the examples of some paths; count them in a report, if there is one."""

    @abstractmethod
    def texts_of(self, example: E) -> tuple[str, ...]:
        """Return the texts of an example, which a tokenizer is trained on."""

    def key_of(self, example: E) -> tuple[str, ...]:
        """Return the texts that identify an example: two with the same key are never on both sides of the split."""
        return self.texts_of(example)

    def label_of(self, example: E) -> str | None:
        """Return the label of an example, which the report counts."""
        return None

    def drop(self, report: TextReport, reason: str, example: E) -> None:
        """Count an example as dropped that was counted as kept."""
        report.drop_kept(reason, example.place, "\t".join(self.texts_of(example)), label=self.label_of(example))

    def split(self, config: C, files: Files) -> tuple[Split[E], DataReport[TextReport]]:
        """Read everything once, and hold out examples for validation if there are no files for it."""
        split, report = split_examples(
            files,
            partial(self.read, config, files.columns),
            TextReport,
            digest=lambda example: text_digest(*self.key_of(example)),
            drop=self.drop,
            wanted=config.data.holdout,
            label=lambda example: self.label_of(example) or "" if self.stratified else "",
        )
        if report.valid is None and not split.set_apart:
            raise TooLittleDataError(
                f"{report.train.kept} {self.example_name} are too few to hold some out for validation; "
                "add data, or give validation files (--valid)",
                report,
            )
        for paths, part in ((files.train, report.train), (files.valid, report.valid)):
            if part is not None and not part.kept:
                raise TooLittleDataError(f"{', '.join(paths)}: no {self.example_name} are left to use", report)
        return split, report

    @abstractmethod
    def encode(
        self, config: C, examples: Iterable[E], tokenizer: PublishedTokenizer, metadata: M, report: TextReport
    ) -> Iterator[Encoded]:
        """Yield the rows of a token store; examples that are truncated or dropped are counted in the report."""

    def metadata(self, report: DataReport[TextReport]) -> M:
        """Return what the task must know of the data that was read."""
        metadata: M = self.metadata_class()
        return metadata

    def write_examples(self, folder: Path, split: Split[E]) -> None:
        """Write validation examples as they were read, if scores need more than tokens."""

    def prepare(
        self, config: C, files: Files, folder: Path, *, keep: bool = False
    ) -> tuple[TextData[M], DataReport[TextReport]]:
        """Read the files and write tokenizer, metadata and stores; `keep` uses the tokenizer and metadata there."""
        split, report = self.split(config, files)
        metadata = self._read_metadata(folder) if keep else self.metadata(report)
        texts = (text for example in split.train() for text in self.texts_of(example))
        tokenizer = prepare_tokenizer(config, folder, texts, keep=keep)
        write_mapping(folder / METADATA, metadata.to_dict())
        self.write_examples(folder, split)
        # A row holds ids, and as targets classes (from 1 on) or places in the text.
        largest = max(tokenizer.largest, len(metadata.labels), config.limit)

        def write(name: str, examples: Iterable[E], part: TextReport) -> TokenStore:
            rows = self.encode(config, examples, tokenizer, metadata, part)
            return TokenStore.write(folder / name, rows, vocab_size=largest + 1)

        train = write(TRAIN, split.train(), report.train)
        valid = write(VALID, split.valid(), report.valid or report.train)
        if report.valid is None:
            report.held_out = len({valid.place(row) for row in range(len(valid))})
        return TrainingData(folder, train, valid, tokenizer, metadata), report

    def open(self, config: C, folder: Path) -> TextData[M]:
        metadata = self._read_metadata(folder)
        stores = TokenStore(folder / TRAIN), TokenStore(folder / VALID)
        return TrainingData(folder, *stores, PublishedTokenizer.load(folder / NAME), metadata)

    def _read_metadata(self, folder: Path) -> M:
        path = folder / METADATA
        try:
            metadata: M = self.metadata_class.from_dict(read_mapping(path))
        except ConfigError as error:
            raise DataError(f"{path}: the metadata of the training data cannot be read: {error}") from None
        return metadata

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


def prepare_tokenizer(
    config: TextEncoderConfig, folder: Path, texts: Iterable[str], *, keep: bool
) -> PublishedTokenizer:
    """Write a tokenizer into a folder: the base's, with its weights beside it, or one trained on the texts.

    With `keep`, load the one in the folder: a run that has trained cannot use another.
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
