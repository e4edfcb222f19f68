"""From files to a model in a folder, for every task: one call."""

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from ...config import write_mapping
from ...data.report import DataReport
from ...errors import HeedfulError
from ...files import sha256_of, write_text
from ...training import Event, Finished, FolderError, Observer, Outcome, RunFolder, Saved, fit
from ...training.parallel import world
from .config import Files
from .folder import CARD, METRICS, SOURCES, check_resumable, clear, prepare_data, resume_data, write_run
from .reporting import model_card, write_report
from .task import DATA, AnyTask, C, D, Task, TooLittleDataError

VISIBLE = 60.0  # seconds until what one machine wrote must be there for another


def train(
    task: Task[C, D, Any],
    config: C,
    files: Files,
    out: str | Path,
    *,
    resume: bool = False,
    allow_changes: bool = False,
    overwrite: bool = False,
    on_read: Callable[[DataReport[Any]], None] = lambda _: None,
    watch: Callable[[AnyTask], Sequence[Observer]] = lambda _: (),
) -> Any:
    """Train a task's model and leave its bundle, its scores, its card and its report in `out`.

    `on_read` is told what was read before training begins; `watch` gives the observers of the bound task. With `resume`
    the run in `out` goes on from its newest checkpoint; what has changed since is refused unless `allow_changes`.
    Of several processes, the first reads, evaluates and writes; the others get None.
    """
    folder, here = RunFolder(out), world()
    with here.guarded(), folder.locked(), _writing(folder.path), _telling(on_read):

        def read() -> tuple[D, DataReport[Any] | None]:
            if resume:
                trained = check_resumable(task, folder.path)
                return resume_data(
                    task, config, files, folder.path / DATA, has_trained=trained, allow_changes=allow_changes
                )
            clear(task, folder.path, overwrite=overwrite)
            write_run(task, config, files, folder.path)  # before the data is read, so that reading can be interrupted
            return prepare_data(task, config, files, folder.path / DATA)

        if here.rank == 0:
            data, report = read()
            here.broadcast_object(_sign(folder.path))
        else:
            _await(folder.path, here.broadcast_object(None))
            data, report = task.open(config, folder.path / DATA), None
        if report is not None:
            on_read(report)
        torch.manual_seed(config.training.seed)
        bound = task.bind(config, data)

        def remember(event: Event) -> None:
            """Settings that a resumed run has changed become its own with the first checkpoint made with them."""
            if isinstance(event, Saved | Finished):
                write_run(task, config, files, folder.path)

        observers = [remember, *watch(bound)] if here.rank == 0 else []
        outcome = fit(bound, config.training, folder, resume=resume, allow_changes=allow_changes, observers=observers)
        predictor = _finish(bound, outcome, folder.path) if here.rank == 0 else None
        here.barrier()
        return predictor


def _finish(task: AnyTask, outcome: Outcome, out: Path) -> Any:
    """Everything about the model, and the bundle's config last."""
    predictor = task.predictor(outcome.module)
    metrics = {
        **task.final_evaluation(predictor),
        "training": {
            "steps": outcome.step,
            "seconds": round(outcome.seconds, 1),
            "ended": outcome.why,
            "weights": outcome.weights,
        },
        "parameters": sum(parameter.numel() for parameter in predictor.module.parameters()),
    }
    write_mapping(out / METRICS, metrics)
    write_text(out / CARD, model_card(task, predictor, metrics, out))
    predictor.save(out)
    write_report(task, [out])
    return predictor


def _sign(out: Path) -> str:
    """By which another process knows that it sees the same folder."""
    return sha256_of(out / DATA / SOURCES)


def _await(out: Path, sign: str, patience: float = VISIBLE) -> None:
    """What the first process wrote must be seen here too; a file system of several machines may take its time."""
    until = time.monotonic() + patience
    while not (out / DATA / SOURCES).exists() or _sign(out) != sign:
        if time.monotonic() > until:
            raise FolderError(
                f"{out} on {socket.gethostname()} is not what the first process has there; "
                "all processes need the same folder, such as one on a file system that their machines share"
            )
        time.sleep(0.5)


@contextmanager
def _telling(on_read: Callable[[DataReport[Any]], None]) -> Iterator[None]:
    """Where too little data is left, what became of the rest is told before the error."""
    try:
        yield
    except TooLittleDataError as error:
        on_read(error.report)
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
