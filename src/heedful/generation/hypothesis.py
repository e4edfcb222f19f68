"""An answer and what it is worth."""

from __future__ import annotations

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

    `logprob` is the plain sum, the end included; `score` the normalised one, by which answers are ranked.
    `finished` is False where the limit cut the answer off before its end.
    """

    tokens: tuple[int, ...]
    logprob: float
    score: float
    finished: bool = True
