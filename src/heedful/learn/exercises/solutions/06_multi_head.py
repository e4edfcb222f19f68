"""Many heads."""

from torch import Tensor


def multi_head(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, n_heads: int) -> Tensor:
    """x (B, T, D), each W (D, D), Q = x W_Q → (B, T, D)"""
    query, key, value = ((x @ w).unflatten(-1, (n_heads, -1)).transpose(1, 2) for w in (w_q, w_k, w_v))
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    return (scores.softmax(dim=-1) @ value).transpose(1, 2).flatten(2) @ w_o
