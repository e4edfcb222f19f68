"""The update of the weights and their average from accumulated gradients, without waiting for the device."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from .config import TrainingConfig
from .optimizers import build_optimizers, schedule
from .parallel import ReplicatedModel


class Update:
    """Scales, clips, optimizes and averages. A loss or gradient that is not finite changes nothing."""

    def __init__(self, model: ReplicatedModel, config: TrainingConfig, total: int) -> None:
        self.model, self.config = model, config
        self.total_steps = total
        self.schedule = schedule(config, total)
        self.ema_weight = torch.zeros((), device=next(iter(model.weights.values())).device)
        self.optimizers = build_optimizers(model, config)
        self.ema = Ema(model.weights) if config.ema_decay else None

    def prepare(self, step: int) -> None:
        """Copy the values that depend on the step to the device."""
        for optimizer in self.optimizers:
            optimizer.set_learning_rate(self.schedule(step))
        if self.ema is not None:
            self.ema_weight.fill_(ema_weight(step, self.config.ema_decay))

    @torch.no_grad()
    def __call__(self, sums: Tensor) -> Tensor:
        """Update the weights by their gradients. Return the values (total, plain, n, norm, finite) of the step."""
        status = self.model.step_status(sums, self.config.max_grad_norm)
        for optimizer in self.optimizers:
            optimizer.step(status.skip, status.factor)
        if self.ema is not None:
            self.ema.update(self.ema_weight * (1 - status.skip))
        self.model.refresh()
        return status.values


def ema_weight(step: int, decay: float) -> float:
    """Return the share of the new weights in the average: large at first, so that the initial ones are forgotten."""
    return 1.0 - min(decay, (1 + step) / (10 + step))


class Ema:
    """The exponential moving average of weights, by their names."""

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        self.means = {name: weight.detach().clone() for name, weight in weights.items()}
        self._weights = list(weights.values())

    @torch.no_grad()
    def update(self, weight: Tensor) -> None:
        """Move the average towards the weights by `weight`, a scalar on the device. 0 changes nothing."""
        means = list(self.means.values())
        changes = torch._foreach_sub(self._weights, means)
        torch._foreach_mul_(changes, weight)
        torch._foreach_add_(means, changes)


def mean_of(snapshots: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Return the mean of several sets of weights, summed in float64. Integers are taken from the last set.

    Raises:
        ValueError: if there are no sets.
    """
    if not snapshots:
        raise ValueError("there are no weights to average")
    mean = dict(snapshots[-1])
    for name, value in mean.items():
        if value.is_floating_point():
            total = torch.zeros_like(value, dtype=torch.float64)
            for snapshot in snapshots:
                total += snapshot[name]
            mean[name] = (total / len(snapshots)).to(value.dtype)
    return mean
