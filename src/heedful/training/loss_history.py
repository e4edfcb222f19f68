"""The recent losses of a run, by which a spike is recognized."""

import math
from dataclasses import dataclass

SIGMAS = 6.0  # standard deviations above the mean
FIRST_STEPS = 50  # in which there are no spikes: too little is known
WEIGHT = 0.02  # of the newest loss in the mean
MIN_DEVIATION = 0.02  # as a share of the mean, for losses that hardly vary


@dataclass
class LossHistory:
    """The running mean and variance of the mean losses of steps. Losses beyond the limit count as the limit."""

    n: int = 0
    mean: float = 0.0
    variance: float = 0.0
    is_high: bool = False  # the last loss was beyond the limit

    @property
    def deviation(self) -> float:
        return max(math.sqrt(self.variance), MIN_DEVIATION * abs(self.mean))

    @property
    def limit(self) -> float:
        """The loss beyond which a step is a spike."""
        return self.mean + SIGMAS * self.deviation if self.n >= FIRST_STEPS else math.inf

    def add(self, loss: float) -> bool:
        """Add the loss of a step; return whether a spike begins with it."""
        limit, was_high = self.limit, self.is_high
        self.is_high = loss > limit
        self.n += 1
        weight = max(WEIGHT, 1 / self.n)
        change = min(loss, limit) - self.mean
        self.mean += weight * change
        self.variance = (1 - weight) * (self.variance + weight * change * change)
        return self.is_high and not was_high
