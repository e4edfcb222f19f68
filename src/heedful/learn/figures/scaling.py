"""Figure of scaled scores: what dividing by √d_k, by d_k or by nothing does to random queries and keys."""

from typing import Any

import torch

from ...core import attention_weights
from ...lab.measures import random_attention, softmax_statistics
from . import figure, rounded

WIDTHS = [2**n for n in range(11)]  # of queries and keys: d_k from 1 to 1,024
DIVISORS = {"none": 0.0, "root": 0.5, "full": 1.0}  # the power of d_k that the scores are divided by
N_QUERIES, N_KEYS = 512, 8


def measure(width: int, power: float) -> dict[str, Any]:
    """Return means over all queries, and the weights of the first one, with scores divided by width^power."""
    query, key, direction = random_attention(torch.Generator().manual_seed(0), N_QUERIES, N_KEYS)
    query, key, scale = query[..., :width], key[..., :width], width**-power
    statistics = softmax_statistics(query, key, direction, scale)
    weights = attention_weights(query[:, :, :1], key, scale=scale).flatten()
    return {name: round(value, 4) for name, value in statistics.items()} | {"weights": rounded(weights)}


@figure("scaled-scores")
def scaled_scores(language: str) -> dict[str, Any]:
    """Return, for each divisor, the measures at each width."""
    measures = {name: [measure(width, power) for width in WIDTHS] for name, power in DIVISORS.items()}
    return {"widths": WIDTHS, "keys": N_KEYS, "queries": N_QUERIES, "measures": measures}
