"""Masks."""

import torch
from torch import Tensor


def causal_mask(n_queries: int, n_keys: int) -> Tensor:
    """→ (Tq, Tk)"""
    return torch.ones(n_queries, n_keys, dtype=torch.bool).tril(n_keys - n_queries)


def padding_mask(lengths: Tensor, n_keys: int) -> Tensor:
    """lengths (B,) → (B, 1, 1, Tk)"""
    return (torch.arange(n_keys) < lengths[:, None])[:, None, None]


def decoder_mask(target_lengths: Tensor, n_queries: int, n_keys: int) -> Tensor:
    """lengths (B,) → (B, 1, Tq, Tk)"""
    return causal_mask(n_queries, n_keys) & padding_mask(target_lengths, n_keys)


def cross_mask(source_lengths: Tensor, target_lengths: Tensor, n_queries: int, n_keys: int) -> Tensor:
    """lengths (B,) each → (B, 1, 1, S)"""
    return padding_mask(source_lengths, n_keys)
