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
        self.share.fill_(ema_share(step, self.decay))

    @torch.no_grad()
    def __call__(self, loss: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
        """Use the gradients of `loss`, a sum over n tokens. Returns their norm and whether all was finite."""
        gradients = [weight.grad for weight in self.held.weights.values() if weight.grad is not None]
        norm = self.held.norm(gradients) / n
        finite = norm.isfinite() & loss.isfinite()
        shorten = (self.clip / (norm + 1e-6)).clamp(max=1.0) if self.clip else torch.ones_like(norm)
        for optimiser in self.optimisers:
            optimiser.step((~finite).float(), shorten / n)
        if self.ema is not None:
            self.ema.follow(self.share * finite)
        self.held.refresh()
        return norm, finite
