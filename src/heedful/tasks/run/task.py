"""`Task`: what one task answers, so that everything else is the same for all."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from torch import nn

from ...config import Config, FamilyConfig
from ...data.report import DataReport
from ...errors import ConfigError
from ...families import build
from ...training.loss import Loss
from ...training.objective import B, Batches, Monitor
from .config import Files, RunConfig
from .data import TrainingData

C = TypeVar("C", bound=RunConfig)
D = TypeVar("D", bound=TrainingData[Any, Any, Any])

DATA = "data"  # the folder of a run that holds its data
VALIDATION = " (validation)"  # behind the name of a file that is read for it


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


def settings_json(config: Config, **changes: Any) -> str:
    """Settings as one line of text that is the same wherever they are the same."""
    return json.dumps({**config.to_dict(), **changes}, sort_keys=True)
