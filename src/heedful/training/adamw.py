"""AdamW, by torch's fused kernel or, on a GPU, by one of our own; in both nothing is read by the host."""

from __future__ import annotations

from collections.abc import Callable
from inspect import unwrap
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from ..backends.triton.foreach import PointerTable


class MaskedAdamW(torch.optim.AdamW):
    """It leaves everything as it is, the step count too, where `found_inf` is 1."""

    keeps = ("step", "exp_avg", "exp_avg_sq")  # of each weight
    found_inf: Tensor | None = None  # a float on the device; the kernel reads it there


class _Tables(NamedTuple):
    """Of a set of weights on the device: their pieces, the addresses of their step counts, their decays."""

    pieces: PointerTable
    steps: Tensor
    decays: Tensor


class QuickAdamW(MaskedAdamW):
    """Of weights in float32, in one launch, and one for their counts: torch's kernel takes a list of small weights in
    several, one after another."""

    add_param_group = unwrap(torch.optim.Optimizer.add_param_group)  # torch's wrapper imports its compiler: seconds
    factor: Tensor  # of the gradients, on the device
    tables: _Tables | None = None

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update every weight that has a gradient."""
        from ..backends.triton.foreach import adamw

        assert closure is None
        assert self.found_inf is not None
        given = [(weight, group["weight_decay"]) for group in self.param_groups for weight in group["params"]]
        given = [(weight, decay) for weight, decay in given if weight.grad is not None]
        if not given:
            return
        for weight, _ in given:
            if not self.state[weight]:
                zeros = (torch.zeros_like(weight) for _ in range(2))
                self.state[weight] = dict(zip(self.keeps, (weight.new_zeros(()), *zeros), strict=True))
        self.tables = self._tables(given)
        group = self.param_groups[0]  # they differ in their decay alone
        adamw(*self.tables, group["lr"], self.factor, self.found_inf, group["betas"], group["eps"])

    def _tables(self, given: list[tuple[nn.Parameter, float]]) -> _Tables:
        """Made anew when weights have moved, or others have gradients."""
        from ..backends.triton.foreach import PointerTable

        weights, states = [weight for weight, _ in given], [self.state[weight] for weight, _ in given]
        steps, means, squares = ([state[name] for state in states] for name in self.keeps)
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        old = self.tables
        pieces = PointerTable.of(weights, gradients, means, squares, old=None if old is None else old.pieces)
        if old is not None and pieces is old.pieces:  # the counts are made and moved with the means
            return old
        where = weights[0].device
        addresses = torch.tensor([step.data_ptr() for step in steps], device=where)
        return _Tables(pieces, addresses, torch.tensor([decay for _, decay in given], device=where))
