"""Where softmax saturates."""

from collections.abc import Callable

import torch
from torch import Tensor


def largest_weight(query: Tensor, key: Tensor, scale: float) -> float:
    """query (N, K), key (N, T, K) → mean over N of max over T of softmax(scale · k q)"""
    scores = scale * torch.einsum("nk,ntk->nt", query, key)
    return float(scores.softmax(dim=-1).max(dim=-1).values.mean())


def width_past(threshold: float, widths: list[int], sample: Callable[[int], tuple[Tensor, Tensor]]) -> int:
    """sample(K) → query (N, K), key (N, T, K); widths [1, 2, 4, …] → K"""
    return next(width for width in widths if largest_weight(*sample(width), 1.0) > threshold)
