"""Drawing a token: pure functions of logprobs. Shapes: (…, V) over the vocabulary."""

from __future__ import annotations

import torch
from torch import Tensor


def shares(
    logprobs: Tensor,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
) -> tuple[Tensor, Tensor]:
    """The probabilities that are left, most likely first, and their tokens.

    The temperature comes first; then each rule looks at what the one before it has left.
    """
    best, tokens = _sorted(logprobs / temperature, top_k)
    left = best.softmax(dim=-1)
    if top_p is not None:  # the token that reaches top_p belongs to them
        left = _without(left, left.cumsum(dim=-1) - left >= top_p)
    if min_p is not None:
        left = _without(left, left < min_p * left[..., :1])
    return left, tokens


def draw(shares: Tensor, uniform: Tensor) -> Tensor:
    """The place in (…, V) shares that each of (…, n) uniform numbers falls on."""
    reached = shares.double().cumsum(dim=-1)
    places = torch.searchsorted(reached, uniform.double() * reached[..., -1:], right=True)
    last = (shares > 0).sum(dim=-1, keepdim=True) - 1  # rounding must not reach what is impossible
    return torch.minimum(places, last.clamp(min=0))  # where all is impossible, one of them


def _without(shares: Tensor, gone: Tensor) -> Tensor:
    """The best one always stays."""
    gone[..., 0] = False
    left = shares.masked_fill(gone, 0.0)
    return left / left.sum(dim=-1, keepdim=True)


def _sorted(logprobs: Tensor, top_k: int | None) -> tuple[Tensor, Tensor]:
    if top_k is not None and top_k < logprobs.shape[-1]:
        best, tokens = logprobs.topk(top_k)
        return best, tokens
    best, tokens = logprobs.sort(dim=-1, descending=True, stable=True)
    return best, tokens
