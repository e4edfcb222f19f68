"""Batches of every task: what the host knows of one, what fills it up, and who has which rows change no gradient."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import fields, replace
from itertools import islice
from typing import Any

import pytest
import torch
from every_batch import KINDS, Kind
from torch import Tensor

from heedful.data.batch import tensors_of
from heedful.data.loader import Shard
from heedful.training.parallel import MasterWeightModel

EXACT, SUMS = 1e-12, 1e-10


@pytest.fixture(scope="module", params=list(KINDS))
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Kind, Any]:
    kind = KINDS[request.param]
    return kind, kind.job(tmp_path_factory.mktemp(request.param))


def gradients(job: Any, batches: Iterable[Any]) -> list[Tensor]:
    """The loss, over how much it is a sum, and the gradient of every parameter, each the sum over some batches."""
    parameters = list(job.module.parameters())
    total: list[Tensor] = []
    for batch in batches:
        loss = job.loss(job.module, batch)
        assert loss.total.dtype == torch.float64
        slopes = torch.autograd.grad(loss.total, parameters, allow_unused=True, materialize_grads=True)
        found = [loss.total.detach(), loss.n.double(), *slopes]
        total = [a + b for a, b in zip(total, found, strict=True)] if total else found
    return total


def assert_same(found: list[Tensor], expected: list[Tensor], within: float) -> None:
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=within, atol=within)


def shapes(batch: Any) -> list[Any]:
    values = (getattr(batch, field.name) for field in fields(batch))
    return [value.shape if isinstance(value, Tensor) else value is None for value in values]


def test_a_fixed_batch_has_the_same_gradients_and_tells_the_host_nothing(made: tuple[Kind, Any]) -> None:
    kind, job = made
    whole = list(islice(job.batches.epoch(0), 3))
    lacking = [next(job.batches.epoch(0, 0, Shard(index, 7))) for index in (0, 6)]
    assert not getattr(lacking[1], kind.names)  # a row is missing, or all are
    alone = next(kind.alone(job, whole[0]))
    for batch in (*whole, *lacking, alone):
        fixed = batch.fixed()
        told = [getattr(fixed, field.name) for field in fields(fixed)]
        assert all(isinstance(value, Tensor) or value in (None, ()) for value in told)
        assert shapes(fixed.fixed()) == shapes(fixed)
        assert_same(gradients(job, [fixed]), gradients(job, [batch]), EXACT)


def test_a_batch_has_the_gradients_of_its_rows_alone_and_unpadded(made: tuple[Kind, Any]) -> None:
    kind, job = made
    for batch in [*islice(job.batches.epoch(0), 8), next(job.batches.epoch(0, 0, Shard(1, 2)))]:
        assert_same(gradients(job, [batch]), gradients(job, kind.alone(job, batch)), SUMS)


@pytest.mark.parametrize("of", [2, 3, 7])
def test_shares_are_the_batch_each_row_once_in_one_shape(made: tuple[Kind, Any], of: int) -> None:
    kind, job = made
    start = job.batches.steps_per_epoch(1) - 3
    every = [job.batches.epoch(1, start, Shard(index, of)) for index in range(of)]
    for whole, *parts in zip(job.batches.epoch(1, start), *every, strict=True):
        rows = getattr(whole, kind.names)
        assert [getattr(part, kind.names) for part in parts] == [rows[index::of] for index in range(of)]
        assert all(shapes(part) == shapes(parts[0]) for part in parts)
        assert_same(gradients(job, parts), gradients(job, [whole]), SUMS)


def test_a_share_of_nothing_costs_nothing(made: tuple[Kind, Any]) -> None:
    kind, job = made
    batch = next(job.batches.epoch(0, 0, Shard(6, 7)))
    assert getattr(batch, kind.names) == ()
    assert all(not value.any() for value in gradients(job, [batch]))


def test_every_task_computes_with_weights_in_bf16(made: tuple[Kind, Any]) -> None:
    """Near what float64 gives: whatever a task hands to its module, it is read in the dtype of the weights."""
    _, job = made
    held = MasterWeightModel(deepcopy(job.module).float())
    batch = next(job.batches.epoch(0))
    batch = replace(batch, **{k: v.float() for k, v in tensors_of(batch).items() if v.dtype == torch.float64})
    loss = job.loss(held.module.eval(), batch)  # without dropout, as `gradients` are
    exact, *_ = gradients(job, [next(job.batches.epoch(0))])
    assert loss.total.item() == pytest.approx(exact.item(), rel=0.05)
    found = [gradient for gradient in held.gradients(loss.total) if gradient is not None]
    assert found
    assert all(gradient.isfinite().all() for gradient in found)
