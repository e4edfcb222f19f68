"""How likely a translation is right, learned from sentences whose right answers are known.

A model's own probability is too small: label smoothing takes a little from every token, however sure it is. Logistic
regression on the log-probability and the number of tokens gives that back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...config import Config

ENOUGH = 20  # right ones, and wrong ones: with fewer, three numbers say more about chance than about the model
PRIOR = 1.0  # how strongly weights are held near 0, in units of one sentence; else perfect separation has no end
STEPS = 50


@dataclass(frozen=True, kw_only=True)
class Confidence(Config):
    """P(right) = σ(base + by_logprob · logprob + by_token · tokens), the end counted as a token."""

    title: ClassVar[str] = "confidence"

    base: float
    by_logprob: float
    by_token: float

    def of(self, logprob: float, n_tokens: int) -> float:
        """The probability that an answer is right."""
        z = self.base + self.by_logprob * logprob + self.by_token * n_tokens
        return 0.5 * (1 + math.tanh(z / 2))  # σ, without overflow


def why_not(right: Sequence[bool]) -> str | None:
    """Why nothing can be learned from these, if nothing can."""
    hits = sum(right)
    misses = len(right) - hits
    if min(hits, misses) >= ENOUGH:
        return None
    return f"of {len(right):,} validation sentences {hits:,} are right and {misses:,} wrong; it takes {ENOUGH} of each"


def fit(logprobs: Sequence[float], lengths: Sequence[int], right: Sequence[bool]) -> Confidence:
    """The most likely three numbers, by Newton's method. `lengths` count tokens, the end among them."""
    features = np.stack([np.asarray(logprobs, dtype=np.float64), np.asarray(lengths, dtype=np.float64)], axis=1)
    mean, deviation = features.mean(axis=0), features.std(axis=0)
    deviation[deviation == 0] = 1.0
    x = np.column_stack([np.ones(len(features)), (features - mean) / deviation])
    y = np.asarray(right, dtype=np.float64)
    prior = np.diag([0.0, PRIOR, PRIOR])

    def loss(weights: np.ndarray) -> float:
        z = x @ weights
        return float(np.logaddexp(0.0, z).sum() - y @ z + 0.5 * weights @ prior @ weights)

    weights = np.zeros(3)
    for _ in range(STEPS):
        p = 0.5 * (1 + np.tanh(x @ weights / 2))
        slope = x.T @ (p - y) + prior @ weights
        step = np.linalg.solve((x.T * (p * (1 - p))) @ x + prior + 1e-9 * np.eye(3), slope)
        while loss(weights - step) > loss(weights) and np.abs(step).max() > 1e-12:
            step /= 2
        weights = weights - step
        if np.abs(step).max() < 1e-9:
            break
    by_logprob, by_token = (weights[1:] / deviation).tolist()
    base = float(weights[0] - mean @ (weights[1:] / deviation))
    return Confidence(base=base, by_logprob=by_logprob, by_token=by_token)
