"""A loss with a gradient of its own, as a function of autograd and as an operator to the compiler."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from heedful.backends.triton import with_gradient


def room(logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    cost, plain = (logits.new_empty(logits.shape[0], dtype=torch.float32) for _ in range(2))
    return cost, plain, logits.new_empty(2, logits.shape[0], dtype=torch.float32)


def costs(
    logits: Tensor, target: Tensor, keep: Tensor, scale: float, power: float
) -> tuple[Tensor, Tensor, Tensor]:  # logits are read one behind the other, as kernels do
    cost, plain, kept = room(logits)
    numbers = torch.as_strided(logits, logits.shape, (logits.shape[1], 1)).float()
    kept.copy_(torch.stack([keep.float(), target.float()]))
    cost.copy_(kept[0] * (scale * numbers.pow(power).sum(-1) + kept[1] * numbers[:, 0]))
    plain.copy_(kept[0] * numbers.sum(-1))
    return cost, plain, kept


def slopes(
    logits: Tensor, target: Tensor, keep: Tensor, kept: Tensor, slope: Tensor, scale: float, power: float
) -> Tensor:
    found = scale * power * logits.float().pow(power - 1)
    found[:, 0] += kept[1]
    return (found * (kept[0] * slope)[:, None]).to(logits.dtype)


mine = with_gradient("test_of_operators", costs, slopes, room)


def written_out(logits: Tensor, target: Tensor, keep: Tensor, scale: float, power: float) -> tuple[Tensor, Tensor]:
    cost = scale * logits.pow(power).sum(-1) + target * logits[:, 0]
    return cost * keep, logits.detach().sum(-1) * keep


@pytest.mark.parametrize("compiled", [False, True])
def test_as_autograd_has_it(compiled: bool) -> None:
    """Of logits that do not lie one behind the other, with another slope for each token."""
    run: Any = torch.compile(mine, backend="aot_eager", fullgraph=True) if compiled else mine
    torch.manual_seed(0)
    base, target, keep = torch.rand(7, 5) + 0.5, torch.arange(5), torch.tensor([True, True, False, True, True])
    weights = torch.rand(5)
    found = []
    for function in (run, written_out):
        logits = base.mT.detach().requires_grad_()
        cost, plain = function(logits, target, keep, 0.3, 3.0)
        assert not plain.requires_grad
        found.append((cost.detach(), plain, *torch.autograd.grad((weights * cost).sum(), logits)))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("compiled", [False, True])
def test_without_gradients(compiled: bool) -> None:
    run: Any = torch.compile(mine, backend="aot_eager", fullgraph=True) if compiled else mine
    logits, target, keep = torch.rand(3, 4, requires_grad=True), torch.arange(3), torch.ones(3, dtype=torch.bool)
    with torch.no_grad():
        cost, _ = run(logits, target, keep, 1.0, 2.0)
    assert not cost.requires_grad
    torch.testing.assert_close(cost, written_out(logits, target, keep, 1.0, 2.0)[0].detach())
