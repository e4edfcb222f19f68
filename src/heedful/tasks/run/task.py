"""`Task`, the base class of everything that models are trained for."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from torch import nn

from ...config import FamilyConfig
from ...data.report import DataReport
from ...errors import ConfigError
from ...families import build
from ...families.sizes import check_memory
from ...families.weights import put_weights
from ...training.loss import Loss
from ...training.objective import B, Batches, Monitor
from ..rivals import Rival, verdicts
from .config import Files, RunConfig, settings_json
from .data import VALIDATION, TrainingData

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
            if config.training.parallel == "replicate":  # shards may be on many machines
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
