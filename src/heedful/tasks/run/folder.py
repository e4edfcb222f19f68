"""A run's folder: its files, whether it may be used, and its data, which is read again if the files have changed."""

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
from .data import DATA, SCRATCH, VALIDATION
from .task import AnyTask, C, D, Task

RUN, METRICS, CARD, REPORT = "run.yaml", "metrics.json", "README.md", "report.html"
# In the data folder; SOURCES is written last, once the data is complete.
READING, SOURCES, ARTIFACTS = "reading.json", "sources.json", "artifacts.json"
VALUABLE = {CONFIG, "checkpoints", f"{DATA}/{SOURCES}"}  # a run that has none of these may be overwritten


def run_artifacts(task: AnyTask) -> tuple[str, ...]:
    """Return the paths of everything that a run writes; `overwrite` removes these and nothing else.

    RUN is removed last: while it exists, the other files are known to belong to a run.
    """
    common = (CONFIG, WEIGHTS, METRICS, CARD, REPORT, "log.jsonl", "tensorboard", "checkpoints")
    data = (f"{DATA}/{name}" for name in (READING, SCRATCH, ARTIFACTS))
    return (*common, *task.artifacts, *data, f"{DATA}/{SOURCES}", RUN)


def clear(task: AnyTask, out: Path, *, overwrite: bool) -> None:
    """Remove an earlier run where that is allowed.

    Raises:
        FolderError: The folder holds a run that may not be overwritten, or files that no run wrote.
    """
    names = dict.fromkeys((*_earlier_artifacts(out), *run_artifacts(task)))
    present = [name for name in names if _has_content(out / name)]
    if not present:
        return
    if RUN not in present:
        raise FolderError(
            f"{out} holds {', '.join(present)}, which no run wrote and a run would replace; "
            "choose another folder (--out)"
        )
    if not overwrite and not VALUABLE.isdisjoint(present):
        raise FolderError(
            f"{out} holds a run already; continue it (--resume), replace it (--overwrite), "
            "or choose another folder (--out)"
        )
    for name in present:
        path = out / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def check_resumable(task: AnyTask, out: Path) -> bool:
    """Return whether the run in this folder has trained; raise ResumeError if there is no run that can continue."""
    read_run(task, out)
    trained = bool(checkpoint.steps_in(out / "checkpoints"))
    if not trained and (out / CONFIG).exists():
        raise ResumeError(f"the run in {out} is finished and its checkpoints are gone; begin a new one (--overwrite)")
    return trained


def read_run(task: Task[C, Any, Any], out: str | Path) -> tuple[C, Files]:
    """Return the config and the files of the run in this folder."""
    path = Path(out) / RUN
    if not path.exists():
        raise ResumeError(f"{out} holds no run to continue; leave out --resume to begin one")
    try:
        values = read_mapping(path)
        name = values.pop("task", task.name)
        files = Files.from_dict(values.pop("files", None))
        if name != task.name:
            renamed = f": {unknown('task', name, RENAMED_TASKS.values())}" if name in RENAMED_TASKS else ""
            raise ResumeError(f"the run in {out} is for the task {name}, not {task.name}{renamed}")
        config: C = task.config_class.from_dict(values)
        return config, files
    except ConfigError as error:
        raise ResumeError(f"{path} was changed since the run wrote it: {error}") from None


def _earlier_artifacts(out: Path) -> list[str]:
    """Return the paths that an earlier run, of any task, has listed; only those within the folder count."""
    try:
        names = read_mapping(out / DATA / ARTIFACTS).get("artifacts", [])
    except ConfigError:
        return []
    plain = [name for name in names if isinstance(name, str) and ".." not in Path(name).parts]
    return [name for name in plain if not Path(name).is_absolute() and Path(name).parts and name != RUN]


def write_run(task: AnyTask, config: Any, files: Files, out: Path, *, adapted: bool = True) -> None:
    """Write the settings of a run; `read_run` reads them, and so does --config.

    Until the run has adapted its settings to the data, only those are written that do not adapt.
    """
    settings = config.to_dict() if adapted or config.explicit is None else config.explicit
    write_mapping(out / RUN, {"task": task.name, **settings, "files": asdict(files)})
    write_mapping(out / DATA / ARTIFACTS, {"artifacts": run_artifacts(task)})


def _has_content(path: Path) -> bool:
    return any(path.iterdir()) if path.is_dir() else path.exists()


def prepare_data(
    task: Task[C, D, Any], config: C, files: Files, folder: Path, *, keep: bool = False
) -> tuple[D, DataReport[Any]]:
    """Prepare the data of a run that begins."""
    # Computed first, so that a missing file is an error before anything is removed.
    fingerprints = {**task.data_settings(config, files), **_sums(task, config, files)}
    (folder / SOURCES).unlink(missing_ok=True)
    data, report = task.prepare(config, files, folder, keep=keep)
    write_mapping(folder / READING, report.to_dict())
    write_mapping(folder / SOURCES, fingerprints)
    return data, report


def resume_data(
    task: Task[C, D, Any], config: C, files: Files, folder: Path, *, has_trained: bool, allow_changes: bool
) -> tuple[D, DataReport[Any] | None]:
    """Open the data of a run that continues; prepare it again, with a report, if the files have changed.

    Changed files are read only with `allow_changes`; with it, the prepared data of files that are gone is used. A run
    that has trained keeps its tokenizer, on which its weights depend.
    """
    before = read_mapping(folder / SOURCES) if (folder / SOURCES).exists() else None
    if before is not None:
        now = _fingerprints_now(task, config, files, before)
        changed = sorted(name for name in {**before, **now} if before.get(name) != now.get(name))
        gone = [name for name in changed if name not in now]
        if has_trained and (fixed := [name for name in changed if name in task.frozen_settings]):
            raise ResumeError(
                f"{' and '.join(fixed)} have changed, which a run cannot do after training; begin a new run"
            )
        if changed and not allow_changes:
            names = ", ".join(f"{name} (gone)" if name in gone else name for name in changed)
            new = f"the {task.example_name} made from it" if changed == gone else "the new data"
            raise ResumeError(
                f"the data is not what this run began with; changed: {names}. "
                f"Restore it, begin a new run, or continue with {new} (--allow-changes)"
            )
        if changed and changed == gone:
            message = f"gone: {', '.join(gone)}; the run continues with the {task.example_name} made from it"
            warnings.warn(message, ResumeWarning, stacklevel=2)
            return task.open(config, folder), None
        if not changed:
            try:
                return task.open(config, folder), None
            except DataError as error:
                warnings.warn(f"{error}; the data is read again", ResumeWarning, stacklevel=2)
    return prepare_data(task, config, files, folder, keep=has_trained)


def _fingerprints_now(task: AnyTask, config: Any, files: Files, before: dict[str, str]) -> dict[str, str]:
    """Return the fingerprints of the settings and the files; files of `before` may be gone, other files may not."""
    settings = dict(task.data_settings(config, files))
    try:
        return settings | _sums(task, config, files)
    except DataError:
        earlier = {name: Path(name.removesuffix(VALIDATION)) for name in before if name not in settings}
        covered = {place for path in earlier.values() for place in (path, *path.parents)}
        missing = [path for path in map(Path, (*files.train, *files.valid)) if not path.exists()]
        if all(path.exists() for path in earlier.values()) or not covered.issuperset(missing):
            raise
        return settings | {name: sha256_of(path) for name, path in earlier.items() if path.exists()}


def _sums(task: AnyTask, config: Any, files: Files) -> dict[str, str]:
    return {name: sha256_of(path) for name, path in task.input_files(config, files).items()}
