"""`train`: from files to a model in a folder, for every task."""

import socket
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from ...config import read_mapping, write_mapping
from ...data.report import DataReport
from ...errors import HeedfulError
from ...files import sha256_of, write_text
from ...training import Event, Finished, FolderError, Observer, Outcome, RunFolder, Saved, fit
from ...training.parallel import world
from ..rivals import NOTHING
from .config import Files
from .data import DATA, TooLittleDataError
from .folder import CARD, METRICS, SOURCES, check_resumable, clear, prepare_data, resume_data, write_run
from .reporting import model_card, write_report
from .task import AnyTask, C, D, Task

SHARED_FOLDER_TIMEOUT = 60.0  # seconds until another machine must see what the first process wrote


def train(
    task: Task[C, D, Any],
    config: C,
    files: Files,
    out: str | Path,
    *,
    resume: bool = False,
    allow_changes: bool = False,
    overwrite: bool = False,
    language: str = "en",
    on_read: Callable[[DataReport[Any]], None] = lambda _: None,
    watch: Callable[[AnyTask], Sequence[Observer]] = lambda _: (),
) -> Any:
    """Train a task's model and write its bundle, scores, model card and report to `out`.

    With several processes, the first reads, evaluates and writes; the others return None.

    Args:
        task: The task, not yet bound to a run.
        config: The settings of the run.
        files: The data.
        out: The folder of the run.
        resume: Continue the run in `out` from its newest checkpoint.
        allow_changes: Resume although the data or settings have changed.
        overwrite: Replace the run in `out`.
        language: The language in which the report opens.
        on_read: Called with the report of the data before training begins, or before a TooLittleDataError.
        watch: Returns the observers of the bound task.
    """
    folder, here = RunFolder(out), world()
    with here.guarded(), folder.locked(), _reported_errors(folder.path, on_read):
        prepared, report = folder.path / DATA, None
        if here.rank > 0:
            _await_file(prepared / SOURCES, here.broadcast_object(None))
            data = task.open(config, prepared)
        elif resume:
            trained = check_resumable(task, folder.path)
            data, report = resume_data(task, config, files, prepared, has_trained=trained, allow_changes=allow_changes)
        else:
            clear(task, folder.path, overwrite=overwrite)
            # Written before the data is read, so that reading can be interrupted.
            write_run(task, config, files, folder.path, adapted=False)
            _warn_about_base(config)
            data, report = prepare_data(task, config, files, prepared)
        if here.rank == 0:
            here.broadcast_object(sha256_of(prepared / SOURCES))
        if report is not None:
            on_read(report)
        config = config.adapted(task.defaults(config, data))
        torch.manual_seed(config.training.seed)
        bound = task.bind(config, data)

        def save_settings(event: Event) -> None:
            """Write the settings that a resumed run has changed, with the first checkpoint that depends on them."""
            if isinstance(event, Saved | Finished):
                write_run(task, config, files, folder.path)

        observers = [save_settings, *watch(bound)] if here.rank == 0 else []
        outcome = fit(bound, config.training, folder, resume=resume, allow_changes=allow_changes, observers=observers)
        predictor = _finish(bound, outcome, folder.path, language) if here.rank == 0 else None
        here.barrier()
        return predictor


def _finish(task: AnyTask, outcome: Outcome, out: Path, language: str) -> Any:
    """Evaluate the model and write its metrics, card, bundle and report."""
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
    metrics["verdicts"] = task.verdicts(metrics)
    write_mapping(out / METRICS, metrics)
    write_text(out / CARD, model_card(task, predictor, metrics, out))
    predictor.save(out)
    write_report(task, [out], language=language)
    return predictor


def _warn_about_base(config: Any) -> None:
    """Warn if the model that a run starts from has learned nothing."""
    base = getattr(config, "base", None)
    if base is not None and (Path(base) / METRICS).is_file():
        for sentence in read_mapping(Path(base) / METRICS).get("verdicts", ()):
            if sentence.startswith(NOTHING):
                warnings.warn(f"{base}: {sentence}", stacklevel=3)


def _await_file(path: Path, sha256: str, timeout: float = SHARED_FOLDER_TIMEOUT) -> None:
    """Wait until a file that the first process wrote is visible here: file systems of several machines take a while."""
    until = time.monotonic() + timeout
    while not path.exists() or sha256_of(path) != sha256:
        if time.monotonic() > until:
            raise FolderError(
                f"{path.parent.parent} on {socket.gethostname()} is not what the first process has there; "
                "all processes need the same folder, such as one on a file system that their machines share"
            )
        time.sleep(0.5)


@contextmanager
def _reported_errors(out: Path, on_read: Callable[[DataReport[Any]], None]) -> Iterator[None]:
    """Report what was read before a TooLittleDataError, and name the folder in an OSError without a file name."""
    try:
        yield
    except TooLittleDataError as error:
        on_read(error.report)
        raise
    except OSError as error:
        if isinstance(error, HeedfulError | BrokenPipeError) or error.filename is not None:
            raise
        raise FolderError(f"{out} cannot be written: {error.strerror}") from error
