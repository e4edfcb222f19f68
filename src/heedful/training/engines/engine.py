"""One update of the weights from some batches: gradients added up, then the step. Everything stays on the device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..config import TrainingConfig
from ..loss import Loss
from ..objective import Objective
from ..parallel import ReplicatedModel, SingleProcess
from ..quick_cpu import quicken_on_cpu
from ..update import Update


class Engine:
    """Runs every operation as it comes: the way that is right everywhere, and the twin of every faster one."""

    name = "eager"

    def __init__(
        self,
        update: Update,
        objective: Objective[Any],
        held: ReplicatedModel,
        config: TrainingConfig,
        world: SingleProcess,
    ) -> None:
        self.update, self.objective, self.held, self.world = update, objective, held, world
        self.autocast = config.precision == "bf16"
        self.weights = list(held.weights.values())
        self.device = self.weights[0].device
        if self.device.type == "cpu" and not held.divided:
            quicken_on_cpu(held.module)
        for weight in self.weights:  # nothing is left of what was before this run
            weight.grad = torch.zeros_like(weight) if world.size > 1 else None  # where all must have the same
        exact = torch.float32 if self.device.type == "mps" else torch.float64
        self.sums = torch.zeros(3, device=self.device, dtype=exact)  # total, plain, n
        self.values = torch.zeros(5, device=self.device, dtype=exact)  # the same, the norm, whether all was finite

    def step(self, step: int, batches: Sequence[Any]) -> Tensor:
        """The step numbered `step`. Its values (total, plain, n, norm, finite) are overwritten by the next."""
        self.update.prepare(step)
        for index, batch in enumerate(batches):
            self.add(batch, first=index == 0)
        self.world.all_reduce([self.sums, *self.held.apart()])
        self.take()
        return self.values

    def add(self, batch: Any, *, first: bool) -> None:
        """Add a batch's gradients and sums to those of the batches before it, or begin with them."""
        self._add(batch.to(self.device), first=first)

    def take(self) -> None:
        """The step itself."""
        self._take()

    def loss(self, batch: Any) -> Loss:
        """In the precision of the run."""
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.autocast):
            return self.objective.loss(self.held.module, batch)

    def _add(self, batch: Any, *, first: bool) -> None:
        if self.held.shared is not None:
            self.held.shared.begin()
        loss = self.loss(batch)
        fresh = self.held.gradients(loss.total)
        sums = torch.stack([value.detach().to(self.sums.dtype) for value in loss])
        with torch.no_grad():
            have = self._gradients(fresh)
            given = [gradient for gradient in fresh if gradient is not None]
            if first:
                self.sums.copy_(sums)
                self._put(have, given)
                self._forget(fresh)
            else:
                self.sums.add_(sums)
                torch._foreach_add_(have, given)

    def _put(self, have: list[Tensor], given: list[Tensor]) -> None:
        """Gradients where the weights keep them."""
        torch._foreach_copy_(have, given)

    def _gradients(self, fresh: Sequence[Tensor | None]) -> list[Tensor]:
        """Where the weights keep the gradients that are given: always the same tensors, so that graphs find them.

        A weight that never has one is left alone by the update; it does not even decay.
        """
        pairs = [(weight, given) for weight, given in zip(self.weights, fresh, strict=True) if given is not None]
        if new := [weight for weight, _ in pairs if weight.grad is None]:
            for weight in new:
                weight.grad = torch.zeros_like(weight)
            self.grown()
        return [weight.grad for weight, _ in pairs if weight.grad is not None]

    def _forget(self, fresh: Sequence[Tensor | None]) -> None:
        """The gradients that an earlier step left with weights which have no part in this one."""
        pairs = zip(self.weights, fresh, strict=True)
        stale = [weight.grad for weight, given in pairs if given is None and weight.grad is not None]
        if stale:
            torch._foreach_zero_(stale)

    def grown(self) -> None:
        """A weight has a gradient for the first time."""

    @torch.no_grad()
    def _take(self) -> None:
        self.values.copy_(self.update(self.sums))
