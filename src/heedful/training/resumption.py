"""The progress of a run and the time it takes, the state of a run as a checkpoint, and resuming from one.

A checkpoint contains `Progress` beside its tensors; best scores and patience follow from it. The state of torch's
random number generators is part of it too, so dropout continues where it stopped, in every process.
"""

import json
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np
import torch

from . import checkpoint
from .checkpoint import Checkpoint, RunFolder
from .config import TrainingConfig
from .errors import CheckpointError, ResumeError, ResumeWarning
from .loss_history import LossHistory
from .metrics import Meter, Validation
from .objective import Monitor, Objective
from .optimizers import Update, load_state, state_of
from .parallel import ReplicatedModel, SingleProcess

UNPACED = 3  # steps at the start of a process that do not tell its pace
PLAN_STEPS, PLAN_SECONDS = 10, 5.0  # the first of these that has passed makes a new plan due


@dataclass
class Progress:
    """The step, the position in the data, the time used, the rows logged, the checkpoints and all validations."""

    step: int = 0
    epoch: int = 0
    batch: int = 0  # the next batch of the epoch
    seconds: float = 0.0
    validation_seconds: float = 0.0  # of these
    rows: int = 0
    planned: int = 0  # the steps that the time allows, once they are known; the schedule ends there
    saves: list[int] = field(default_factory=list)  # the last steps of this run that were saved
    meter: Meter = field(default_factory=Meter)
    validations: list[Validation] = field(default_factory=list)
    losses: LossHistory = field(default_factory=LossHistory)

    def ranked(self, monitor: Monitor) -> list[Validation]:
        """Return the validations, best first; among equals, lower losses and then earlier ones come first."""
        return sorted(self.validations, key=lambda valid: (monitor.key(valid.scores), valid.scores.get("loss", 0.0)))

    def final(self, monitor: Monitor, config: TrainingConfig) -> list[Validation]:
        """Return the validations whose mean weights would be the final ones if the run ended here."""
        if config.average == "last":
            return self.validations[-config.keep_last :]
        return self.ranked(monitor)[: config.keep_best if config.average == "best" else 1]

    def validations_since_best(self, monitor: Monitor) -> int:
        """Return how many validations have passed since the first one with the best score."""
        keys = [monitor.progress_key(validation.scores) for validation in self.validations]
        return len(keys) - 1 - keys.index(min(keys)) if keys else 0

    def worth_keeping(self, monitor: Monitor, config: TrainingConfig) -> set[int]:
        """Return the steps whose checkpoints may be needed: the last, the best, and those of the final weights."""
        chosen = self.ranked(monitor)[: config.keep_best] + self.final(monitor, config)
        return {*self.saves, *(validation.step for validation in chosen)}

    @property
    def is_validated(self) -> bool:
        """True if the last step was validated."""
        return bool(self.validations) and self.validations[-1].step == self.step

    @property
    def is_saved(self) -> bool:
        """True if the last step was saved."""
        return self.saves[-1:] == [self.step]

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        meter = Meter(**values["meter"])
        validations = [Validation(**validation) for validation in values["validations"]]
        losses = LossHistory(**values.get("losses", {}))
        return cls(**{**values, "meter": meter, "validations": validations, "losses": losses})


class Clock:
    """The time a run takes, over all its resumptions, and the pace of its steps.

    The pace is that of the last half to three quarters of this process's steps, without validations: the first steps
    allocate memory, record graphs and compile. What validations take is counted by itself.
    `ran_out` and `is_plan_due` change only in `tick`, so that all decisions between two steps agree.
    """

    def __init__(self, progress: Progress, *, limit: float = 0.0, validate_every: int = 0) -> None:
        self._start = time.monotonic() - progress.seconds
        self._limit, self._every = limit, validate_every
        self.validation_seconds, self._n_validations = progress.validation_seconds, len(progress.validations)
        self._lap, self.tokens = progress.seconds, 0.0  # tokens since the last lap
        self._first, self._planned_at = progress.step, progress.seconds
        self._marks = [(self._busy, progress.step)] * 2  # earlier steps; the pace is measured from the first
        self.ran_out, self.is_plan_due = 0 < limit <= progress.seconds, False

    @property
    def now(self) -> float:
        """Seconds of the run so far."""
        return time.monotonic() - self._start

    @property
    def _busy(self) -> float:
        return self.now - self.validation_seconds

    def tick(self, step: int) -> None:
        """Note that a step is done."""
        taken, now = step - self._first, self.now
        self.ran_out = 0 < self._limit <= now
        if taken >= max(UNPACED, 2 * (self._marks[1][1] - self._first)):
            self._marks = [self._marks[1], (self._busy, step)]
        self.is_plan_due = taken % PLAN_STEPS == 0 or (taken >= 2 * UNPACED and now >= self._planned_at + PLAN_SECONDS)
        if self.is_plan_due:
            self._planned_at = now

    def pace(self, step: int) -> float:
        """Return the steps per second, without validations."""
        seconds, first = self._marks[0]
        return max(step - first, 1) / max(self._busy - seconds, 1e-9)

    def allowed(self, step: int) -> float:
        """Return the last step that the time limit allows at this pace."""
        if not self._limit:
            return float("inf")
        seconds, pace, pause, every = max(self._limit - self.now, 0.0), self.pace(step), self._pause, self._every
        before = (every - step % every) / pace if pause else float("inf")  # seconds until the next validation
        if seconds <= before:
            return step + seconds * pace
        passes, rest = divmod(seconds - before, pause + every / pace)
        return step + before * pace + passes * every + max(rest - pause, 0.0) * pace

    @property
    def _pause(self) -> float:
        """The mean seconds of a validation; 0 if none was measured."""
        return self.validation_seconds / self._n_validations if self._n_validations and self._every else 0.0

    def lap(self) -> float:
        """Return the tokens per second since the last call."""
        now = self.now
        speed = self.tokens / max(now - self._lap, 1e-9)
        self._lap, self.tokens = now, 0.0
        return speed

    @contextmanager
    def validating(self) -> Iterator[None]:
        """Count the time spent inside as that of a validation, and exclude it from the lap."""
        began = self.now
        try:
            yield
        finally:
            self._lap += self.now - began
            self.validation_seconds += self.now - began
            self._n_validations += 1

    def left(self, step: int, total: int) -> float:
        """Return the seconds that remain at this pace."""
        seconds = (total - step) / self.pace(step)
        if self._pause:
            seconds += (total // self._every - step // self._every) * self._pause
        return min(seconds, max(self._limit - self.now, 0.0)) if self._limit else seconds


# ---- checkpoints ----

# A resumed run may change these settings. Apart from max_minutes, they say how a step is computed, and so change its
# result by rounding at most.
CHANGEABLE = ("log_every", "save_every", "max_minutes", "tensorboard", "engine", "parallel", "activation_checkpointing")


def identity_of(objective: Objective[Any], config: TrainingConfig) -> dict[str, str]:
    """Return what must stay the same when a run is resumed, as strings."""
    return {**objective.identity(), **_settings(config)}


def _settings(config: TrainingConfig) -> dict[str, str]:
    return {f"training.{key}": json.dumps(value) for key, value in config.to_dict().items() if key not in CHANGEABLE}


def pack(
    model: ReplicatedModel, update: Update, progress: Progress, identity: dict[str, str], world: SingleProcess
) -> Checkpoint:
    """Return the whole state of a run, gathered from all processes by the first."""
    states, device = {"cpu": torch.get_rng_state()}, update.ema_weight.device
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    all_states = world.gather_objects({name: state.tolist() for name, state in states.items()})
    tensors = {
        "model": model.state(model.weights),
        "optimizer": model.gather(state_of(update.optimizers, model.weights)),
        "random": {  # cpu.0, cuda.0, cpu.1, …
            f"{name}.{rank}": torch.tensor(state, dtype=torch.uint8)
            for rank, states in enumerate(all_states)
            for name, state in states.items()
        },
    }
    if update.ema is not None:
        tensors["ema"] = model.state(update.ema.means)
    return Checkpoint({"progress": asdict(progress), "identity": identity}, tensors)


def unpack(saved: Checkpoint, model: ReplicatedModel, update: Update, world: SingleProcess, seed: int) -> Progress:
    """Restore weights, optimizers, average and random state from a checkpoint. Return the progress of the run."""
    model.load(saved.tensors["model"])
    load_state(update.optimizers, model.weights, model.shard(saved.tensors["optimizer"]))
    if update.ema is not None:
        means = model.shard(saved.tensors.get("ema", saved.tensors["model"]))
        for name, mean in update.ema.means.items():
            mean.copy_(means[name])
    progress = Progress.from_dict(saved.state["progress"])
    names = [name.partition(".") for name in saved.tensors["random"]]
    states = {kind: saved.tensors["random"][f"{kind}.{rank}"] for kind, _, rank in names if int(rank) == world.rank}
    if states:
        torch.set_rng_state(states["cpu"])
        if "cuda" in states and update.ema_weight.device.type == "cuda":
            torch.cuda.set_rng_state(states["cuda"], update.ema_weight.device)
    else:  # the checkpoint was written by fewer processes
        seeds = np.random.SeedSequence([seed, progress.step, world.rank])
        torch.manual_seed(int(seeds.generate_state(1, np.uint64)[0]))
    return progress


def find_checkpoint(
    folder: RunFolder, identity: dict[str, str], world: SingleProcess, *, resume: bool, allow_changes: bool
) -> Checkpoint | None:
    """Return the newest intact checkpoint, or None to start from step 0. The first process decides for all.

    Raises:
        ResumeError: if the folder has a run and `resume` is off, or the settings have changed.
    """
    if world.rank > 0:
        step = world.broadcast_object(None)
        return None if step is None else checkpoint.load(checkpoint.path_of(folder.checkpoints, step))
    if not resume and checkpoint.steps_in(folder.checkpoints):
        raise ResumeError(f"{folder.path} holds a run already; resume it, or choose another folder")
    saved = checkpoint.newest(folder.checkpoints) if resume else None
    if saved is not None:
        _check_state(saved, folder)
        _compare(saved.state["identity"], identity, allow_changes=allow_changes)
    world.broadcast_object(None if saved is None else saved.state["progress"]["step"])
    return saved


def _check_state(saved: Checkpoint, folder: RunFolder) -> None:
    """Raise CheckpointError unless a checkpoint holds what a run continues from."""
    try:
        is_whole = Progress.from_dict(saved.state["progress"]).step >= 0 and isinstance(saved.state["identity"], dict)
    except (KeyError, TypeError, AttributeError):
        is_whole = False
    if not is_whole or not {"model", "optimizer", "random"} <= saved.tensors.keys():
        newest = checkpoint.path_of(folder.checkpoints, checkpoint.steps_in(folder.checkpoints)[-1])
        raise CheckpointError(f"{newest} lacks what a run continues from; remove it to resume from the one before it")


def _compare(before: dict[str, str], now: dict[str, str], *, allow_changes: bool) -> None:
    """Raise an error, or warn if changes are allowed, if data or settings have changed."""
    # A setting that the older version did not have counts as its default.
    before = before | {name: value for name, value in _settings(TrainingConfig()).items() if name not in before}
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    if not names:
        return
    changes = "; ".join(f"{name} was {before.get(name, 'absent')}, is {now.get(name, 'absent')}" for name in names)
    if not allow_changes:
        raise ResumeError(f"this run cannot be resumed: {changes}. Change it back, allow changes, or start a new run")
    warnings.warn(f"the run continues with changes: {changes}", ResumeWarning, stacklevel=4)


def random_state_restored(device: torch.device) -> AbstractContextManager[None]:
    """Return a context after which the random state is what it was before."""
    return torch.random.fork_rng([device] if device.type == "cuda" else [])
