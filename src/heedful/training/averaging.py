"""Averages of weights: one that runs along, and the mean of several checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor


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
