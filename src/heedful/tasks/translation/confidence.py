"""How likely a translation is right, learned from sentences whose right answers are known.

A model's own probability is too small: label smoothing takes a little from every token, however sure it is. Logistic
regression on the log-probability and the number of tokens gives that back. A good model is hardly ever wrong, so how
right and wrong answers differ is learned from several candidates for each sentence, which are mostly wrong; how often
it is right, from its own answers alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ...config import Config

CANDIDATES = 4  # for each sentence
ENOUGH = 20  # right candidates, and wrong ones: with fewer, the numbers say more about chance than about the model
PRIOR = 1.0  # how strongly weights are held near 0, in units of one sentence; else perfect separation has no end
STEPS = 50


class ScoredAnswer(NamedTuple):
    """An answer that was judged. Its tokens include the end."""

    logprob: float
    n_tokens: int
    right: bool


@dataclass(frozen=True, kw_only=True)
class Confidence(Config):
    """P(right) = σ(base + by_logprob · logprob + by_token · tokens), the end counted as a token."""

    title: ClassVar[str] = "confidence"

    base: float
    by_logprob: float
    by_token: float

    def of(self, logprob: float, n_tokens: int) -> float:
        """The probability that an answer is right."""
        return float(_sigmoid(self.base + self.by_logprob * logprob + self.by_token * n_tokens))


def why_not(candidates: Sequence[ScoredAnswer]) -> str | None:
    """Why nothing can be learned from these, if nothing can."""
    hits = sum(seen.right for seen in candidates)
    misses = len(candidates) - hits
    if min(hits, misses) >= ENOUGH:
        return None
    return (
        f"of {len(candidates):,} candidates for the validation sentences {hits:,} are right and {misses:,} wrong; "
        f"it takes {ENOUGH} of each"
    )


def fit(candidates: Sequence[ScoredAnswer], answers: Sequence[ScoredAnswer]) -> Confidence:
    """How right candidates differ from wrong ones, and how often the answers that are given are right."""
    features = np.array([[seen.logprob, seen.n_tokens] for seen in candidates], dtype=np.float64)
    deviation = features.std(axis=0)
    deviation[deviation == 0] = 1.0
    x = np.column_stack([np.ones(len(features)), (features - features.mean(axis=0)) / deviation])
    weights = _most_likely(x, np.array([seen.right for seen in candidates], dtype=np.float64))
    by_logprob, by_token = (weights[1:] / deviation).tolist()
    base = _level([by_logprob * seen.logprob + by_token * seen.n_tokens for seen in answers], answers)
    return Confidence(base=base, by_logprob=by_logprob, by_token=by_token)


def _most_likely(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Logistic regression by Newton's method, its steps halved where they would overshoot. The first is the base."""
    prior = PRIOR * np.diag([0.0] + [1.0] * (x.shape[1] - 1))

    def loss(weights: np.ndarray) -> float:
        z = x @ weights
        return float(np.logaddexp(0.0, z).sum() - y @ z + 0.5 * weights @ prior @ weights)

    weights = np.zeros(x.shape[1])
    for _ in range(STEPS):
        p = _sigmoid(x @ weights)
        slope = x.T @ (p - y) + prior @ weights
        step = np.linalg.solve((x.T * (p * (1 - p))) @ x + prior + 1e-9 * np.eye(len(weights)), slope)
        while loss(weights - step) > loss(weights) and np.abs(step).max() > 1e-12:
            step /= 2
        weights = weights - step
        if np.abs(step).max() < 1e-9:
            break
    return weights


def _level(known: Sequence[float], answers: Sequence[ScoredAnswer]) -> float:
    """The base with which as many are expected to be right as are; one more of each keeps it finite."""
    middle = float(np.mean(known))
    z = np.array([*known, middle, middle])
    wanted = sum(seen.right for seen in answers) + 1
    low, high = -middle - 50 - float(np.ptp(z)), -middle + 50 + float(np.ptp(z))
    while high - low > 1e-9 * max(1.0, abs(low)):
        base = (low + high) / 2
        low, high = (base, high) if _sigmoid(z + base).sum() < wanted else (low, base)
    return (low + high) / 2


def _sigmoid(z: np.ndarray | float) -> np.ndarray:
    """Without overflow."""
    return 0.5 * (1 + np.tanh(np.asarray(z) / 2))
