"""Additive scores."""

import torch
from torch import Tensor


def additive_scores(s: Tensor, h: Tensor, w1: Tensor, w2: Tensor, v: Tensor) -> Tensor:
    """vᵀ tanh(W₁ s + W₂ h): s (B, D), h (B, S, M), W₁ (A, D), W₂ (A, M), v (A,) → (B, S)"""
    return torch.tanh((s @ w1.T)[:, None] + h @ w2.T) @ v
