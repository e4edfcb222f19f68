"""From files to a model in a folder, for every task: one call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from ...config import write_mapping
from ...errors import HeedfulError
from ...files import write_text
from ...training import Event, Finished, FolderError, Observer, Outcome, RunFolder, Saved, fit
from .card import card
from .config import Files
from .folder import CARD, DATA, METRICS, begin, check_resumable, remember
from .reporting import write_report
from .sources import go_on, read_anew
from .task import Readings, Task, TaskJob, TooLittleDataError


def train(
    task: Task[Any, Any],
    config: Any,
    files: Files,
    out: str | Path,
    *,
    resume: bool = False,
    allow_changes: bool = False,
    overwrite: bool = False,
    on_read: Callable[[Readings], None] = lambda _: None,
    watch: Callable[[Any], Sequence[Observer]] = lambda _: (),
) -> Any:
    """Train a task's model and leave its bundle, its scores, its card and its report in `out`.

    `on_read` is told what was read before training begins; `watch` gives the observers of the run. With `resume`
    the run in `out` goes on from its newest checkpoint; what has changed since is refused unless `allow_changes`.
    """
    folder = RunFolder(out)
    with folder.held(), _writing(folder.path), _telling(on_read):
        if resume:
            trained = check_resumable(task, folder.path)
            data, readings = go_on(
                task, config, files, folder.path / DATA, has_trained=trained, allow_changes=allow_changes
            )
        else:
            begin(task, folder.path, overwrite=overwrite)
            remember(task, config, files, folder.path)  # before the data is read, so that reading can be interrupted
            data, readings = read_anew(task, config, files, folder.path / DATA)
        if readings is not None:
            on_read(readings)
        torch.manual_seed(config.training.seed)
        job = task.job(config, data)

        def remembering(event: Event) -> None:
            """Settings that a resumed run has changed become its own with the first checkpoint made with them."""
            if isinstance(event, Saved | Finished):
                remember(task, config, files, folder.path)

        observers = [remembering, *watch(job)]
        outcome = fit(job, config.training, folder, resume=resume, allow_changes=allow_changes, observers=observers)
        return _finish(task, job, outcome, folder.path)


def _finish(task: Task[Any, Any], job: TaskJob[Any], outcome: Outcome, out: Path) -> Any:
    """Everything about the model, and the bundle's config last."""
    predictor = job.predictor(outcome.module)
    metrics = {
        **job.judge(predictor),
        "training": {
            "steps": outcome.step,
            "seconds": round(outcome.seconds, 1),
            "ended": outcome.why,
            "weights": outcome.weights,
        },
        "parameters": sum(parameter.numel() for parameter in predictor.module.parameters()),
    }
    write_mapping(out / METRICS, metrics)
    write_text(out / CARD, card(task, predictor, metrics, out))
    predictor.save(out)
    write_report(task, [out])
    return predictor


@contextmanager
def _telling(on_read: Callable[[Readings], None]) -> Iterator[None]:
    """Where too little data is left, what became of the rest is told before the error."""
    try:
        yield
    except TooLittleDataError as error:
        on_read(error.readings)
        raise


@contextmanager
def _writing(out: Path) -> Iterator[None]:
    """A full disk names no file: say at least in which folder."""
    try:
        yield
    except OSError as error:
        if isinstance(error, HeedfulError | BrokenPipeError) or error.filename is not None:
            raise
        raise FolderError(f"{out} cannot be written: {error.strerror}") from error
