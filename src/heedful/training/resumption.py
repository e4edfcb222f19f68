"""What a run writes into a checkpoint, and how it goes on from one.

The state of torch's random numbers is part of it: dropout goes on where it stopped, in every process.
"""

import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from . import checkpoint
from .checkpoint import Checkpoint, RunFolder
from .config import TrainingConfig
from .errors import ResumeError, ResumeWarning
from .objective import Objective
from .optimizers import put_state, state_of
from .parallel import ReplicatedModel, SingleProcess
from .progress import Progress
from .update import Update

# These may change: what is learned does not depend on them.
FREE = ("log_every", "save_every", "max_minutes", "tensorboard", "engine", "parallel", "recompute")


def identity_of(objective: Objective[Any], config: TrainingConfig) -> dict[str, str]:
    """What must stay the same while a run goes on, in words that can be compared."""
    return {**objective.identity(), **_in_words(config)}


def _in_words(config: TrainingConfig) -> dict[str, str]:
    return {f"training.{key}": json.dumps(value) for key, value in config.to_dict().items() if key not in FREE}


def pack(
    held: ReplicatedModel, update: Update, progress: Progress, identity: dict[str, str], world: SingleProcess
) -> Checkpoint:
    """Everything a run consists of, whoever holds it: all processes bring it together for the first."""
    states = random_state(update.share.device)
    all_states = world.gather_objects({name: state.tolist() for name, state in states.items()})
    tensors = {
        "model": held.state(held.weights),
        "optimiser": held.whole(state_of(update.optimizers, held.weights)),
        "random": {  # cpu.0, cuda.0, cpu.1, …
            f"{name}.{rank}": torch.tensor(state, dtype=torch.uint8)
            for rank, states in enumerate(all_states)
            for name, state in states.items()
        },
    }
    if update.ema is not None:
        tensors["ema"] = held.state(update.ema.means)
    return Checkpoint({"progress": progress.to_dict(), "identity": identity}, tensors)


def unpack(found: Checkpoint, held: ReplicatedModel, update: Update, world: SingleProcess, seed: int) -> Progress:
    """Put everything back in its place."""
    held.put(found.tensors["model"])
    put_state(update.optimizers, held.weights, held.part(found.tensors["optimiser"]))
    if update.ema is not None:
        before = held.part(found.tensors.get("ema", found.tensors["model"]))
        for name, mean in update.ema.means.items():
            mean.copy_(before[name])
    progress = Progress.from_dict(found.state["progress"])
    names = [name.partition(".") for name in found.tensors["random"]]
    states = {kind: found.tensors["random"][f"{kind}.{rank}"] for kind, _, rank in names if int(rank) == world.rank}
    if states:
        put_random_state(states, update.share.device)
    else:  # a process that was not there then draws anew
        seeds = np.random.SeedSequence([seed, progress.step, world.rank])
        torch.manual_seed(int(seeds.generate_state(1, np.uint64)[0]))
    return progress


def find(
    folder: RunFolder, identity: dict[str, str], world: SingleProcess, *, resume: bool, allow_changes: bool
) -> Checkpoint | None:
    """Where to go on from: the newest whole checkpoint, or None for the start. The first process decides for all."""
    if world.rank > 0:
        step = world.broadcast_object(None)
        return None if step is None else checkpoint.load(checkpoint.path_of(folder.checkpoints, step))
    if not resume and checkpoint.steps_in(folder.checkpoints):
        raise ResumeError(f"{folder.path} holds a run already; resume it, or choose another folder")
    found = checkpoint.newest(folder.checkpoints) if resume else None
    if found is not None:
        _compare(found.state["identity"], identity, allow_changes=allow_changes)
    world.broadcast_object(None if found is None else found.state["progress"]["step"])
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
    warnings.warn(f"the run goes on with changes: {changes}", ResumeWarning, stacklevel=4)


def random_state(device: torch.device) -> dict[str, Tensor]:
    """This process's: the CPU's state, and the GPU's where one is used."""
    state = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    return state


def put_random_state(state: Mapping[str, Tensor], device: torch.device) -> None:
    """Go on from a state that `random_state` gave; a GPU it did not know keeps its own."""
    torch.set_rng_state(state["cpu"])
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)


@contextmanager
def set_aside(device: torch.device) -> Iterator[None]:
    """What is drawn inside leaves no trace outside."""
    state = random_state(device)
    try:
        yield
    finally:
        put_random_state(state, device)
