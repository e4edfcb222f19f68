"""One training loop for every task.

`Trainer.run` is the whole story; what it names stands below it, or in a module beside this one.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from signal import Signals as Signal
from typing import Any, NoReturn, TypeVar

import torch
from torch import Tensor, nn

from ..core import Stack
from ..data.batch import pinned
from ..data.loader import Shard, prefetched
from . import checkpoint
from .checkpoint import RunFolder, describe_weights, mean_of_checkpoints
from .config import TrainingConfig
from .device import computes_in_bf16
from .engines import engine_for
from .errors import Interrupted, NonFiniteError
from .metrics import (
    AsyncMetrics,
    Event,
    Finished,
    Log,
    Meter,
    Observer,
    Outcome,
    Saved,
    StepValues,
    TensorBoard,
    Trained,
    Validated,
    Validation,
)
from .objective import Group, Objective, groups, whole
from .parallel import hold, world
from .progress import Clock, Progress
from .resumption import find, identity_of, pack, set_aside, unpack
from .signals import Signals, exit_code
from .update import Update

SHOWN = 40  # places of input that an error names
AHEAD = 4  # updates whose batches are made before they are needed

T = TypeVar("T")


def fit(
    objective: Objective[Any],
    config: TrainingConfig,
    folder: str | Path | RunFolder,
    *,
    resume: bool = False,
    allow_changes: bool = False,
    observers: Sequence[Observer] = (),
) -> Outcome:
    """Train an objective's module in a run folder; the module ends with the final weights.

    With `resume` the run goes on from its newest whole checkpoint, if it has one, as if it had never stopped;
    it refuses to where data or settings have changed, unless `allow_changes`. SIGTERM and SIGINT save the run
    and raise Interrupted. Of several processes, the first keeps the folder, validates and tells the observers;
    only its module ends with the final weights.
    """
    run = folder if isinstance(folder, RunFolder) else RunFolder(folder)
    with world().guarded(), run.held(), Signals() as signals, ExitStack() as stack:
        trainer = Trainer(objective, config, run, signals, resume=resume, allow_changes=allow_changes)
        stack.callback(trainer.close)
        trainer.observers += observers if world().rank == 0 else ()
        if config.tensorboard and world().rank == 0:
            board = TensorBoard(run.path / "tensorboard", trainer.progress.step)
            trainer.observers.append(stack.enter_context(closing(board)))
        return trainer.run()


class Trainer:
    """A run while it runs."""

    def __init__(
        self,
        objective: Objective[Any],
        config: TrainingConfig,
        folder: RunFolder,
        signals: Signals,
        *,
        resume: bool = False,
        allow_changes: bool = False,
    ) -> None:
        self.identity = identity_of(objective, config)
        self.world = world()
        self.device = self.world.device(config.device)
        if self.device.type == "cuda" and self.device.index is not None:
            torch.cuda.set_device(self.device)  # where kernels are launched
        if not computes_in_bf16(self.device):
            config = config.changed(precision="float32")
        self.objective, self.config, self.folder, self.signals = objective, config, folder, signals
        self.module = objective.module.to(self.device)
        self.total_steps = config.total_steps(objective.batches.steps_per_epoch)
        for part in self.module.modules():
            if isinstance(part, Stack):
                part.recompute = config.recompute
        self.held = hold(self.module, config, self.world)
        self.update = Update(self.held, config, self.total_steps)
        self.engine = engine_for(config, self.device, self.update, objective, self.held, config, self.world)
        torch.manual_seed(config.seed + self.world.rank)  # each process drops its own
        found = find(folder, self.identity, self.world, resume=resume, allow_changes=allow_changes)
        self.progress = Progress() if found is None else unpack(found, self.held, self.update, self.world, config.seed)
        share = Shard(self.world.rank, self.world.size)
        coming = groups(objective.batches, self.progress.epoch, self.progress.batch, config.accumulate, share)
        self.groups = prefetched(map(ready, coming), AHEAD) if self.device.type == "cuda" else coming
        self.metrics = AsyncMetrics()
        self.log = Log(folder.log, self.progress.rows) if self.world.rank == 0 else None
        self.observers: list[Observer] = [] if self.log is None else [self.log]
        self.clock = Clock(self.progress.seconds, self.progress.step, limit=60 * config.max_minutes)
        self.caught: Signal | None = None
        self.listen()

    def run(self) -> Outcome:
        """Step, validate, save, until there is a reason to stop."""
        while True:
            if self.validation_is_due:
                self.validate()
            if self.why_stop:
                self.report()  # before the checkpoint, so that a resumed run does not do it again
            if self.saving_is_due:
                self.save()
            if self.caught:
                self.leave()
            if self.why_stop:
                outcome = self.finish()
                self.listen()
                if self.caught:
                    self.leave()
                return outcome
            self.step()

    def step(self) -> None:
        """One update from `accumulate` batches: by the gradient of the mean over all their tokens."""
        group, step = next(self.groups), self.progress.step + 1
        self.metrics.put(step, group.epoch, whole(group, self.objective.batches), self.engine.step(step, group.batches))
        self.progress.step, (self.progress.epoch, self.progress.batch) = step, group.after
        self.clock.tick()
        self.read()
        self.listen()

    def listen(self) -> None:
        """Whether any process caught a signal or is out of time: all must know it, to do the same."""
        caught, ran_out = self.world.all_reduce_max(self.signals.caught or 0, self.clock.ran_out)
        self.caught, self.clock.ran_out = Signal(int(caught)) if caught else None, bool(ran_out)

    def read(self, *, wait: bool = False) -> None:
        """Log the steps whose values have come back; stop at one that was not finite."""
        for values in self.metrics.take(wait=wait):
            if not values.finite:
                raise non_finite(values, self.objective, self.progress)
            self.progress.meter.add(values)
            self.clock.count(values.n)
            if every(self.config.log_every, values.step):
                self.report()

    def report(self) -> None:
        """Log what was read since the last time."""
        if self.progress.meter.n:
            meter, self.progress.meter = self.progress.meter, Meter()
            self.tell(
                Trained(
                    step=meter.step,
                    total_steps=self.total_steps,
                    epoch=meter.epoch,
                    loss=meter.total / meter.n,
                    nll=meter.plain / meter.n,
                    learning_rate=self.update.schedule(meter.step),
                    grad_norm=meter.norm,
                    tokens_per_second=self.clock.lap(),
                    seconds=self.clock.now,
                    seconds_left=self.clock.left(meter.step, self.total_steps),
                )
            )

    @property
    def average(self) -> dict[str, Tensor] | None:
        """The running average where there is one: then it is what is validated and delivered."""
        return None if self.update.ema is None else self.update.ema.means

    @property
    def validation_is_due(self) -> bool:
        """Every so many steps, and at the end."""
        at_step = every(self.config.validate_every, self.progress.step) or self.why_stop is not None
        return at_step and not self.progress.is_validated

    @torch.no_grad()
    def validate(self) -> None:
        """Score the weights. A signal breaks this off, and a resumed run begins with it."""
        self.read(wait=True)
        with set_aside(self.device), self.clock.paused():
            judges = self.world.rank == 0 or self.held.divided  # then all have a part of what is judged
            module = self.held.judged(self.average) if judges else self.module
            scores = self.alone(lambda: self.signals.until_caught(lambda: self.evaluate(module)))
        self.listen()
        if scores is not None:
            self.progress.validations.append(Validation(self.progress.step, scores))
            self.tell(Validated(self.progress.step, scores, is_best=self.progress.waited(self.objective.monitor) == 0))

    def alone(self, work: Callable[[], T]) -> T:
        """What the first process finds, plain values, while the others wait for it."""
        found: T = self.world.broadcast_object(work() if self.world.rank == 0 else None)
        return found

    def evaluate(self, module: nn.Module) -> dict[str, float]:
        """The objective's scores for a module."""
        scores = self.objective.validate(module)
        if not math.isfinite(score := scores[self.objective.monitor.name]):
            raise NonFiniteError(
                f"the validation at step {self.progress.step} gave {self.objective.monitor.name} = {score}"
            )
        return scores

    @property
    def saving_is_due(self) -> bool:
        """With every validation, and every so many steps between."""
        at_step = every(self.config.save_every, self.progress.step) or self.progress.is_validated
        return at_step and not self.progress.is_saved

    def save(self) -> None:
        """Write a checkpoint, once all steps behind it are known to be finite."""
        self.read(wait=True)
        progress = self.progress
        progress.seconds, progress.rows = self.clock.now, 0 if self.log is None else self.log.rows
        progress.saves = [*progress.saves, progress.step][-self.config.keep_last :]
        whole = pack(self.held, self.update, progress, self.identity, self.world)
        if self.world.rank == 0:
            path = checkpoint.save(self.folder.checkpoints, progress.step, whole)
            self.tidy()
            self.tell(Saved(progress.step, path))
        self.listen()

    def tidy(self) -> None:
        """Remove the checkpoints that are no longer needed, and what killed runs have left."""
        checkpoint.prune(self.folder.checkpoints, self.progress.worth_keeping(self.objective.monitor, self.config))

    def leave(self) -> NoReturn:
        """Save and go, because a signal said so."""
        signal = self.caught
        assert signal is not None
        if not self.progress.is_saved:
            self.save()
        raise Interrupted(f"{signal.name} at step {self.progress.step}: saved, to be resumed", exit_code(signal))

    @property
    def why_stop(self) -> str | None:
        """The reason to stop after this step, if there is one."""
        if self.progress.step >= self.total_steps:
            return f"all {self.total_steps} steps are done"
        if self.config.patience and self.progress.waited(self.objective.monitor) >= self.config.patience:
            return f"{self.config.patience} validations in a row brought nothing better"
        return f"the {self.config.max_minutes:g} minutes are over" if self.clock.ran_out else None

    @torch.no_grad()
    def finish(self) -> Outcome:
        """Put the final weights in their place, score them if they are new, and tell how it went."""
        outcome = Outcome(
            **self.alone(self.deliver),
            module=self.module.eval(),
            why=self.why_stop or "",
            step=self.progress.step,
            validations=tuple(self.progress.validations),
        )
        self.tell(Finished(outcome))
        return outcome

    def deliver(self) -> dict[str, Any]:
        """What the first process does of that."""
        wanted = self.progress.final(self.objective.monitor, self.config)
        kind = "model" if self.update.ema is None else "ema"
        weights, used = mean_of_checkpoints(self.folder.checkpoints, wanted, kind)
        module = self.held.final(weights)
        self.tidy()
        scores = used[0].scores if len(used) == 1 else self.evaluate(module)
        return {"seconds": self.clock.now, "weights": describe_weights(used, kind), "scores": scores}

    def close(self) -> None:
        """End what runs beside it."""
        self.groups.close()
        if self.log is not None:
            self.log.close()

    def tell(self, event: Event) -> None:
        """Let everyone know who watches; the log is one of them."""
        for observer in self.observers:
            observer(event)


def ready(group: Group) -> Group:
    """With its batches where a GPU can fetch them by itself."""
    return replace(group, batches=[pinned(batch) for batch in group.batches])


def every(n: int, step: int) -> bool:
    """Whether a step is a multiple of n; 0 means never."""
    return n > 0 and step > 0 and step % n == 0


def non_finite(values: StepValues, objective: Objective[Any], progress: Progress) -> NonFiniteError:
    """What to say of a step that was not finite: which input was behind it."""
    places = [place for batch in values.batches for place in objective.describe(batch)]
    more = f" and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
    kept = f"the last checkpoint is of step {progress.saves[-1]}" if progress.saves else "nothing was saved yet"
    return NonFiniteError(
        f"step {values.step}: the loss, {values.total:g} over {values.n:g} tokens, or its gradient, of norm "
        f"{values.norm:g}, is not finite. The step was not taken; {kept}. Look at its input, or lower the "
        f"learning_rate: {', '.join(places[:SHOWN])}{more}"
    )
