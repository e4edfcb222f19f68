"""An answer and what it is worth."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

# What a logprob is divided by: n counts the generated tokens, the end among them; α is the length penalty.
PENALTIES: dict[str, Callable[[int, float], float]] = {
    "power": lambda n, alpha: float(n**alpha),
    "google": lambda n, alpha: float(((5 + n) / 6) ** alpha),
}


@dataclass(frozen=True)
class Hypothesis:
    """One answer: its tokens without start and end.

    `logprob` is the plain sum of `token_logprobs`, what the model itself gives each token, the end included;
    `score` is what answers are ranked by: normalised by length, after boosts and penalties.
    `finished` is False where the limit cut the answer off before its end.
    """

    tokens: tuple[int, ...]
    logprob: float
    score: float
    finished: bool = True
    token_logprobs: tuple[float, ...] = ()

    @property
    def probability(self) -> float:
        """What the model gives the whole answer."""
        return math.exp(self.logprob)
