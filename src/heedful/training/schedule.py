"""The learning rate as a pure function of the step. Steps count from 1, as the paper's do."""

from __future__ import annotations

import math
from collections.abc import Callable

from .config import TrainingConfig

Schedule = Callable[[int], float]


def inverse_sqrt(step: int, *, peak: float, warmup: int) -> float:
    """The paper's: up in a straight line, then down with 1/√step.

    Its formula d_model^−½ · min(step^−½, step · warmup^−1.5) has the peak (d_model · warmup)^−½.
    """
    return peak * min(step / warmup, math.sqrt(warmup / step))


def cosine(step: int, *, peak: float, warmup: int, total: int, final_share: float) -> float:
    """Up in a straight line, then half a cosine down to a share of the peak at the last step."""
    if step < warmup:
        return peak * step / warmup
    done = min(1.0, (step - warmup) / max(1, total - warmup))
    return peak * (final_share + (1 - final_share) * (1 + math.cos(math.pi * done)) / 2)


def constant(step: int, *, peak: float, warmup: int) -> float:
    """Up in a straight line, then level."""
    return peak * min(1.0, step / max(1, warmup))


def schedule(config: TrainingConfig, total: int) -> Schedule:
    """The config's schedule over `total` steps."""
    peak, warmup = config.learning_rate, config.warmup_steps
    if config.schedule == "inverse_sqrt":
        return lambda step: inverse_sqrt(step, peak=peak, warmup=warmup)
    if config.schedule == "constant":
        return lambda step: constant(step, peak=peak, warmup=warmup)
    share = config.final_share
    return lambda step: cosine(step, peak=peak, warmup=warmup, total=total, final_share=share)
