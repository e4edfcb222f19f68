"""From sums of gradients to the next weights and their averages: on the device, where nothing waits for the host."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from .config import TrainingConfig
from .optimizers import build_optimizers, schedule
from .parallel import ReplicatedModel


class Update:
    """Scale, clip, optimise and average; all of it undone by a loss or a gradient that is not finite."""

    def __init__(self, held: ReplicatedModel, config: TrainingConfig, total: int) -> None:
        self.held = held
        self.total_steps = total
        self.clip = config.clip
        self.decay = config.ema
        self.schedule = schedule(config, total)
        self.share = torch.zeros((), device=next(iter(held.weights.values())).device)
        self.optimizers = build_optimizers(held, config)
        self.ema = Ema(held.weights) if config.ema else None

    def prepare(self, step: int) -> None:
        """What depends on the step, brought to the device."""
        for optimizer in self.optimizers:
            optimizer.set_learning_rate(self.schedule(step))
        if self.ema is not None:
            self.share.fill_(ema_share(step, self.decay))

    @torch.no_grad()
    def __call__(self, sums: Tensor) -> Tensor:
        """Use the gradients of the sums' total. Returns the status's values: total, plain, n, norm, finite."""
        status = self.held.step_status(sums, self.clip)
        for optimizer in self.optimizers:
            optimizer.step(status.skip, status.factor)
        if self.ema is not None:
            self.ema.follow(self.share * (1 - status.skip))
        self.held.refresh()
        return status.values


def ema_share(step: int, decay: float) -> float:
    """How much of the weights after `step` enters the average: much at first, so that the start is forgotten."""
    return 1.0 - min(decay, (1 + step) / (10 + step))


class Ema:
    """The exponential moving average of weights, by their names."""

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        self.means = {name: weight.detach().clone() for name, weight in weights.items()}
        self._weights = list(weights.values())

    @torch.no_grad()
    def follow(self, share: Tensor) -> None:
        """Move towards the weights by `share`, a tensor on the device; a share of 0 changes nothing."""
        means = list(self.means.values())
        apart = torch._foreach_sub(self._weights, means)
        torch._foreach_mul_(apart, share)
        torch._foreach_add_(means, apart)


def mean_of(snapshots: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of several sets of weights, summed in float64. What is no fraction (a counter) is the last one's."""
    if not snapshots:
        raise ValueError("the mean of no weights at all")
    mean = dict(snapshots[-1])
    for name, value in mean.items():
        if value.is_floating_point():
            total = torch.zeros_like(value, dtype=torch.float64)
            for snapshot in snapshots:
                total += snapshot[name]
            mean[name] = (total / len(snapshots)).to(value.dtype)
    return mean
