"""What a run writes into a checkpoint, and how it goes on from one."""

from __future__ import annotations

import json
import warnings
from typing import Any

from torch import nn

from ..families.weights import put_weights, weights_of
from . import checkpoint
from .checkpoint import Checkpoint
from .config import TrainingConfig
from .errors import ResumeError, ResumeWarning
from .folder import RunFolder
from .job import Job
from .optimiser import put_state, state_of
from .progress import Progress
from .rng import put_random_state, random_state
from .update import Update

FREE = ("log_every", "save_every", "max_minutes", "tensorboard")  # these may change: the weights do not depend on them


def identity_of(job: Job[Any], config: TrainingConfig) -> dict[str, str]:
    """What must stay the same while a run goes on, in words that can be compared."""
    settings = {f"training.{key}": json.dumps(value) for key, value in config.to_dict().items() if key not in FREE}
    return {**job.identity(), **settings}


def pack(module: nn.Module, update: Update, progress: Progress, identity: dict[str, str]) -> Checkpoint:
    """Everything a run consists of."""
    tensors = {
        "model": weights_of(module),
        "optimiser": state_of(update.optimiser, module),
        "random": random_state(update.rate.device),
    }
    if update.ema is not None:
        tensors["ema"] = weights_of(update.ema.module)
    return Checkpoint({"progress": progress.to_dict(), "identity": identity}, tensors)


def unpack(found: Checkpoint, module: nn.Module, update: Update) -> Progress:
    """Put everything back in its place."""
    put_weights(module, found.tensors["model"])
    put_state(update.optimiser, module, found.tensors["optimiser"])
    put_random_state(found.tensors["random"], update.rate.device)
    if update.ema is not None:
        put_weights(update.ema.module, found.tensors.get("ema", found.tensors["model"]))
    return Progress.from_dict(found.state["progress"])


def find(folder: RunFolder, identity: dict[str, str], *, resume: bool, allow_changes: bool) -> Checkpoint | None:
    """Where to go on from: the newest whole checkpoint, or None for the start."""
    if not resume:
        if checkpoint.steps_in(folder.checkpoints):
            raise ResumeError(f"{folder.path} holds a run already; resume it, or choose another folder")
        return None
    found = checkpoint.newest(folder.checkpoints)
    if found is not None:
        _compare(found.state["identity"], identity, allow_changes=allow_changes)
    return found


def _compare(before: dict[str, str], now: dict[str, str], *, allow_changes: bool) -> None:
    """Say what has changed, and stop there unless that is meant."""
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    if not names:
        return
    changes = "; ".join(f"{name} was {before.get(name, 'absent')}, is {now.get(name, 'absent')}" for name in names)
    if not allow_changes:
        raise ResumeError(f"this run cannot simply go on: {changes}. Change it back, allow changes, or start anew")
    warnings.warn(f"the run goes on with changes: {changes}", ResumeWarning, stacklevel=4)
