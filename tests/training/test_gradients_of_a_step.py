"""What a step uses are the gradients of its own batches, whatever earlier ones have left with a weight."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Self

import pytest
import torch
from copying import config
from torch import Tensor, nn

from heedful.training import Loss, Monitor
from heedful.training.engines import Engine
from heedful.training.optimizers import Update, load_state, state_of
from heedful.training.parallel import ReplicatedModel, SingleProcess


@dataclass(frozen=True)
class Asked:
    """Which weight has a part in the loss."""

    name: str

    def to(self, device: torch.device) -> Self:
        return self

    def fixed(self) -> Self:
        return self


class Either:
    """A loss of one weight alone; which one, the batch says."""

    monitor = Monitor("loss", higher_is_better=False)
    batches: Any = None

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.module = nn.ParameterDict({name: torch.randn(3, 3) for name in ("one", "other", "never")})

    def loss(self, module: Any, batch: Asked) -> Loss:
        total: Tensor = (module[batch.name] * torch.arange(9.0).view(3, 3)).sum()
        return Loss(total, total.detach(), torch.tensor(1))

    def validate(self, module: nn.Module) -> dict[str, float]:
        return {"loss": 0.0}

    def describe(self, batch: Asked) -> list[str]:
        return []

    def identity(self) -> dict[str, str]:
        return {}


def stepping(job: Either, **changes: Any) -> Generator[set[str], list[Asked], None]:
    """Sent the batches of a step, gives the names of the weights that it changed."""
    settings = config(**{"weight_decay": 0.1, "betas": [0.0, 0.0], "max_grad_norm": 0.0, "warmup_steps": 1, **changes})
    held = ReplicatedModel(job.module)
    engine = Engine(Update(held, settings, 10), job, held, settings, SingleProcess())
    step, changed = 0, set[str]()
    while True:
        asked = yield changed
        before = {name: weight.detach().clone() for name, weight in held.weights.items()}
        step += 1
        engine.step(step, asked)
        changed = {name for name, weight in held.weights.items() if not torch.equal(weight, before[name])}


def gradients(job: Either) -> dict[str, Tensor | None]:
    return {name: weight.grad for name, weight in job.module.named_parameters()}


def test_nothing_of_an_earlier_step_is_used_again() -> None:
    job = Either()
    steps: Any = stepping(job, weight_decay=0.0)
    next(steps)
    assert steps.send([Asked("one")]) == {"one"}
    assert steps.send([Asked("other")]) == {"other"}
    one = gradients(job)["one"]
    assert one is not None
    assert not one.any()


@pytest.mark.parametrize("order", [["one", "other"], ["other", "one"], ["other", "other"]])
def test_batches_that_are_added_up_begin_anew_each_step(order: list[str]) -> None:
    job = Either()
    steps: Any = stepping(job)
    next(steps)
    found = []
    for _ in range(2):
        steps.send([Asked(name) for name in order])
        found.append({name: None if value is None else value.clone() for name, value in gradients(job).items()})
    for name, value in found[0].items():
        again = found[1][name]
        assert (value is None) == (again is None)
        if value is not None and again is not None:
            assert torch.equal(value, again)


def test_a_weight_without_a_part_is_left_alone_even_by_decay_and_by_what_stood_there_before() -> None:
    job = Either()
    never: Tensor = job.module["never"]
    never.grad = torch.ones_like(never)
    steps: Any = stepping(job)
    next(steps)
    assert steps.send([Asked("one")]) == {"one"}


def test_an_optimiser_takes_nothing_that_another_kept() -> None:
    held = ReplicatedModel(nn.Linear(3, 3))
    update = Update(held, config(), 10)
    kept = {f"momentum/{name}": torch.ones_like(weight) for name, weight in held.weights.items()}
    load_state(update.optimizers, held.weights, kept)
    assert state_of(update.optimizers, held.weights) == {}
