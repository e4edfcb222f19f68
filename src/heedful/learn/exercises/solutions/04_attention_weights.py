"""Attention weights."""

import math

import torch
from torch import Tensor


def attention_weights(query: Tensor, key: Tensor, keep: Tensor | None = None) -> Tensor:
    """softmax(Q Kᵀ / √K): query (B, H, Tq, K), key (B, H, Tk, K), keep (B, 1, Tq, Tk) → (B, H, Tq, Tk)"""
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if keep is None:
        return scores.softmax(dim=-1)
    weights = scores.masked_fill(~keep, -torch.inf).softmax(dim=-1)
    return weights.masked_fill(~keep.any(dim=-1, keepdim=True), 0.0)
