"""Training: learn to reverse."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def shift(target: Tensor, start: int) -> tuple[Tensor, Tensor]:
    """target (B, T) → inputs (B, T), labels (B, T)"""
    return F.pad(target, (1, 0), value=start)[:, :-1], target


def loss(logits: Tensor, labels: Tensor, padding: int) -> Tensor:
    """logits (B, T, V), labels (B, T) → ()"""
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=padding)


def learning_rate(step: int, d_model: int, warmup: int) -> float:
    """D^(−1/2) · min(step^(−1/2), step · warmup^(−3/2))"""
    return float(d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))


def train_step(
    model: nn.Module, optimizer: torch.optim.Optimizer, source: Tensor, target: Tensor, start: int, padding: int
) -> float:
    """source (B, S), target (B, T) → loss"""
    inputs, labels = shift(target, start)
    value = loss(model(source, inputs), labels, padding)
    optimizer.zero_grad()
    value.backward()
    optimizer.step()
    return value.item()
