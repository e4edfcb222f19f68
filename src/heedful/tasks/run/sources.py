"""A run's data: read when the run begins, opened when it goes on, and read again where it may change."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from ...config import read_mapping, write_mapping
from ...errors import DataError
from ...files import sha256_of
from ...training.errors import ResumeError, ResumeWarning
from .config import Files
from .folder import READING, SOURCES
from .task import Readings, Task

VALIDATION = " (validation)"  # behind the name of a file that is read for it


def read_anew(task: Task[Any, Any], config: Any, files: Files, folder: Path, *, keep: bool = False) -> Any:
    """The data of a run that begins, and what was read."""
    # A file that is missing is named before any harm is done.
    fingerprints = {**task.decides(config, files), **_sums(task, config, files)}
    (folder / SOURCES).unlink(missing_ok=True)
    data, readings = task.read(config, files, folder, keep=keep)
    write_mapping(folder / READING, readings.to_dict())
    write_mapping(folder / SOURCES, fingerprints)
    return data, readings


def go_on(
    task: Task[Any, Any], config: Any, files: Files, folder: Path, *, has_trained: bool, allow_changes: bool
) -> tuple[Any, Readings | None]:
    """The data of a run that goes on; no readings where what it made of them is still right.

    Files that have changed are read only if that is allowed; for files that are merely gone, what was made of them
    serves. A run that has trained keeps its tokeniser: its weights mean nothing with another.
    """
    before = read_mapping(folder / SOURCES) if (folder / SOURCES).exists() else None
    if before is not None:
        now = _fingerprints_now(task, config, files, before)
        changed = sorted(name for name in {**before, **now} if before.get(name) != now.get(name))
        gone = [name for name in changed if name not in now]
        if has_trained and (fixed := [name for name in changed if name in task.kept]):
            raise ResumeError(f"{' and '.join(fixed)} have changed, and a run keeps its own; begin a new run")
        if changed and not allow_changes:
            named = ", ".join(f"{name} (gone)" if name in gone else name for name in changed)
            new = f"the {task.counted} made from it" if changed == gone else "the new data"
            raise ResumeError(
                f"the data is not what this run began with; changed: {named}. "
                f"Put it back, begin a new run, or go on with {new} (--allow-changes)"
            )
        if changed and changed == gone:
            message = f"gone: {', '.join(gone)}; the run goes on with the {task.counted} made from it"
            warnings.warn(message, ResumeWarning, stacklevel=2)
            return task.open(config, folder), None
        if not changed:
            try:
                return task.open(config, folder), None
            except DataError as error:
                warnings.warn(f"{error}; the data is read again", ResumeWarning, stacklevel=2)
    data, readings = read_anew(task, config, files, folder, keep=has_trained)
    return data, readings


def _fingerprints_now(task: Task[Any, Any], config: Any, files: Files, before: dict[str, str]) -> dict[str, str]:
    """Those of the settings and of the files as they are; none of a file of `before` that is gone."""
    settings = dict(task.decides(config, files))
    try:
        return settings | _sums(task, config, files)
    except DataError:
        known = {name: Path(name.removesuffix(VALIDATION)) for name in before if name not in settings}
        given = [Path(path) for path in (*files.train, *files.valid)]
        ours = {place for path in known.values() for place in (path, *path.parents)}
        if all(path.exists() for path in known.values()) or any(
            not path.exists() and path not in ours for path in given
        ):
            raise
        return settings | {name: sha256_of(path) for name, path in known.items() if path.exists()}


def _sums(task: Task[Any, Any], config: Any, files: Files) -> dict[str, str]:
    """Of every file that is read."""
    return {name: sha256_of(path) for name, path in task.inputs(config, files).items()}
