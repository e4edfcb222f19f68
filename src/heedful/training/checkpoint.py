"""The folder of a run, and its checkpoints, which are written atomically.

A checkpoint is a folder step-00001000: tensors in safetensors, everything else in state.json, and manifest.json with
the SHA-256 of each file. It is written under a hidden name, synced to the disk and renamed; the previous one stays
until then. No pickle is written or read.
"""

import fcntl
import json
import os
import re
import shutil
import socket
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from ..files import force_to_disk, sha256_of
from .errors import CheckpointError, CheckpointWarning, FolderError
from .metrics import Validation
from .optimizers import mean_of
from .parallel import world

FORMAT = 1
MANIFEST = "manifest.json"
STATE = "state.json"
TENSORS = ".safetensors"


class RunFolder:
    """The folder of a run. It is locked while a run writes to it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.checkpoints = self.path / "checkpoints"
        self.log = self.path / "log.jsonl"
        self._handle: int | None = None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Create the folder and lock it. The operating system releases the lock if the process dies.

        If this object has locked it already, nothing happens: a caller may lock the folder around `fit`. With several
        processes, the first locks it for all.

        Raises:
            FolderError: if the folder cannot be written, or another process has locked it.
        """
        if self._handle is not None or world().rank > 0:
            yield
            return
        self._handle = self._lock()
        try:
            yield
        finally:
            os.close(self._handle)
            self._handle = None

    def _lock(self) -> int:
        lock = self.path / "run.lock"
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
            handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            problem = f"{error.strerror} ({error.filename})"
            raise FolderError(f"the run folder {self.path} cannot be written: {problem}") from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        except BlockingIOError:
            holder = os.pread(handle, 1000, 0).decode(errors="replace").strip() or "another process"
            os.close(handle)
            raise FolderError(f"{self.path} is in use by {holder}; wait for it, or choose another folder") from None
        except OSError as error:
            os.close(handle)
            raise FolderError(f"the run folder {self.path} cannot be locked: {error.strerror}") from None
        return handle


@dataclass(frozen=True)
class Checkpoint:
    """Plain values for JSON, and tensors by file: {"model": {"weight": …}, …}."""

    state: dict[str, Any]
    tensors: dict[str, dict[str, Tensor]]


def path_of(folder: Path, step: int) -> Path:
    """Return the path of the checkpoint of a step."""
    return folder / f"step-{step:08d}"


def steps_in(folder: Path) -> list[int]:
    """Return the steps with a checkpoint, oldest first."""
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    return sorted(int(match[1]) for name in names if (match := re.fullmatch(r"step-(\d{8,})", name)))


def save(folder: Path, step: int, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint and return its path. If this fails, the folder still has all earlier checkpoints.

    Raises:
        CheckpointError: if the checkpoint cannot be written.
    """
    path = path_of(folder, step)
    partial = _hidden(path, "partial")
    try:
        partial.mkdir(parents=True)
        for name, tensors in checkpoint.tensors.items():
            plain = {key: value.detach().cpu().contiguous() for key, value in tensors.items()}
            save_file(plain, partial / f"{name}{TENSORS}")
            (partial / f"{name}{TENSORS}").chmod(0o644)  # safetensors makes it readable by the owner alone
        _write_json(partial / STATE, checkpoint.state)
        digests = {file.name: sha256_of(file) for file in sorted(partial.iterdir())}
        _write_json(partial / MANIFEST, {"format": FORMAT, "sha256": digests})
        for file in [*partial.iterdir(), partial]:
            force_to_disk(file)
        if path.exists():  # a damaged one: the run was resumed from an earlier checkpoint
            _remove(path)
        os.rename(partial, path)
        force_to_disk(folder)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(partial, ignore_errors=True)
        steps = steps_in(folder)
        last = f"the last checkpoint is {path_of(folder, steps[-1])}" if steps else "there is no checkpoint yet"
        raise CheckpointError(f"the checkpoint of step {step} cannot be written to {path}: {error}; {last}") from error
    return path


def load(path: Path) -> Checkpoint:
    """Read a checkpoint and verify all of its files.

    Raises:
        CheckpointError: if a file is missing or damaged.
    """
    names = _verified(path)
    tensors = {name.removesuffix(TENSORS): _tensors(path / name) for name in names if name.endswith(TENSORS)}
    return Checkpoint(_read_json(path / STATE), tensors)


def load_tensors(path: Path, name: str) -> dict[str, Tensor]:
    """Read one file of tensors of a checkpoint and verify all of its files."""
    _verified(path)
    return _tensors(path / f"{name}{TENSORS}")


def newest(folder: Path) -> Checkpoint | None:
    """Return the newest intact checkpoint, or None if there are none. A damaged one causes a warning.

    Raises:
        CheckpointError: if all checkpoints are damaged.
    """
    steps = steps_in(folder)
    for step in reversed(steps):
        try:
            return load(path_of(folder, step))
        except CheckpointError as error:
            warnings.warn(f"{error}; going back to the checkpoint before it", CheckpointWarning, stacklevel=2)
    if steps:
        raise CheckpointError(f"all {len(steps)} checkpoints in {folder} are damaged; start again in another folder")
    return None


def prune(folder: Path, keep: Collection[int]) -> None:
    """Remove all checkpoints except those to keep, and the remains of killed runs."""
    try:
        for step in steps_in(folder):
            if step not in keep:
                _remove(path_of(folder, step))
        for leftover in folder.glob(".step-*"):
            shutil.rmtree(leftover)
    except OSError as error:
        raise CheckpointError(f"old checkpoints in {folder} cannot be removed: {error}") from error


def mean_of_checkpoints(
    folder: Path, validations: Sequence[Validation], kind: str
) -> tuple[dict[str, Tensor], list[Validation]]:
    """Return the mean of validated weights, and the validations used: damaged checkpoints are left out."""
    weights, used = [], []
    for validation in validations:
        try:
            weights.append(load_tensors(path_of(folder, validation.step), kind))
            used.append(validation)
        except CheckpointError as error:
            warnings.warn(f"{error}; it is left out of the final weights", CheckpointWarning, stacklevel=2)
    if not used:
        raise CheckpointError(f"in {folder}, no checkpoint for the final weights can be read; resume from an older one")
    return mean_of(weights), used


def describe_weights(used: Sequence[Validation], kind: str) -> str:
    """Describe the final weights, for a model card."""
    steps = ", ".join(str(validation.step) for validation in sorted(used, key=lambda validation: validation.step))
    mean = f"mean over the steps {steps}" if len(used) > 1 else f"step {steps}"
    return f"the running average, {mean}" if kind == "ema" else f"those of {mean}"


def _remove(path: Path) -> None:
    hidden = _hidden(path, "removed")
    os.rename(path, hidden)  # first: a partly removed folder must not look like a checkpoint
    shutil.rmtree(hidden)


def _hidden(path: Path, why: str) -> Path:
    hidden = path.with_name(f".{path.name}.{why}")
    shutil.rmtree(hidden, ignore_errors=True)  # the remains of a killed run
    return hidden


def _verified(path: Path) -> list[str]:
    """Return the names of the files, once their checksums are verified."""
    manifest = _read_json(path / MANIFEST)
    digests = manifest.get("sha256")
    if manifest.get("format") != FORMAT or not isinstance(digests, dict) or STATE not in digests:
        raise CheckpointError(f"{path / MANIFEST} is not the manifest of a checkpoint of format {FORMAT}")
    for name, digest in digests.items():
        if Path(name).name != name:
            raise CheckpointError(f"{path / MANIFEST} names {name!r}, which is not a file of a checkpoint")
        try:
            actual = sha256_of(path / name)
        except OSError as error:
            raise CheckpointError(f"{path / name} cannot be read ({error.strerror})") from None
        if actual != digest:
            raise CheckpointError(f"{path / name} is damaged: its sha256 differs from the manifest")
    return sorted(digests)


def _tensors(file: Path) -> dict[str, Tensor]:
    try:
        return load_file(file)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{file} cannot be read ({error})") from None


def _write_json(file: Path, values: dict[str, Any]) -> None:
    file.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")


def _read_json(file: Path) -> dict[str, Any]:
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise CheckpointError(f"{file} cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise CheckpointError(f"{file} is damaged: it is not JSON") from None
    if not isinstance(values, dict):
        raise CheckpointError(f"{file} is damaged: it is not a JSON object")
    return values
