"""What a run keeps in its folder, and when the folder may be used."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ...config import read_mapping, write_mapping
from ...errors import ConfigError
from ...training import checkpoint
from ...training.errors import FolderError, ResumeError
from ..bundle import CONFIG, WEIGHTS
from .config import Files
from .task import Task

ASKED, DATA, METRICS, CARD, REPORT = "run.yaml", "data", "metrics.json", "README.md", "report.html"
# In DATA; SOURCES is written when it is whole.
READING, SOURCES, SCRATCH, MADE = "reading.json", "sources.json", ".clean", "made.json"
WORTH = {CONFIG, "checkpoints", f"{DATA}/{SOURCES}"}  # without any of these, nothing is lost by beginning again


def made(task: Task[Any, Any]) -> tuple[str, ...]:
    """Everything a run leaves behind; `overwrite` removes these and nothing else.

    ASKED goes last: while it is there, the rest is known to be a run's.
    """
    usual = (CONFIG, WEIGHTS, METRICS, CARD, REPORT, "log.jsonl", "tensorboard", "checkpoints")
    data = (f"{DATA}/{name}" for name in (READING, SCRATCH, MADE))
    return (*usual, *task.made, *data, f"{DATA}/{SOURCES}", ASKED)


def begin(task: Task[Any, Any], out: Path, *, overwrite: bool) -> None:
    """Make room for a new run, or say why there is none."""
    there = [name for name in dict.fromkeys((*_left_by_another(out), *made(task))) if _holds(out / name)]
    if not there:
        return
    if ASKED not in there:
        raise FolderError(
            f"{out} holds {', '.join(there)}, not made by a run, which would write these; choose another folder (--out)"
        )
    if not overwrite and not WORTH.isdisjoint(there):
        raise FolderError(
            f"{out} holds a run already; go on with it (--resume), replace it (--overwrite), "
            "or choose another folder (--out)"
        )
    for name in there:
        path = out / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def check_resumable(task: Task[Any, Any], out: Path) -> bool:
    """Whether the run in this folder has trained yet; an error where there is none, or none that can go on."""
    asked(task, out)
    trained = bool(checkpoint.steps_in(out / "checkpoints"))
    if not trained and (out / CONFIG).exists():
        raise ResumeError(f"the run in {out} is finished and its checkpoints are gone; begin a new one (--overwrite)")
    return trained


def asked(task: Task[Any, Any], out: str | Path) -> tuple[Any, Files]:
    """What the run in this folder was told to do."""
    path = Path(out) / ASKED
    if not path.exists():
        raise ResumeError(f"{out} holds no run to go on with; leave out --resume to begin one")
    try:
        values = read_mapping(path)
        of = values.pop("task", task.name)
        files = Files.from_dict(values.pop("files", None))
        if of != task.name:
            raise ResumeError(f"the run in {out} is of the task {of}, not {task.name}")
        return task.config.from_dict(values), files
    except ConfigError as error:
        raise ResumeError(f"{path} is not as the run wrote it: {error}") from None


def _left_by_another(out: Path) -> list[str]:
    """What an earlier run said that it would make, whatever its task was; only names within the folder count."""
    try:
        names = read_mapping(out / DATA / MADE).get("made", [])
    except ConfigError:
        return []
    plain = [name for name in names if isinstance(name, str) and ".." not in Path(name).parts]
    return [name for name in plain if not Path(name).is_absolute() and Path(name).parts and name != ASKED]


def remember(task: Task[Any, Any], config: Any, files: Files, out: Path) -> None:
    """Write down what the run is told to do; `asked` reads it, and so does --config."""
    write_mapping(out / ASKED, {"task": task.name, **config.to_dict(), "files": asdict(files)})
    write_mapping(out / DATA / MADE, {"made": made(task)})


def _holds(path: Path) -> bool:
    return any(path.iterdir()) if path.is_dir() else path.exists()
