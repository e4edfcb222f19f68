"""A run's folder: what lies in it, when it may be used, and its data: read, opened, or read again where it changed."""

import shutil
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ...config import read_mapping, write_mapping
from ...data.report import DataReport
from ...errors import RENAMED_TASKS, ConfigError, DataError, unknown
from ...files import sha256_of
from ...training import checkpoint
from ...training.errors import FolderError, ResumeError, ResumeWarning
from ..bundle import CONFIG, WEIGHTS
from .config import Files
from .task import DATA, SCRATCH, VALIDATION, AnyTask, C, D, Task

RUN, METRICS, CARD, REPORT = "run.yaml", "metrics.json", "README.md", "report.html"
READING, SOURCES, ARTIFACTS = (
    "reading.json",
    "sources.json",
    "made.json",
)  # in DATA; SOURCES is written when it is whole
VALUABLE = {CONFIG, "checkpoints", f"{DATA}/{SOURCES}"}  # without any of these, nothing is lost by beginning again


def run_artifacts(task: AnyTask) -> tuple[str, ...]:
    """Everything a run leaves behind; `overwrite` removes these and nothing else.

    RUN goes last: while it is there, the rest is known to be a run's.
    """
    common = (CONFIG, WEIGHTS, METRICS, CARD, REPORT, "log.jsonl", "tensorboard", "checkpoints")
    data = (f"{DATA}/{name}" for name in (READING, SCRATCH, ARTIFACTS))
    return (*common, *task.artifacts, *data, f"{DATA}/{SOURCES}", RUN)


def clear(task: AnyTask, out: Path, *, overwrite: bool) -> None:
    """Make room for a new run, or say why there is none."""
    present = [name for name in dict.fromkeys((*_left_by_another(out), *run_artifacts(task))) if _holds(out / name)]
    if not present:
        return
    if RUN not in present:
        raise FolderError(
            f"{out} holds {', '.join(present)}, not made by a run, which would write these; "
            "choose another folder (--out)"
        )
    if not overwrite and not VALUABLE.isdisjoint(present):
        raise FolderError(
            f"{out} holds a run already; go on with it (--resume), replace it (--overwrite), "
            "or choose another folder (--out)"
        )
    for name in present:
        path = out / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def check_resumable(task: AnyTask, out: Path) -> bool:
    """Whether the run in this folder has trained yet; an error where there is none, or none that can go on."""
    read_run(task, out)
    trained = bool(checkpoint.steps_in(out / "checkpoints"))
    if not trained and (out / CONFIG).exists():
        raise ResumeError(f"the run in {out} is finished and its checkpoints are gone; begin a new one (--overwrite)")
    return trained


def read_run(task: Task[C, Any, Any], out: str | Path) -> tuple[C, Files]:
    """The config and the files of the run in this folder."""
    path = Path(out) / RUN
    if not path.exists():
        raise ResumeError(f"{out} holds no run to go on with; leave out --resume to begin one")
    try:
        values = read_mapping(path)
        name = values.pop("task", task.name)
        files = Files.from_dict(values.pop("files", None))
        if name != task.name:
            renamed = f": {unknown('task', name, RENAMED_TASKS.values())}" if name in RENAMED_TASKS else ""
            raise ResumeError(f"the run in {out} is of the task {name}, not {task.name}{renamed}")
        config: C = task.config_class.from_dict(values)
        return config, files
    except ConfigError as error:
        raise ResumeError(f"{path} is not as the run wrote it: {error}") from None


def _left_by_another(out: Path) -> list[str]:
    """What an earlier run said that it would make, whatever its task was; only names within the folder count."""
    try:
        names = read_mapping(out / DATA / ARTIFACTS).get("made", [])
    except ConfigError:
        return []
    plain = [name for name in names if isinstance(name, str) and ".." not in Path(name).parts]
    return [name for name in plain if not Path(name).is_absolute() and Path(name).parts and name != RUN]


def write_run(task: AnyTask, config: Any, files: Files, out: Path) -> None:
    """Write down what the run is told to do; `read_run` reads it, and so does --config."""
    write_mapping(out / RUN, {"task": task.name, **config.to_dict(), "files": asdict(files)})
    write_mapping(out / DATA / ARTIFACTS, {"made": run_artifacts(task)})


def _holds(path: Path) -> bool:
    return any(path.iterdir()) if path.is_dir() else path.exists()


def prepare_data(
    task: Task[C, D, Any], config: C, files: Files, folder: Path, *, keep: bool = False
) -> tuple[D, DataReport[Any]]:
    """The data of a run that begins, and what was read."""
    # A file that is missing is named before any harm is done.
    fingerprints = {**task.data_settings(config, files), **_sums(task, config, files)}
    (folder / SOURCES).unlink(missing_ok=True)
    data, report = task.prepare(config, files, folder, keep=keep)
    write_mapping(folder / READING, report.to_dict())
    write_mapping(folder / SOURCES, fingerprints)
    return data, report


def resume_data(
    task: Task[C, D, Any], config: C, files: Files, folder: Path, *, has_trained: bool, allow_changes: bool
) -> tuple[D, DataReport[Any] | None]:
    """The data of a run that goes on; no report where what was made of the files is still right.

    Files that have changed are read only if that is allowed; for files that are merely gone, what was made of them
    serves. A run that has trained keeps its tokeniser: its weights mean nothing with another.
    """
    before = read_mapping(folder / SOURCES) if (folder / SOURCES).exists() else None
    if before is not None:
        now = _fingerprints_now(task, config, files, before)
        changed = sorted(name for name in {**before, **now} if before.get(name) != now.get(name))
        gone = [name for name in changed if name not in now]
        if has_trained and (fixed := [name for name in changed if name in task.frozen_settings]):
            raise ResumeError(f"{' and '.join(fixed)} have changed, and a run keeps its own; begin a new run")
        if changed and not allow_changes:
            named = ", ".join(f"{name} (gone)" if name in gone else name for name in changed)
            new = f"the {task.example_name} made from it" if changed == gone else "the new data"
            raise ResumeError(
                f"the data is not what this run began with; changed: {named}. "
                f"Put it back, begin a new run, or go on with {new} (--allow-changes)"
            )
        if changed and changed == gone:
            message = f"gone: {', '.join(gone)}; the run goes on with the {task.example_name} made from it"
            warnings.warn(message, ResumeWarning, stacklevel=2)
            return task.open(config, folder), None
        if not changed:
            try:
                return task.open(config, folder), None
            except DataError as error:
                warnings.warn(f"{error}; the data is read again", ResumeWarning, stacklevel=2)
    return prepare_data(task, config, files, folder, keep=has_trained)


def _fingerprints_now(task: AnyTask, config: Any, files: Files, before: dict[str, str]) -> dict[str, str]:
    """Those of the settings and of the files as they are; none of a file of `before` that is gone."""
    settings = dict(task.data_settings(config, files))
    try:
        return settings | _sums(task, config, files)
    except DataError:
        known = {name: Path(name.removesuffix(VALIDATION)) for name in before if name not in settings}
        given = [Path(path) for path in (*files.train, *files.valid)]
        covered = {place for path in known.values() for place in (path, *path.parents)}
        if all(path.exists() for path in known.values()) or any(
            not path.exists() and path not in covered for path in given
        ):
            raise
        return settings | {name: sha256_of(path) for name, path in known.items() if path.exists()}


def _sums(task: AnyTask, config: Any, files: Files) -> dict[str, str]:
    """Of every file that is read."""
    return {name: sha256_of(path) for name, path in task.input_files(config, files).items()}
