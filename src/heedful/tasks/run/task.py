"""`Task`: what one task answers, so that everything else is the same for all; and `TrainingData`, what it trains on."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from ...config import Config, FamilyConfig
from ...data.published_tokenizer import PublishedTokenizer
from ...data.report import DataReport, SplitReport
from ...data.validation_split import EVERY, held_out
from ...errors import ConfigError, DataError
from ...families import build
from ...files import replacing, sha256_of
from ...training.loss import Loss
from ...training.objective import B, Batches, Monitor
from .config import Files, RunConfig

TRAIN, VALID, START = "train", "valid", "start.safetensors"  # in a run's data folder
SCRATCH = ".clean"  # there too, while data is prepared
DATA = "data"  # the folder of a run that holds its data
VALIDATION = " (validation)"  # behind the name of a file that is read for it


class ExampleStore(Protocol):
    """The examples of one split, as they lie in a run's folder."""

    @property
    def fingerprint(self) -> str: ...

    def __len__(self) -> int: ...

    def place(self, row: int) -> str:
        """Where an example stood in the files."""


StoreT = TypeVar("StoreT", bound=ExampleStore)
TokenizerT = TypeVar("TokenizerT")
MetadataT = TypeVar("MetadataT")


@dataclass(frozen=True, eq=False)
class TrainingData(Generic[StoreT, TokenizerT, MetadataT]):
    """Everything training needs from the data of a run, in its folder.

    Attributes:
        folder: where it lies.
        train, valid: the examples to learn from, and those to validate on.
        tokenizer: what the examples were encoded with; None where there are no tokens.
        metadata: what else the task must know of its data, such as the names of the classes.
    """

    folder: Path
    train: StoreT
    valid: StoreT
    tokenizer: TokenizerT
    metadata: MetadataT

    def start_weights(self) -> dict[str, Tensor] | None:
        """Return the weights that training starts from; None for a run without a base."""
        path = self.folder / START
        try:
            return load_file(path) if path.exists() else None
        except (SafetensorError, OSError) as error:
            raise DataError(f"{path}: the weights to begin with cannot be read: {error}") from None

    def identity(self) -> dict[str, str]:
        """What must stay the same for a run to go on, as fingerprints short enough to be shown."""
        start = self.folder / START
        fingerprints = {"training data": self.train.fingerprint, "validation data": self.valid.fingerprint}
        if isinstance(self.tokenizer, PublishedTokenizer):
            fingerprints["tokeniser"] = self.tokenizer.fingerprint
        if start.exists():
            fingerprints["weights to begin with"] = sha256_of(start)
        return {name: fingerprint[:16] for name, fingerprint in fingerprints.items()}


class TooLittleDataError(DataError):
    """Not enough is left to train on; `report` says what became of the rest."""

    def __init__(self, message: str, report: DataReport[Any]) -> None:
        super().__init__(message)
        self.report = report


def write_start_weights(path: Path, weights: Mapping[str, Tensor]) -> None:
    """Keep weights in a run's folder: it goes on without the model they came from."""
    with replacing(path) as partial:
        save_file({name: tensor.cpu().contiguous() for name, tensor in weights.items()}, partial)
        partial.chmod(0o644)  # the library makes it the owner's alone


E = TypeVar("E")
R = TypeVar("R", bound=SplitReport)


@dataclass(frozen=True)
class Split(Generic[E]):
    """Examples for training and for validation, with none on both sides. They are read again for each pass.

    Attributes:
        read: reads the examples of some paths.
        digest: by which an example is known again.
        set_apart: the digests of the examples that are not trained on.
    """

    files: Files
    read: Callable[[Sequence[str]], Iterator[E]]
    digest: Callable[[E], bytes]
    set_apart: frozenset[bytes]

    def train(self) -> Iterator[E]:
        """What is learned from."""
        return (example for example in self.read(self.files.train) if self.digest(example) not in self.set_apart)

    def valid(self) -> Iterator[E]:
        """What is validated on: files of its own, whole, or what is held out."""
        if self.files.valid:
            return self.read(self.files.valid)
        return (example for example in self.read(self.files.train) if self.digest(example) in self.set_apart)


def split_examples(
    files: Files,
    read: Callable[[Sequence[str], R | None], Iterator[E]],
    report_class: Callable[[], R],
    *,
    digest: Callable[[E], bytes],
    drop: Callable[[R, str, E], None],
    wanted: int,
    label: Callable[[E], str] = lambda _: "",
    every: int = EVERY,
) -> tuple[Split[E], DataReport[R]]:
    """Read everything once: what there is, and which examples are set apart for validation.

    Args:
        files: where the examples are; validation files, where they are given, are taken whole.
        read: reads the examples of some paths, and counts them in the report that it gets.
        report_class: makes an empty report.
        digest: two examples with the same digest never stand on both sides.
        drop: counts an example as dropped that was counted as kept, with the reason.
        wanted: how many examples to hold out, at most one in `every`; of each `label` its share.
    """
    train = report_class()
    examples = read(files.train, train)
    if not files.valid:
        set_apart = held_out(((label(example), digest(example)) for example in examples), wanted, every)
        report = DataReport(train, None, len(set_apart))
    else:
        report = DataReport(train, report_class())
        set_apart = frozenset(digest(example) for example in read(files.valid, report.valid))
        for example in examples:
            if digest(example) in set_apart:  # a score on these would be of memory
                drop(train, "also in validation", example)
    return Split(files, lambda paths: read(paths, None), digest, set_apart), report


C = TypeVar("C", bound=RunConfig)
D = TypeVar("D", bound=TrainingData[Any, Any, Any])


class Task(ABC, Generic[C, D, B]):
    """A task: which files it reads, what it makes of them, its model, its loss, and how the result is scored.

    A task describes itself without a run. `bind` gives it a run's config, data and module; a bound task is the
    `Objective` that the trainer trains. A new task writes what is abstract here, and changes what it needs of the rest.
    """

    name: ClassVar[str]
    predictor_class: ClassVar[type[Any]]  # what its bundles hold, with `from_bundle`
    config_class: ClassVar[type[Any]]
    example_name: ClassVar[str] = "examples"  # what its examples are called, in the plural
    artifacts: ClassVar[tuple[str, ...]] = ()  # what it leaves in a run's folder beside what every run does
    frozen_settings: ClassVar[tuple[str, ...]] = ()  # of `data_settings`: what a run that has trained cannot change

    config: C
    data: D
    module: nn.Module
    batches: Batches[B]
    monitor: Monitor
    samples: Sequence[tuple[str, str, str]] = ()  # source, reference and output of the last validation

    # From files to data.

    def list_files(self, config: C, paths: Sequence[str]) -> Iterable[Path]:
        """The files that are read for these paths; DataError where one is missing."""
        return map(Path, paths)

    def input_files(self, config: C, files: Files) -> Mapping[str, Path]:
        """Every file that will be read, by the name that messages use."""
        return {
            f"{path}{use}": path
            for use, paths in (("", files.train), (VALIDATION, files.valid))
            for path in (self.list_files(config, paths) if paths else ())
        }

    @abstractmethod
    def data_settings(self, config: C, files: Files) -> Mapping[str, str]:
        """The settings that decide what becomes of the files, by the names that messages use."""

    @abstractmethod
    def prepare(self, config: C, files: Files, folder: Path, *, keep: bool = False) -> tuple[D, DataReport[Any]]:
        """Make the data anew in a folder. `keep` what the weights depend on, such as a tokenizer that is there."""

    @abstractmethod
    def open(self, config: C, folder: Path) -> D:
        """What `prepare` has written; DataError where it is not whole."""

    # The objective, of a task that is bound to a run.

    def bind(self, config: C, data: D, module: nn.Module | None = None) -> Self:
        """This task for one run, ready to train: with a new module, unless one is given."""
        bound = copy(self)
        bound.config, bound.data = config, data
        bound.module = bound.build() if module is None else module
        bound.setup()
        return bound

    @abstractmethod
    def model_config(self) -> FamilyConfig:
        """The model's config, now that the data is known."""

    def build(self) -> nn.Module:
        """The module that training starts with."""
        return build(self.model_config())

    @abstractmethod
    def setup(self) -> None:
        """Set `batches` and `monitor`, and whatever else the methods below need."""

    @property
    def summary(self) -> str:
        """What it learns from, in a few words."""
        return f"{self.batches.steps_per_epoch(0):,} batches an epoch"

    @abstractmethod
    def loss(self, module: nn.Module, batch: B) -> Loss:
        """Sums over a batch. No value may be read here: on a GPU, that would wait for it."""

    @abstractmethod
    def validate(self, module: nn.Module) -> dict[str, float]:
        """Scores of a module in evaluation mode; no gradients are kept."""

    def describe(self, batch: Any) -> Sequence[str]:
        """The input lines of a batch, to find a bad one by; a batch says in `rows` which examples it holds."""
        return [self.data.train.place(row) for row in batch.rows]

    def identity(self) -> dict[str, str]:
        """What must not change between a run and its resumption: fingerprints of the data, the model's config."""
        return {**self.data.identity(), "model": settings_json(self.config.model)}

    # The result.

    @abstractmethod
    def predictor(self, module: nn.Module) -> Any:
        """What `heedful.load` gives for the bundle that it will `save`."""

    @abstractmethod
    def final_evaluation(self, predictor: Any) -> dict[str, Any]:
        """For metrics.json, over the whole validation set. It may teach the predictor what only this can tell.

        "validation" holds "n" (of `example_name`) and "scores": by name a metric, its value, its ±95 % interval or
        None, and a signature. What else is there is the task's own, as are further keys beside it.
        """

    def evaluate(self, predictor: Any, files: Files) -> dict[str, Any]:
        """Of data it has not seen, what "validation" says in metrics.json; "verdict" may hold sentences."""
        raise ConfigError(f"a model for {self.name} is not scored on files")

    @abstractmethod
    def title(self, predictor: Any) -> str:
        """What the model is, in a few words, over its card and its report."""

    def card_notes(self, predictor: Any, metrics: Mapping[str, Any]) -> list[str]:
        """Sentences for the model card that only this task can say."""
        return []

    def verdicts(self, metrics: Mapping[str, Any]) -> list[str]:
        """Sentences that compare a run's metrics with something simpler, for whoever has just trained it."""
        return []

    def report_sections(self, predictor: Any, metrics: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Further parts of the report, by the fields of lens.report.ReportData."""
        return {}


AnyTask = Task[Any, Any, Any]


def left_out(report: SplitReport) -> dict[str, list[str]]:
    """For `Task.evaluate`: a verdict that says what was not scored, where something was not."""
    verdict = [f"left out: {reason}: {tally}" for reason, tally in report.dropped.items()]
    return {"verdict": verdict} if verdict else {}


def settings_json(config: Config, **changes: Any) -> str:
    """Settings as one line of text that is the same wherever they are the same."""
    return json.dumps({**config.to_dict(), **changes}, sort_keys=True)
