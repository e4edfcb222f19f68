"""One training loop for every task. Start reading at `Trainer.run`."""

import math
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from signal import Signals as Signal
from typing import Any, NoReturn

import torch
from torch import nn

from ..core import Stack
from ..data.batch import pinned
from ..data.loader import Shard, prefetched
from . import checkpoint
from .checkpoint import RunFolder, describe_weights, mean_of_checkpoints
from .config import TrainingConfig
from .engines import engine_for
from .errors import Interrupted, LossSpikeError, NonFiniteError
from .metrics import (
    AsyncMetrics,
    Event,
    Finished,
    Log,
    Meter,
    Observer,
    Outcome,
    Planned,
    Saved,
    Spiked,
    StepValues,
    TensorBoard,
    Trained,
    Validated,
    Validation,
)
from .objective import Group, Objective, groups, unsharded
from .optimizers import Update
from .parallel import parallelize, world
from .parallel.process_group import computes_in_bf16
from .resumption import Clock, Progress, find_checkpoint, identity_of, pack, random_state_restored, unpack
from .signals import Signals, exit_code

MAX_PLACES = 40  # input lines that an error names
PREFETCHED = 4  # updates whose batches are loaded in advance


def fit(
    objective: Objective[Any],
    config: TrainingConfig,
    folder: str | Path | RunFolder,
    *,
    resume: bool = False,
    allow_changes: bool = False,
    observers: Sequence[Observer] = (),
) -> Outcome:
    """Train an objective's module in a run folder. Afterwards the module has the final weights.

    With several processes, only the first writes to the folder, validates, calls the observers, and gets the final
    weights.

    Args:
        objective: the module, its data, its loss and the score to monitor.
        config: the settings of the run.
        folder: where the run writes its log and checkpoints.
        resume: continue from the newest intact checkpoint, if there is one, as if the run had never stopped.
        allow_changes: resume even if the data or the settings have changed.
        observers: functions that are called with every event.

    Raises:
        Interrupted: after SIGTERM or SIGINT, once the run is saved.
        ResumeError: if the data or the settings have changed, or the folder has another run.
        NonFiniteError: if a loss, a gradient or a score is not finite.
    """
    run = folder if isinstance(folder, RunFolder) else RunFolder(folder)
    with world().guarded(), run.locked(), Signals() as signals, ExitStack() as stack:
        trainer = Trainer(objective, config, run, signals, resume=resume, allow_changes=allow_changes)
        stack.callback(trainer.close)
        trainer.observers += observers if world().rank == 0 else ()
        if config.tensorboard and world().rank == 0:
            board = TensorBoard(run.path / "tensorboard", trainer.progress.step)
            trainer.observers.append(stack.enter_context(closing(board)))
        return trainer.run()


class Trainer:
    """The state of a run, and its training loop, which `fit` calls."""

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
            torch.cuda.set_device(self.device)  # Triton launches its kernels there
        if not computes_in_bf16(self.device):
            config = config.changed(precision="float32")
        self.objective, self.config, self.folder, self.signals = objective, config, folder, signals
        self.module = objective.module.to(self.device)
        self.total_steps = config.total_steps(objective.batches.steps_per_epoch)
        for part in self.module.modules():
            if isinstance(part, Stack):
                part.activation_checkpointing = config.activation_checkpointing
        self.model = parallelize(self.module, config, self.world)
        self.update = Update(self.model, config, self.total_steps)
        self.engine = engine_for(config, self.device, self.update, objective, self.model, config, self.world)
        torch.manual_seed(config.seed + self.world.rank)  # each process has its own dropout
        saved = find_checkpoint(folder, self.identity, self.world, resume=resume, allow_changes=allow_changes)
        self.progress = Progress() if saved is None else unpack(saved, self.model, self.update, self.world, config.seed)
        if config.loss_spikes == "skip":
            self.update.max_loss.fill_(self.progress.losses.limit)
        shard = Shard(self.world.rank, self.world.size)
        loaded = groups(
            objective.batches, self.progress.epoch, self.progress.batch, config.gradient_accumulation_steps, shard
        )
        self.groups = prefetched(map(pin, loaded), PREFETCHED) if self.device.type == "cuda" else loaded
        self.metrics = AsyncMetrics()
        self.log = Log(folder.log, self.progress.rows) if self.world.rank == 0 else None
        self.observers: list[Observer] = [] if self.log is None else [self.log]
        self.clock = Clock(self.progress, limit=60 * config.max_minutes, validate_every=config.validate_every)
        self.caught: Signal | None = None
        self.is_planned = False
        self.update.plan(self.planned_steps)
        self.sync_stop()

    @property
    def planned_steps(self) -> int:
        """The length of the schedule: all steps, or as many as the time limit allows."""
        limited = self.progress.planned if self.config.max_minutes else 0
        return min(limited or self.total_steps, self.total_steps)

    def run(self) -> Outcome:
        """Step, validate and save until there is a reason to stop."""
        while True:
            if self.validation_is_due:
                self.validate()
            if self.stop_reason:
                self.report()  # before the checkpoint, so that a resumed run does not report again
            if self.saving_is_due:
                self.save()
            if self.caught:
                self.interrupt()
            if self.stop_reason:
                outcome = self.finish()
                self.sync_stop()
                if self.caught:
                    self.interrupt()
                return outcome
            self.step()

    def step(self) -> None:
        """Update the weights from a group of batches, by the gradient of the mean over all their tokens."""
        group, step = next(self.groups), self.progress.step + 1
        batches = unsharded(group, self.objective.batches)
        self.metrics.put(step, group.epoch, batches, self.engine.step(step, group.batches))
        self.progress.step, (self.progress.epoch, self.progress.batch) = step, group.next_position
        self.clock.tick(step)
        self.read_metrics(wait=self.config.loss_spikes == "skip")
        self.sync_stop()
        if self.clock.is_plan_due and (self.config.max_minutes or not self.is_planned):
            self.plan()

    def plan(self) -> None:
        """Fit the schedule to the number of steps that the time limit allows, measured by the pace so far.

        The first call in a process notifies the observers; later calls only correct the schedule.
        """
        step = self.progress.step
        (last,) = self.world.all_reduce_max(-self.clock.allowed(step))  # negated: the minimum over the processes
        if self.config.max_minutes:
            self.progress.planned = max(step, math.ceil(min(-last, self.total_steps)))
            self.update.plan(self.planned_steps)
        if not self.is_planned:
            self.is_planned = True
            batches = self.objective.batches.steps_per_epoch(self.progress.epoch)
            self.notify(
                Planned(
                    steps=self.planned_steps,
                    epochs=self.planned_steps / math.ceil(batches / self.config.gradient_accumulation_steps),
                    seconds=self.clock.now + self.clock.left(step, self.planned_steps),
                    steps_per_second=self.clock.pace(step),
                    limited=self.planned_steps < self.total_steps,
                )
            )

    def sync_stop(self) -> None:
        """Share signals, the end of the time limit and due plans between the processes, so that all act alike."""
        clock = self.clock
        caught, *flags = self.world.all_reduce_max(self.signals.caught or 0, clock.ran_out, clock.is_plan_due)
        self.caught = Signal(int(caught)) if caught else None
        clock.ran_out, clock.is_plan_due = map(bool, flags)

    def read_metrics(self, *, wait: bool = False) -> None:
        """Count the steps whose values have arrived from the device; raise an error for one that is not finite."""
        for values in self.metrics.take(wait=wait):
            if not values.finite:
                raise non_finite(values, self.objective, self.progress)
            self.check_spike(values)
            self.progress.meter.add(values)
            self.clock.tokens += values.n
            if every(self.config.log_every, values.step):
                self.report()

    def check_spike(self, values: StepValues) -> None:
        """Report a loss far above the earlier ones, or end the run if it should end then."""
        losses, setting = self.progress.losses, self.config.loss_spikes
        loss, mean, deviation = values.total / values.n, losses.mean, losses.deviation
        if losses.add(loss):
            places = tuple(place for batch in values.batches for place in self.objective.describe(batch))[:MAX_PLACES]
            spike = Spiked(values.step, loss, mean, (loss - mean) / deviation, setting == "skip", places)
            self.notify(spike)
            if setting == "stop":
                raise LossSpikeError(
                    f"step {spike.step}: the loss, {spike.loss:.4g}, is {spike.deviations:.0f} standard deviations "
                    f"above its mean, {spike.mean:.4g}; {last_save(self.progress)}. Check its input, or lower the "
                    f"learning_rate: {', '.join(places)}"
                )
        if setting == "skip":
            self.update.max_loss.fill_(losses.limit)

    def report(self) -> None:
        """Report the means since the last report."""
        if self.progress.meter.n:
            meter, self.progress.meter = self.progress.meter, Meter()
            self.notify(
                Trained(
                    step=meter.step,
                    total_steps=max(self.planned_steps, meter.step),
                    epoch=meter.epoch,
                    loss=meter.total / meter.n,
                    nll=meter.plain / meter.n,
                    learning_rate=self.update.schedule(meter.step),
                    grad_norm=meter.norm,
                    items_per_second=self.clock.lap(),
                    seconds=self.clock.now,
                    seconds_left=self.clock.left(meter.step, self.planned_steps),
                )
            )

    @property
    def validation_is_due(self) -> bool:
        at_step = every(self.config.validate_every, self.progress.step) or self.stop_reason is not None
        return at_step and not self.progress.is_validated

    @torch.no_grad()
    def validate(self) -> None:
        """Score the weights. A signal interrupts this, and a resumed run starts with it."""
        self.read_metrics(wait=True)
        with random_state_restored(self.device), self.clock.validating():
            takes_part = self.world.rank == 0 or self.model.divided  # of a sharded model, all gather their parts
            average = None if self.update.ema is None else self.update.ema.means
            module = self.model.evaluation_module(average) if takes_part else self.module
            evaluate = partial(self.signals.until_caught, lambda: self.evaluate(module))
            scores = self.world.broadcast_object(evaluate() if self.world.rank == 0 else None)
        self.sync_stop()
        if scores is not None:
            self.progress.validations.append(Validation(self.progress.step, scores))
            is_best = self.progress.validations_since_best(self.objective.monitor) == 0
            self.notify(Validated(self.progress.step, scores, is_best=is_best))

    def evaluate(self, module: nn.Module) -> dict[str, float]:
        scores = self.objective.validate(module)
        if not math.isfinite(score := scores[self.objective.monitor.name]):
            raise NonFiniteError(
                f"the validation at step {self.progress.step} gave {self.objective.monitor.name} = {score}"
            )
        return scores

    @property
    def saving_is_due(self) -> bool:
        at_step = every(self.config.save_every, self.progress.step) or self.progress.is_validated
        return at_step and not self.progress.is_saved

    def save(self) -> None:
        """Write a checkpoint, once all steps before it are known to be finite."""
        self.read_metrics(wait=True)
        progress = self.progress
        progress.seconds, progress.validation_seconds = self.clock.now, self.clock.validation_seconds
        progress.rows = 0 if self.log is None else self.log.rows
        progress.saves = [*progress.saves, progress.step][-self.config.keep_last :]
        packed = pack(self.model, self.update, progress, self.identity, self.world)
        if self.world.rank == 0:
            path = checkpoint.save(self.folder.checkpoints, progress.step, packed)
            self.prune()
            self.notify(Saved(progress.step, path))
        self.sync_stop()

    def prune(self) -> None:
        """Remove the checkpoints that are no longer needed, and the remains of killed runs."""
        checkpoint.prune(self.folder.checkpoints, self.progress.worth_keeping(self.objective.monitor, self.config))

    def interrupt(self) -> NoReturn:
        """Save the run and end it because of a signal."""
        signal = self.caught
        assert signal is not None
        if not self.progress.is_saved:
            self.save()
        raise Interrupted(f"{signal.name} at step {self.progress.step}: saved, to be resumed", exit_code(signal))

    @property
    def stop_reason(self) -> str | None:
        """The reason to stop after this step, if there is one."""
        if self.progress.step >= self.total_steps:
            return f"all {self.total_steps} steps are done"
        patience = self.config.patience
        if patience and self.progress.validations_since_best(self.objective.monitor) >= patience:
            return f"{patience} validations in a row brought no improvement"
        return f"the {self.config.max_minutes:g} minutes are over" if self.clock.ran_out else None

    @torch.no_grad()
    def finish(self) -> Outcome:
        """Load the final weights, score them if they are new, and report the outcome."""
        outcome = Outcome(
            **self.world.broadcast_object(self.load_final_weights() if self.world.rank == 0 else None),
            module=self.module.eval(),
            why=self.stop_reason or "",
            step=self.progress.step,
            validations=tuple(self.progress.validations),
        )
        self.notify(Finished(outcome))
        return outcome

    def load_final_weights(self) -> dict[str, Any]:
        """Load the final weights, in the first process. Return what they are and their scores."""
        wanted = self.progress.final(self.objective.monitor, self.config)
        kind = "model" if self.update.ema is None else "ema"
        weights, used = mean_of_checkpoints(self.folder.checkpoints, wanted, kind)
        module = self.model.final_module(weights)
        self.prune()
        scores = used[0].scores if len(used) == 1 else self.evaluate(module)
        return {"seconds": self.clock.now, "weights": describe_weights(used, kind), "scores": scores}

    def close(self) -> None:
        """Stop loading batches, and close the log."""
        self.groups.close()
        if self.log is not None:
            self.log.close()

    def notify(self, event: Event) -> None:
        """Call the observers; the log is one of them."""
        for observer in self.observers:
            observer(event)


def pin(group: Group) -> Group:
    """Move the batches of a group to pinned memory, from which a GPU copies without the host."""
    return replace(group, batches=[pinned(batch) for batch in group.batches])


def every(n: int, step: int) -> bool:
    """Return True if a step is a multiple of n; 0 means never."""
    return n > 0 and step > 0 and step % n == 0


def last_save(progress: Progress) -> str:
    """Return which checkpoint is the last, for a message."""
    return f"the last checkpoint is of step {progress.saves[-1]}" if progress.saves else "nothing was saved yet"


def non_finite(values: StepValues, objective: Objective[Any], progress: Progress) -> NonFiniteError:
    """Return the error for a step that was not finite; it names the input."""
    places = [place for batch in values.batches for place in objective.describe(batch)]
    more = f" and {len(places) - MAX_PLACES} more" if len(places) > MAX_PLACES else ""
    return NonFiniteError(
        f"step {values.step}: the loss, {values.total:g} over {values.n:g} tokens, or its gradient, of norm "
        f"{values.norm:g}, is not finite. The step was skipped; {last_save(progress)}. Check its input, or lower the "
        f"learning_rate: {', '.join(places[:MAX_PLACES])}{more}"
    )
