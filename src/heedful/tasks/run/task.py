"""`Task`, the base class of everything that models are trained for, with the settings, files and data of a run."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from ...config import Config, FamilyConfig
from ...data.published_tokenizer import PublishedTokenizer
from ...data.report import FIRST_PLACES, DataReport, SplitReport
from ...data.validation_split import EVERY, held_out, unsplittable
from ...errors import ConfigError, DataError, unknown
from ...families import build, config_of
from ...families.sizes import check_memory
from ...families.weights import put_weights
from ...files import replacing, sha256_of
from ...training.config import TrainingConfig
from ...training.loss import Loss
from ...training.objective import B, Batches, Monitor
from ..rivals import Rival, verdicts

TRAIN, VALID, START = "train", "valid", "start.safetensors"  # in a run's data folder
SCRATCH = ".clean"  # there too, while data is prepared
DATA = "data"  # the data folder of a run
VALIDATION = " (validation)"  # after the name of a file that is read for validation
LIMITS = ("steps", "epochs")  # of `training`


@dataclass(frozen=True, kw_only=True)
class RunConfig(Config):
    """The settings of every run; a task adds its own."""

    title: ClassVar[str] = "run"
    preset: ClassVar[str]  # the model that is trained by default
    supports_r_drop: ClassVar[bool] = False  # the task's loss supports `training.r_drop`
    # The settings that were passed to `from_dict`; `adapted` may change all others to suit the data. None if the config
    # was built directly, in which case nothing adapts.
    explicit: ClassVar[Mapping[str, Any] | None] = None
    chosen: ClassVar[Mapping[str, Any]] = {}  # the settings that `adapted` changed, by dotted name

    model: FamilyConfig
    training: TrainingConfig = field(default_factory=TrainingConfig)

    def __post_init__(self) -> None:  # not in `check`, which every task overrides
        super().__post_init__()
        self.require(
            self.supports_r_drop or not self.training.r_drop,
            f"training.r_drop={self.training.r_drop} is for translation, text to text and classification; "
            "leave it out here, or set it to 0",
        )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read the settings of a file; a model without family or preset changes the base, or the default preset.

        Settings that the file leaves out have the defaults of the task.
        """
        settings = dict(values)
        model, base = settings.get("model", {}), settings.get("base")
        if base is not None:
            if isinstance(model, str) or (isinstance(model, Mapping) and "preset" in model):
                raise ConfigError(f"{cls.title}: the base {base} is a model already; leave out the preset")
            if isinstance(model, Mapping) and "family" not in model:  # a run.yaml is complete already
                settings |= cls.settings_on_base(str(base), settings)
        model = settings.get("model")
        if isinstance(model, Mapping) and not model.keys() & {"preset", "family"}:
            model = {"preset": cls.preset, **model}
        if isinstance(model, Mapping | str):
            settings["model"] = config_of(model)
        training = settings.get("training", {})
        if isinstance(training, Mapping):
            if not training.keys().isdisjoint(LIMITS):  # an explicit limit replaces the default limits
                training = {**dict.fromkeys(LIMITS), **training}
            settings["training"] = cls.default_training(settings).changed(**training)
        for part in fields(cls):
            default = part.default_factory() if callable(part.default_factory) else None
            if part.name != "model" and isinstance(default, Config) and isinstance(settings.get(part.name), Mapping):
                settings[part.name] = default.changed(**settings[part.name])
        config = super().from_dict(settings)
        explicit = {name: value.to_dict() if isinstance(value, Config) else value for name, value in values.items()}
        object.__setattr__(config, "explicit", explicit)  # not a field, so it does not affect equality
        return config

    def adapted(self, defaults: Mapping[str, Mapping[str, Any]]) -> Self:
        """Return the config with these defaults in place of every setting that was not set explicitly.

        With explicit `steps` or `epochs`, the default limits and patience do not apply. A model from a base, or with
        an explicit family, does not change.

        Args:
            defaults: Settings of the sections "training" and "model", as `Task.defaults` returns them.
        """
        if self.explicit is None:
            return self
        values = dict(self.explicit)
        training, model = values.get("training", {}), values.get("model", {})
        if isinstance(training, Mapping):
            suitable = dict(defaults.get("training", {}))
            if not training.keys().isdisjoint(LIMITS):
                suitable = {name: value for name, value in suitable.items() if name not in (*LIMITS, "patience")}
            values["training"] = {**suitable, **training}
        model = {"preset": model} if isinstance(model, str) else model
        if isinstance(model, Mapping) and "family" not in model and values.get("base") is None:
            values["model"] = {**defaults.get("model", {}), **model}
        config = self.from_dict(values)
        object.__setattr__(config, "explicit", self.explicit)
        before = {section: getattr(self, section).to_dict() for section in ("training", "model")}
        chosen = {
            f"{section}.{name}": value
            for section, values in before.items()
            for name, value in getattr(config, section).to_dict().items()
            if values.get(name) != value
        }
        object.__setattr__(config, "chosen", chosen)
        return config

    @classmethod
    def settings_on_base(cls, base: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the settings that a new run takes from a base, with the changes in `values`."""
        return {}

    @classmethod
    def default_training(cls, values: Mapping[str, Any]) -> TrainingConfig:
        """Return the default training settings of a run with these settings."""
        (factory,) = (part.default_factory for part in fields(cls) if part.name == "training")
        training: TrainingConfig = factory()  # type: ignore[operator]  # every task has one
        return training


@dataclass(frozen=True)
class Files:
    """The files of the data. `columns` names columns where no header does, or selects some of them."""

    train: tuple[str, ...]
    valid: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None

    @classmethod
    def from_dict(cls, values: Any) -> Self:
        """Read the section "files" of a settings file."""
        keys = [field.name for field in fields(cls)]
        if not isinstance(values, Mapping) or not values.get("train"):
            raise ConfigError(f"files: a mapping with a list of files to train on is needed, not {values!r}")
        for key, names in values.items():
            if key not in keys:
                raise ConfigError(f"files: {unknown('key', key, keys)}")
            if not isinstance(names, list | tuple | None) or not all(isinstance(name, str) for name in names or ()):
                raise ConfigError(f"files.{key} must be a list of texts, but {names!r} was given")
        return cls(**{key: tuple(names) for key, names in values.items() if names is not None})


class ExampleStore(Protocol):
    """The examples of one split in a run's folder."""

    @property
    def fingerprint(self) -> str: ...

    def __len__(self) -> int: ...

    def place(self, row: int) -> str:
        """Return the file and line of an example."""


StoreT = TypeVar("StoreT", bound=ExampleStore)
TokenizerT = TypeVar("TokenizerT")
MetadataT = TypeVar("MetadataT")


@dataclass(frozen=True, eq=False)
class TrainingData(Generic[StoreT, TokenizerT, MetadataT]):
    """Everything that training needs from the data of a run."""

    folder: Path  # the data folder of the run
    train: StoreT
    valid: StoreT
    tokenizer: TokenizerT  # which encoded the examples; None where there are no tokens
    metadata: MetadataT  # what else the task needs, such as the names of the classes

    def start_weights(self) -> dict[str, Tensor] | None:
        """Return the weights that training starts from; None for a run without a base."""
        path = self.folder / START
        try:
            return load_file(path) if path.exists() else None
        except (SafetensorError, OSError) as error:
            raise DataError(f"{path}: the weights to begin with cannot be read: {error}") from None

    def identity(self) -> dict[str, str]:
        """Return short fingerprints of what must not change between a run and its resumption."""
        start = self.folder / START
        fingerprints = {"training data": self.train.fingerprint, "validation data": self.valid.fingerprint}
        if isinstance(self.tokenizer, PublishedTokenizer):
            fingerprints["tokeniser"] = self.tokenizer.fingerprint
        if start.exists():
            fingerprints["weights to begin with"] = sha256_of(start)
        return {name: fingerprint[:16] for name, fingerprint in fingerprints.items()}


class TooLittleDataError(DataError):
    """Too little data is left to train on; `report` counts what was dropped."""

    def __init__(self, message: str, report: DataReport[Any]) -> None:
        super().__init__(message)
        self.report = report


def write_start_weights(path: Path, weights: Mapping[str, Tensor]) -> None:
    """Write the weights that a run starts from into its folder, which then needs its base no more."""
    with replacing(path) as partial:
        save_file({name: tensor.cpu().contiguous() for name, tensor in weights.items()}, partial)
        partial.chmod(0o644)  # safetensors makes it readable for the owner only


E = TypeVar("E")
R = TypeVar("R", bound=SplitReport)


@dataclass(frozen=True)
class Split(Generic[E]):
    """Examples for training and for validation, with none in both. Each pass reads them again."""

    files: Files
    read: Callable[[Sequence[str]], Iterator[E]]  # the examples of some paths
    digest: Callable[[E], bytes]  # which identifies an example
    set_apart: frozenset[bytes]  # the digests of the examples that are not trained on

    def train(self) -> Iterator[E]:
        return (example for example in self.read(self.files.train) if self.digest(example) not in self.set_apart)

    def valid(self) -> Iterator[E]:
        """Yield the examples of the validation files; without such files, those held out."""
        if self.files.valid:
            return self.read(self.files.valid)
        return (example for example in self.read(self.files.train) if self.digest(example) in self.set_apart)


def split_examples(
    files: Files,
    read: Callable[[Sequence[str], R], Iterator[E]],
    report_class: Callable[[], R],
    *,
    digest: Callable[[E], bytes],
    drop: Callable[[R, str, E], None],
    wanted: int,
    name: str,
    label: Callable[[E], str] = lambda _: "",
    every: int = EVERY,
) -> tuple[Split[E], DataReport[R]]:
    """Read all examples once, and choose those for validation.

    Args:
        files: The files to read; all examples of validation files are for validation.
        read: Reads the examples of some paths, and counts them in its report.
        report_class: Creates an empty report.
        digest: Identifies an example; equal digests are never on both sides.
        drop: Counts an example as dropped that was counted as kept, with the reason.
        wanted: The number of examples to hold out, at most one in `every`; of each `label` its share.
        name: What examples are called, in the plural.

    Raises:
        TooLittleDataError: There is nothing left for training or for validation.
    """
    train = report_class()
    examples = read(files.train, train)
    if not files.valid:
        set_apart = held_out(((label(example), digest(example)) for example in examples), wanted, every)
        report = DataReport(train, None, len(set_apart))
    else:
        valid = report_class()
        report = DataReport(train, valid)
        set_apart = frozenset(digest(example) for example in read(files.valid, valid))
        for example in examples:
            if digest(example) in set_apart:  # a score on these would measure memory
                drop(train, "also in validation", example)
    if report.valid is None and not set_apart:
        labelled = ((label(example), digest(example)) for example in read(files.train, report_class()))
        reason = unsplittable(labelled, name)
        raise TooLittleDataError(f"{reason}; add data, or give validation files (--valid)", report)
    for paths, part in ((files.train, train), (files.valid, report.valid)):
        if part is not None and not part.kept:
            reason = f"all {part.total} are dropped or also in validation"
            raise TooLittleDataError(f"{', '.join(paths)}: no {name} are left to use; {reason}", report)
    return Split(files, lambda paths: read(paths, report_class()), digest, set_apart), report


C = TypeVar("C", bound=RunConfig)
D = TypeVar("D", bound=TrainingData[Any, Any, Any])


class Task(ABC, Generic[C, D, B]):
    """A task: the files it reads, the data it prepares, its model, its loss, and the scores of the result.

    `bind` returns a copy with the config, data and module of a run: the `Objective` that the trainer trains. A new task
    implements the abstract methods and overrides others as needed.
    """

    name: ClassVar[str]
    predictor_class: ClassVar[type[Any]]  # of its bundles
    config_class: ClassVar[type[Any]]
    example_name: ClassVar[str] = "examples"  # in the plural
    artifacts: ClassVar[tuple[str, ...]] = ()  # further files and folders in a run's folder
    frozen_settings: ClassVar[tuple[str, ...]] = ()  # of `data_settings`: they cannot change once a run has trained
    rivals: ClassVar[tuple[Rival, ...]] = ()  # the simple methods that a model is compared with
    counted: ClassVar[str] = "tokens"  # whose number a second is the speed of training
    counts_each: int = 1  # how often the loss counts each of these

    config: C
    data: D
    module: nn.Module
    batches: Batches[B]
    monitor: Monitor
    samples: Sequence[tuple[str, str, str]] = ()  # source, reference and output of the last validation

    # From files to data.

    def list_files(self, config: C, paths: Sequence[str]) -> Iterable[Path]:
        """Return the files that are read for these paths; DataError where one is missing."""
        return map(Path, paths)

    def input_files(self, config: C, files: Files) -> Mapping[str, Path]:
        """Return every file that will be read, by the name that messages use."""
        return {
            f"{path}{use}": path
            for use, paths in (("", files.train), (VALIDATION, files.valid))
            for path in (self.list_files(config, paths) if paths else ())
        }

    @abstractmethod
    def data_settings(self, config: C, files: Files) -> Mapping[str, str]:
        """Return the settings on which the prepared data depends, by the names that messages use."""

    @abstractmethod
    def prepare(self, config: C, files: Files, folder: Path, *, keep: bool = False) -> tuple[D, DataReport[Any]]:
        """Prepare the data in a folder. With `keep`, what the weights depend on stays, such as the tokenizer."""

    @abstractmethod
    def open(self, config: C, folder: Path) -> D:
        """Open what `prepare` has written; DataError where it is not complete."""

    def defaults(self, config: C, data: D) -> Mapping[str, Mapping[str, Any]]:
        """Return defaults of "training" and "model" that suit the data; `RunConfig.adapted` applies them."""
        return {}

    # The objective, of a task that is bound to a run.

    def bind(self, config: C, data: D, module: nn.Module | None = None) -> Self:
        """Return a copy of this task for one run, ready to train; it builds a module unless one is passed."""
        bound = copy(self)
        bound.config, bound.data = config, data
        if module is None:
            check_memory(bound.model_config())
            module = bound.build()
        bound.module = module
        bound.setup()
        return bound

    @abstractmethod
    def model_config(self) -> FamilyConfig:
        """Return the model's config, which may depend on the data."""

    def build(self) -> nn.Module:
        """Build the module that training starts with: new weights, or those of the base."""
        module: nn.Module = build(self.model_config())
        if (start := self.data.start_weights()) is not None:
            put_weights(module, start)
        return module

    @abstractmethod
    def setup(self) -> None:
        """Set `batches` and `monitor`, and whatever else the other methods need."""

    @property
    def summary(self) -> str:
        """A short description of the training data."""
        return f"{self.batches.steps_per_epoch(0):,} batches an epoch"

    @abstractmethod
    def loss(self, module: nn.Module, batch: B) -> Loss:
        """Return sums over a batch, without reading a value: that would wait for the GPU."""

    @abstractmethod
    def validate(self, module: nn.Module) -> dict[str, float]:
        """Return the scores of a module in evaluation mode, without gradients."""

    def describe(self, batch: Any) -> Sequence[str]:
        """Return the files and lines of a batch's examples, for messages; `batch.rows` are their indices."""
        return [self.data.train.place(row) for row in batch.rows]

    def identity(self) -> dict[str, str]:
        """Return what must not change between a run and its resumption: data fingerprints, the model's config."""
        return {**self.data.identity(), "model": settings_json(self.config.model)}

    # The result.

    @abstractmethod
    def predictor(self, module: nn.Module) -> Any:
        """Return the predictor of a trained module, which `save` writes as a bundle."""

    @abstractmethod
    def final_evaluation(self, predictor: Any) -> dict[str, Any]:
        """Score the predictor on the whole validation set; return the content of metrics.json.

        "validation" holds "n" (the number of examples) and "scores": by name a metric, its value, its ±95 % interval
        or None, and a signature. A task may add other keys, and may calibrate the predictor.
        """

    def evaluate(self, predictor: Any, files: Files, *, strict: bool = False) -> dict[str, Any]:
        """Return scores on other files, in the form of "validation" in metrics.json; "verdict" may hold sentences.

        "refused" counts examples that the model refuses, which are not scored; with `strict`, they are errors.
        """
        raise ConfigError(f"a model for {self.name} is not scored on files")

    @abstractmethod
    def title(self, predictor: Any) -> str:
        """Return the title of the model's card and report."""

    def card_notes(self, predictor: Any, metrics: Mapping[str, Any]) -> list[str]:
        """Return further lines for the model card."""
        return []

    def verdicts(self, metrics: Mapping[str, Any]) -> list[str]:
        """Return sentences that compare a run's metrics with its rivals."""
        return verdicts(self.rivals, metrics["validation"]["scores"])

    def report_sections(self, predictor: Any, metrics: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Return further parts of the report, by the fields of lens.report.ReportData."""
        return {}


AnyTask = Task[Any, Any, Any]


class Refusals:
    """Counts the examples of a test set that a model refuses. With `strict`, the first one is an error."""

    def __init__(self, *, strict: bool = False) -> None:
        self.strict, self.n_examples, self.count = strict, 0, 0
        self.first: list[str] = []

    def accepted(
        self,
        examples: Iterable[E],
        fault: Callable[[E], str | None],
        place: Callable[[E], object] = attrgetter("place"),
    ) -> Iterator[E]:
        """Yield the examples for which `fault` returns no reason. DataError if there are others alone."""
        for example in examples:
            self.n_examples += 1
            if (reason := fault(example)) is None:
                yield example
                continue
            message = f"{place(example)}: {reason}"
            if self.strict:
                raise DataError(message)
            self.count += 1
            if len(self.first) < FIRST_PLACES:
                self.first.append(message)
        if self.count and self.count == self.n_examples:
            raise DataError(f"the model refuses every example; the first: {self.first[0]}")

    def to_dict(self) -> dict[str, Any]:
        """Return "refused" for the result of `Task.evaluate` if there are any."""
        return {"refused": {"count": self.count, "of": self.n_examples, "first": self.first}} if self.count else {}


def left_out(report: SplitReport) -> dict[str, list[str]]:
    """Return the sentences for `Task.evaluate` that say which examples were not scored, and what was guessed."""
    sentences = [f"left out: {reason}: {tally}" for reason, tally in report.dropped.items()]
    sentences += [*report.cautions, *(f"{what}: {tally}" for what, tally in report.noted.items())]
    return {"verdict": sentences} if sentences else {}


def settings_json(config: Config, **changes: Any) -> str:
    """Return settings as one line of JSON with sorted keys, to compare them."""
    return json.dumps({**config.to_dict(), **changes}, sort_keys=True)
