"""What a run writes into a checkpoint, and how it goes on from one."""

from __future__ import annotations

import json
import warnings
from typing import Any

from . import checkpoint
from .checkpoint import Checkpoint
from .config import TrainingConfig
from .errors import ResumeError, ResumeWarning
from .folder import RunFolder
from .objective import Objective
from .optimiser import put_state, state_of
from .parallel import Alone, Replica
from .progress import Progress
from .rng import put_random_states, random_states
from .update import Update

# These may change: what is learned does not depend on them.
FREE = ("log_every", "save_every", "max_minutes", "tensorboard", "engine", "parallel", "recompute")


def identity_of(objective: Objective[Any], config: TrainingConfig) -> dict[str, str]:
    """What must stay the same while a run goes on, in words that can be compared."""
    return {**objective.identity(), **_in_words(config)}


def _in_words(config: TrainingConfig) -> dict[str, str]:
    return {f"training.{key}": json.dumps(value) for key, value in config.to_dict().items() if key not in FREE}


def pack(held: Replica, update: Update, progress: Progress, identity: dict[str, str], world: Alone) -> Checkpoint:
    """Everything a run consists of, whoever holds it: all processes bring it together for the first."""
    tensors = {
        "model": held.state(held.weights),
        "optimiser": held.whole(state_of(update.optimisers, held.weights)),
        "random": random_states(update.share.device, world),
    }
    if update.ema is not None:
        tensors["ema"] = held.state(update.ema.means)
    return Checkpoint({"progress": progress.to_dict(), "identity": identity}, tensors)


def unpack(found: Checkpoint, held: Replica, update: Update, world: Alone, seed: int) -> Progress:
    """Put everything back in its place."""
    held.put(found.tensors["model"])
    put_state(update.optimisers, held.weights, held.part(found.tensors["optimiser"]))
    if update.ema is not None:
        before = held.part(found.tensors.get("ema", found.tensors["model"]))
        for name, mean in update.ema.means.items():
            mean.copy_(before[name])
    progress = Progress.from_dict(found.state["progress"])
    put_random_states(found.tensors["random"], update.share.device, world, seed, progress.step)
    return progress


def find(
    folder: RunFolder, identity: dict[str, str], world: Alone, *, resume: bool, allow_changes: bool
) -> Checkpoint | None:
    """Where to go on from: the newest whole checkpoint, or None for the start. The first process decides for all."""
    if world.rank == 0:
        found = _newest(folder, identity, resume=resume, allow_changes=allow_changes)
        world.tell(None if found is None else found.state["progress"]["step"])
        return found
    step = world.tell(None)
    return None if step is None else checkpoint.load(checkpoint.path_of(folder.checkpoints, step))


def _newest(folder: RunFolder, identity: dict[str, str], *, resume: bool, allow_changes: bool) -> Checkpoint | None:
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
    # A setting that an older version did not know was as it is usual now.
    before = before | {name: value for name, value in _in_words(TrainingConfig()).items() if name not in before}
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    if not names:
        return
    changes = "; ".join(f"{name} was {before.get(name, 'absent')}, is {now.get(name, 'absent')}" for name in names)
    if not allow_changes:
        raise ResumeError(f"this run cannot simply go on: {changes}. Change it back, allow changes, or start anew")
    warnings.warn(f"the run goes on with changes: {changes}", ResumeWarning, stacklevel=5)
