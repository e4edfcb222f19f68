"""What a task answers so that everything else is the same for all: data, model, loss, metric."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from torch import nn

from ...errors import ConfigError, DataError
from ...training.job import B, Job
from .config import Files, RunConfig

C = TypeVar("C", bound=RunConfig)
D = TypeVar("D")


class Readings(Protocol):
    """What was read, kept and dropped."""

    def to_dict(self) -> dict[str, Any]:
        """For reading.json; "train" says it of the training data."""


class TooLittleDataError(DataError):
    """Not enough is left to train on; `readings` say what became of the rest."""

    def __init__(self, message: str, readings: Readings) -> None:
        super().__init__(message)
        self.readings = readings


class TaskJob(Job[B], Protocol[B]):
    """A job whose result people use."""

    def predictor(self, module: nn.Module) -> Any:
        """What `heedful.load` gives for the bundle that it will `save`."""

    def judge(self, predictor: Any) -> dict[str, Any]:
        """For metrics.json, over the whole validation set. It may teach the predictor what only this can tell.

        "validation" holds "n" (of what `Task.counted` calls it) and "scores": by name a metric, its value, its ±95 %
        interval or None, and a signature. What else is there is the task's own, as are further keys beside it.
        """


class Task(ABC, Generic[C, D]):
    """A task; `made` names what it leaves in a run's folder beside what every run does."""

    name: ClassVar[str]
    loads: ClassVar[type[Any]]  # what its bundles hold, with `from_bundle`
    counted: ClassVar[str]  # what its examples are called, in the plural
    config: ClassVar[type[Any]]
    made: ClassVar[tuple[str, ...]] = ()
    kept: ClassVar[tuple[str, ...]] = ()  # of `decides`: what a run that has trained cannot change

    @abstractmethod
    def inputs(self, config: C, files: Files) -> Mapping[str, Path]:
        """Every file that will be read, by the name that messages use; DataError where one is missing."""

    @abstractmethod
    def decides(self, config: C, files: Files) -> Mapping[str, str]:
        """The settings that decide what becomes of the files, by the names that messages use."""

    @abstractmethod
    def read(self, config: C, files: Files, folder: Path, *, keep: bool) -> tuple[D, Readings]:
        """The data, made anew in a folder. `keep` what the weights depend on, such as a tokeniser that is there."""

    @abstractmethod
    def open(self, config: C, folder: Path) -> D:
        """What `read` has written; DataError where it is not whole."""

    @abstractmethod
    def job(self, config: C, data: D) -> TaskJob[Any]:
        """The model, its loss and its metric."""

    @abstractmethod
    def heading(self, predictor: Any) -> str:
        """What the model is, in a few words, over its card and its page."""

    def evaluate(self, predictor: Any, files: Files) -> dict[str, Any]:
        """Of data it has not seen, what "validation" says in metrics.json; "verdict" may hold sentences."""
        raise ConfigError(f"a model for {self.name} is not scored on files")

    def shown(self, predictor: Any, metrics: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Further parts of the page, by the fields of lens.report.ReportData."""
        return {}

    def verdicts(self, metrics: Mapping[str, Any]) -> list[str]:
        """Sentences that compare a run's metrics with something simpler, for whoever has just trained it."""
        return []

    def remarks(self, predictor: Any, metrics: Mapping[str, Any]) -> list[str]:
        """Sentences for the card that only this task can say."""
        return []
