"""From sums of gradients to the next weights: a function of tensors on the device, in which nothing waits."""

from __future__ import annotations

import torch
from torch import Tensor

from .averaging import Ema, ema_share
from .config import TrainingConfig
from .optimiser import optimisers
from .parallel import Replica
from .schedule import schedule


class Update:
    """Scale, clip, optimise and average; all of it undone by a loss or a gradient that is not finite."""

    def __init__(self, held: Replica, config: TrainingConfig, total: int) -> None:
        self.held = held
        self.total_steps = total
        self.clip = config.clip
        self.decay = config.ema
        self.schedule = schedule(config, total)
        self.share = torch.zeros((), device=next(iter(held.weights.values())).device)
        self.optimisers = optimisers(held, config)
        self.ema = Ema(held.weights) if config.ema else None

    def prepare(self, step: int) -> None:
        """What depends on the step, brought to the device."""
        for optimiser in self.optimisers:
            optimiser.go_at(self.schedule(step))
        if self.ema is not None:
            self.share.fill_(ema_share(step, self.decay))

    @torch.no_grad()
    def __call__(self, sums: Tensor) -> Tensor:
        """Use the gradients of the sums' total. Returns the verdict's values: total, plain, n, norm, finite."""
        verdict = self.held.verdict(sums, self.clip)
        for optimiser in self.optimisers:
            optimiser.step(verdict.skip, verdict.factor)
        if self.ema is not None:
            self.ema.follow(self.share * (1 - verdict.skip))
        self.held.refresh()
        return verdict.values
