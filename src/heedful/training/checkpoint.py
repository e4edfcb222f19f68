"""The folder of a run, and its checkpoints, which are whole or not there.

A checkpoint is a folder step-00001000: tensors in safetensors, everything else in state.json, and
manifest.json with the sha256 of each file. It is written under a hidden name, forced to the disk and
renamed; the one before stays until then. No pickle is written or read.
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
from .parallel import world
from .update import mean_of

FORMAT = 1
MANIFEST = "manifest.json"
STATE = "state.json"
TENSORS = ".safetensors"


class RunFolder:
    """Where a run keeps what it makes. Hold it while writing; who comes second is refused."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.checkpoints = self.path / "checkpoints"
        self.log = self.path / "log.jsonl"
        self._handle: int | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Make the folder and hold its lock. The system frees the lock of a process that died.

        Held already by this object, it stays so: whoever prepares the folder may hold it around `fit`. Of several
        processes, the first holds it for all.
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
            raise FolderError(
                f"the run folder {self.path} cannot be written: {error.strerror} ({error.filename})"
            ) from None
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
            raise FolderError(f"the run folder {self.path} cannot be held: {error.strerror}") from None
        return handle


@dataclass(frozen=True)
class Checkpoint:
    """Plain values for JSON, and tensors in files by name: {"model": {"weight": …}, …}."""

    state: dict[str, Any]
    tensors: dict[str, dict[str, Tensor]]


def path_of(folder: Path, step: int) -> Path:
    """Where the checkpoint of a step stands."""
    return folder / f"step-{step:08d}"


def steps_in(folder: Path) -> list[int]:
    """The steps with a checkpoint, the oldest first."""
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    return sorted(int(match[1]) for name in names if (match := re.fullmatch(r"step-(\d{8,})", name)))


def save(folder: Path, step: int, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint. Whatever goes wrong, what stood in the folder before is still there."""
    path = path_of(folder, step)
    partial = _hidden(path, "partial")
    try:
        partial.mkdir(parents=True)
        for name, tensors in checkpoint.tensors.items():
            plain = {key: value.detach().cpu().contiguous() for key, value in tensors.items()}
            save_file(plain, partial / f"{name}{TENSORS}")
            (partial / f"{name}{TENSORS}").chmod(0o644)  # the library makes it the owner's alone
        _write_json(partial / STATE, checkpoint.state)
        digests = {file.name: sha256_of(file) for file in sorted(partial.iterdir())}
        _write_json(partial / MANIFEST, {"format": FORMAT, "sha256": digests})
        for file in [*partial.iterdir(), partial]:
            force_to_disk(file)
        if path.exists():  # a damaged one, from which a run went back and came here again
            _remove(path)
        os.rename(partial, path)
        force_to_disk(folder)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(partial, ignore_errors=True)
        kept = steps_in(folder)
        last = f"the last checkpoint is {path_of(folder, kept[-1])}" if kept else "there is no checkpoint yet"
        raise CheckpointError(f"the checkpoint of step {step} cannot be written to {path}: {error}; {last}") from error
    return path


def load(path: Path) -> Checkpoint:
    """Read a checkpoint and verify every file of it."""
    names = _verified(path)
    tensors = {name.removesuffix(TENSORS): _tensors(path / name) for name in names if name.endswith(TENSORS)}
    return Checkpoint(_read_json(path / STATE), tensors)


def load_tensors(path: Path, name: str) -> dict[str, Tensor]:
    """One file of tensors of a checkpoint, verified with the rest."""
    _verified(path)
    return _tensors(path / f"{name}{TENSORS}")


def newest(folder: Path) -> Checkpoint | None:
    """The newest whole checkpoint. A damaged one is named in a warning; an error if all are damaged."""
    steps = steps_in(folder)
    for step in reversed(steps):
        try:
            return load(path_of(folder, step))
        except CheckpointError as error:
            warnings.warn(f"{error}; going back to the checkpoint before it", CheckpointWarning, stacklevel=2)
    if steps:
        raise CheckpointError(
            f"none of the {len(steps)} checkpoints in {folder} is whole; start anew in another folder"
        )
    return None


def prune(folder: Path, keep: Collection[int]) -> None:
    """Remove all checkpoints but these, and what killed runs have left behind."""
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
    """The mean of the weights that were validated, and those that were used: a damaged one is named and left out."""
    weights, used = [], []
    for validation in validations:
        try:
            weights.append(load_tensors(path_of(folder, validation.step), kind))
            used.append(validation)
        except CheckpointError as error:
            warnings.warn(f"{error}; the final weights are made without it", CheckpointWarning, stacklevel=2)
    if not used:
        raise CheckpointError(f"in {folder}, no checkpoint for the final weights can be read; resume from an older one")
    return mean_of(weights), used


def describe_weights(used: Sequence[Validation], kind: str) -> str:
    """Which weights those are, for a model card."""
    steps = ", ".join(str(validation.step) for validation in sorted(used, key=lambda validation: validation.step))
    mean = f"mean over the steps {steps}" if len(used) > 1 else f"step {steps}"
    return f"the running average, {mean}" if kind == "ema" else f"those of {mean}"


def _remove(path: Path) -> None:
    """Out of sight first: a folder half removed must not look like a checkpoint."""
    hidden = _hidden(path, "removed")
    os.rename(path, hidden)
    shutil.rmtree(hidden)


def _hidden(path: Path, why: str) -> Path:
    hidden = path.with_name(f".{path.name}.{why}")
    shutil.rmtree(hidden, ignore_errors=True)  # of a run that was killed
    return hidden


def _verified(path: Path) -> list[str]:
    """The names of the files, each of which is what was written."""
    manifest = _read_json(path / MANIFEST)
    digests = manifest.get("sha256")
    if manifest.get("format") != FORMAT or not isinstance(digests, dict) or STATE not in digests:
        raise CheckpointError(f"{path / MANIFEST} is not the manifest of a checkpoint of format {FORMAT}")
    for name, digest in digests.items():
        if Path(name).name != name:
            raise CheckpointError(f"{path / MANIFEST} names {name!r}, which is no file of a checkpoint")
        try:
            found = sha256_of(path / name)
        except OSError as error:
            raise CheckpointError(f"{path / name} cannot be read ({error.strerror})") from None
        if found != digest:
            raise CheckpointError(f"{path / name} is damaged: its sha256 is not the manifest's")
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
        raise CheckpointError(f"{file} is damaged: it is no JSON") from None
    if not isinstance(values, dict):
        raise CheckpointError(f"{file} is damaged: it holds no keys and values")
    return values
