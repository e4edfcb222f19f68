"""From sums of gradients to the next weights: a function of tensors on the device, in which nothing waits."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .averaging import Ema, ema_share
from .config import TrainingConfig
from .optimiser import adamw
from .schedule import schedule


class Update:
    """Scale, clip, Adam and the running average; all of it undone by a loss or a gradient that is not finite."""

    def __init__(self, module: nn.Module, config: TrainingConfig, total: int) -> None:
        parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
        self.parameters = parameters
        self.total_steps = total
        self.clip = config.clip
        self.decay = config.ema
        self.schedule = schedule(config, total)
        self.rate, self.share = (torch.zeros((), device=parameters[0].device) for _ in range(2))
        self.optimiser = adamw(
            module,
            self.rate,
            weight_decay=config.weight_decay,
            betas=(config.betas[0], config.betas[1]),
            epsilon=config.epsilon,
        )
        self.ema = Ema(module) if config.ema else None

    def prepare(self, step: int) -> None:
        """What depends on the step, brought to the device."""
        self.optimiser.zero_grad()
        self.rate.fill_(self.schedule(step))
        self.share.fill_(ema_share(step, self.decay))

    @torch.no_grad()
    def __call__(self, loss: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
        """Use the gradients of `loss`, a sum over n tokens. Returns their norm and whether all was finite."""
        gradients = [parameter.grad for parameter in self.parameters if parameter.grad is not None]
        norm = torch.nn.utils.get_total_norm(gradients) / n
        finite = norm.isfinite() & loss.isfinite()
        shorten = (self.clip / (norm + 1e-6)).clamp(max=1.0) if self.clip else torch.ones_like(norm)
        torch._foreach_mul_(gradients, shorten / n)
        self.optimiser.found_inf = (~finite).float()
        self.optimiser.step()
        if self.ema is not None:
            self.ema.follow(self.share * finite)
        return norm, finite
