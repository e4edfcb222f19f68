"""The schedule of a run with a time limit, on a clock that only the run's own work moves."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from copying import Copying, config

from heedful.training import Event, Outcome, Planned, RunFolder, Trained, fit, resumption
from heedful.training.optimizers import schedule
from heedful.training.parallel import SingleProcess
from heedful.training.signals import Signals
from heedful.training.trainer import Trainer

STEP, VALIDATION, MINUTES = 0.1, 2.0, 0.5
SETTINGS: dict[str, Any] = {
    "steps": 10_000,
    "schedule": "cosine",
    "warmup_steps": 1000,
    "min_lr_ratio": 0.1,
    "learning_rate": 1.0,
    "validate_every": 50,
    "save_every": 0,
    "log_every": 1,
    "max_minutes": MINUTES,
    "max_grad_norm": 1e-6,
}
ALLOWED = 60 * MINUTES / (STEP + VALIDATION / 50)  # steps, if the validations are paid from the same time


class Clock:
    """Seconds that pass by what the run does: `step(number)` for each batch, and for each validation."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, step: Callable[[int], float] = lambda number: STEP) -> None:
        self.now, self.step = 1000.0, step
        monkeypatch.setattr(resumption, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(os, "fsync", lambda handle: None)

    def run(self, folder: Path, *, stop: int = 0, resume: bool = False, **changes: Any) -> tuple[Outcome, list[Any]]:
        """Train until the end; a run that stops at a batch returns what it has reported as an error does."""
        events: list[Event] = []

        def on_batch(number: int) -> None:
            if number == stop:
                raise KeyboardInterrupt
            self.now += self.step(number)

        def on_validation(number: int) -> None:
            self.now += VALIDATION

        job = Copying(on_batch=on_batch, on_validation=on_validation)
        outcome = fit(job, config(**(SETTINGS | changes)), folder, resume=resume, observers=[events.append])
        return outcome, events


def rates(events: list[Any]) -> list[float]:
    return [event.learning_rate for event in events if isinstance(event, Trained)]


@pytest.mark.parametrize("first_steps", [STEP, 20 * STEP], ids=["even", "slow start"])
def test_the_schedule_ends_when_the_time_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first_steps: float
) -> None:
    """A slow start, as of kernels that are compiled, is forgotten; validations take their share of the time."""
    clock = Clock(monkeypatch, lambda number: first_steps if number <= 3 else STEP)
    outcome, events = clock.run(tmp_path)
    (plan,) = [event for event in events if isinstance(event, Planned)]
    assert plan.steps_per_second == pytest.approx(1 / STEP)
    assert "minutes are over" in outcome.why
    assert outcome.step == pytest.approx(
        ALLOWED - 3 * (first_steps / STEP - 1) * STEP / (STEP + VALIDATION / 50), abs=15
    )
    assert rates(events)[-1] == pytest.approx(0.1, abs=0.005)
    assert max(rates(events)) > 0.9, "the warm-up of a thousand steps fits the time too"
    assert [event.total_steps for event in events if isinstance(event, Trained)][-1] == outcome.step


def test_the_plan_is_told_before_the_first_validation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, events = Clock(monkeypatch).run(tmp_path)
    (plan,) = [event for event in events if isinstance(event, Planned)]
    assert [type(event) for event in events].index(Planned) < 12
    assert plan.limited
    assert plan.steps == pytest.approx(60 * MINUTES / STEP, abs=1)  # what a validation takes is not known yet
    assert plan.epochs == pytest.approx(plan.steps / 5)
    assert plan.seconds == pytest.approx(60 * MINUTES)
    assert plan.steps_per_second == pytest.approx(1 / STEP)


def test_slow_steps_are_planned_after_a_few_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, events = Clock(monkeypatch, lambda number: 3.0).run(tmp_path, steps=8, max_minutes=0.0, validate_every=0)
    kinds = [type(event) for event in events]
    assert kinds.index(Planned) == 6
    plan = events[6]
    assert not plan.limited
    assert (plan.steps, plan.epochs) == (8, 1.6)
    assert plan.seconds == pytest.approx(24.0)


def test_a_limit_that_is_lifted_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one, the schedule is that of the settings, however fast the steps are."""
    clock = Clock(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        clock.run(tmp_path, steps=200, stop=131)
    _, events = clock.run(tmp_path, steps=200, max_minutes=0.0, resume=True)
    rate = schedule(config(**(SETTINGS | {"steps": 200, "warmup_steps": 50})), 200)
    assert rates(events) == pytest.approx([rate(step) for step in range(101, 201)])


def test_validations_are_counted_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first one, the end is known to the step: 60 s for steps of 0.1 s, and 5 s after every 100."""
    time = Clock(monkeypatch)
    clock = resumption.Clock(resumption.Progress(), limit=60.0, validate_every=100)
    for step in range(1, 151):
        time.now += STEP
        clock.tick(step)
        if step == 100:
            with clock.validating():
                time.now += 5.0
    assert clock.pace(150) == pytest.approx(1 / STEP)
    assert clock.allowed(150) == pytest.approx(400)  # 5 s, then three validations and 20 s
    assert clock.left(150, 350) == pytest.approx(20 + 2 * 5)


@pytest.mark.parametrize("pause", [0.0, 10_000.0])
def test_a_resumed_run_keeps_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pause: float) -> None:
    """It goes on at the rate where it was, and ends as if it had not been interrupted, however long it lay."""
    whole, expected = Clock(monkeypatch).run(tmp_path / "whole")
    clock = Clock(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        clock.run(tmp_path / "parts", stop=131)
    clock.now += pause
    outcome, events = clock.run(tmp_path / "parts", resume=True)
    assert rates(events)[:6] == pytest.approx(rates(expected)[100:106])  # the checkpoint is of step 100
    assert outcome.step == pytest.approx(whole.step, abs=2)
    assert rates(events)[-1] == pytest.approx(0.1, abs=0.005)


def test_the_first_process_that_is_out_of_time_sets_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its limit ends the run of all: the others began later, or measured other steps."""
    clock = Clock(monkeypatch)
    other = 50.0  # the last step that the other process could do

    class Two(SingleProcess):
        def all_reduce_max(self, *values: float) -> tuple[float, ...]:
            return (max(values[0], -other),) if len(values) == 1 else values

    def on_batch(number: int) -> None:
        clock.now += STEP

    run = RunFolder(tmp_path)
    with run.locked():
        trainer = Trainer(Copying(on_batch=on_batch), config(**SETTINGS), run, Signals())
        trainer.world = Two()
        for _ in range(20):
            trainer.step()
        trainer.close()
    assert trainer.planned_steps == 50
    assert trainer.update.schedule(50) == pytest.approx(0.1)
