"""Losses far above the earlier ones are reported, left out, or end the run, as `loss_spikes` says."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from copying import Copying, config, digest

from heedful.training import Loss, fit
from heedful.training.errors import LossSpikeError
from heedful.training.loss_history import FIRST_STEPS, LossHistory
from heedful.training.metrics import Event, Spiked

SPIKE = FIRST_STEPS + 5  # the step whose loss is multiplied


class Spiking(Copying):
    """Its loss is far larger at one step."""

    factor = 100.0

    def loss(self, module: torch.nn.Module, batch: Any) -> Loss:
        loss = super().loss(module, batch)
        return loss._replace(total=loss.total * self.factor) if self.n_batches == SPIKE else loss


def run(folder: Path, setting: str, steps: int = SPIKE + 3, **changes: Any) -> tuple[list[Spiked], str]:
    events: list[Event] = []
    settings = config(steps=steps, loss_spikes=setting, validate_every=0, max_grad_norm=0.0, **changes)
    outcome = fit(Spiking(), settings, folder, observers=[events.append], resume=True)
    return [event for event in events if isinstance(event, Spiked)], digest(outcome.module)


def test_the_history_is_the_weighted_mean_and_deviation() -> None:
    history, losses = LossHistory(), [3.0 + math.sin(n) for n in range(40)]
    assert not any(map(history.add, losses))
    assert history.mean == pytest.approx(sum(losses) / 40)
    assert history.deviation == pytest.approx(float(torch.tensor(losses).std(correction=0)))
    assert not history.add(1000.0)  # too little is known


def test_a_spike_begins_once_and_hardly_changes_the_limit() -> None:
    history = LossHistory()
    for n in range(200):
        assert not history.add(3.0 + 0.1 * math.sin(n))
    limit = history.limit
    assert 3.3 < limit < 3.6
    assert [history.add(loss) for loss in (limit - 0.01, 213.0, 213.0, 3.0, 213.0)] == [False, True, False, False, True]
    assert history.limit < 1.3 * limit


def test_a_spike_is_reported_with_its_input_and_logged(tmp_path: Path) -> None:
    (spike,), _ = run(tmp_path, "report")
    assert (spike.step, spike.skipped) == (SPIKE, False)
    assert spike.loss > 50 * spike.mean
    assert spike.deviations > 6
    assert spike.places[0] == f"numbers.txt:{4 * (SPIKE - 1)}"
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows if row["kind"] == "spike"] == [SPIKE]


def test_a_spike_is_left_out_where_that_is_set(tmp_path: Path) -> None:
    class Before(Spiking):
        factor = 1.0

    (spike,), _ = run(tmp_path / "a", "skip", SPIKE, ema_decay=0.0)
    assert spike.skipped
    _, applied = run(tmp_path / "b", "report", SPIKE, ema_decay=0.0)
    _, skipped = run(tmp_path / "c", "skip", SPIKE, ema_decay=0.0)
    settings = config(steps=SPIKE, loss_spikes="skip", validate_every=0, max_grad_norm=0.0, ema_decay=0.0)
    without = digest(fit(Before(), settings, tmp_path / "d").module)
    assert len({applied, skipped, without}) == 3
    last = config(steps=SPIKE - 1, loss_spikes="skip", validate_every=0, max_grad_norm=0.0, ema_decay=0.0)
    assert last.warmup_steps == settings.warmup_steps  # the rates of all earlier steps are the same
    assert skipped == digest(fit(Spiking(), last, tmp_path / "e").module)


def test_a_spike_ends_the_run_where_that_is_set(tmp_path: Path) -> None:
    with pytest.raises(LossSpikeError, match=rf"step {SPIKE}: the loss, .* above its mean, .*numbers\.txt:") as caught:
        run(tmp_path, "stop")
    assert "the last checkpoint is of step" in str(caught.value)


def test_a_resumed_run_leaves_out_the_same_steps(tmp_path: Path) -> None:
    class Ending(Spiking):
        def loss(self, module: torch.nn.Module, batch: Any) -> Loss:
            if self.n_batches == SPIKE - 1:
                raise KeyboardInterrupt
            return super().loss(module, batch)

    class Resumed(Spiking):
        def __init__(self) -> None:
            super().__init__()
            self.n_batches = 3 * ((SPIKE - 1) // 3)  # those before the last checkpoint

    settings = config(steps=SPIKE + 3, loss_spikes="skip", validate_every=0, max_grad_norm=0.0)
    with pytest.raises(KeyboardInterrupt):
        fit(Ending(), settings, tmp_path / "a")
    events: list[Event] = []
    resumed = fit(Resumed(), settings, tmp_path / "a", observers=[events.append], resume=True)
    assert [event.step for event in events if isinstance(event, Spiked)] == [SPIKE]
    assert digest(resumed.module) == run(tmp_path / "b", "skip")[1]
