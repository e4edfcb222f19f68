"""Normalization of one token over its features, or of one feature over all tokens. Shapes: (…, D) → (…, D)."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class LayerNorm(nn.Module):
    """(x − mean) / √(variance + eps) · weight + bias, over the features of one token."""

    def __init__(self, d_model: int, *, eps: float = 1e-5, bias: bool = True) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, eps={self.eps}"


class RMSNorm(nn.Module):
    """x / √(mean of squares + eps) · weight: LayerNorm without centering."""

    def __init__(self, d_model: int, *, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, eps={self.eps}"


class BatchNorm(nn.Module):
    """(x − mean) / √(variance + eps) · weight + bias, each feature over all tokens of a batch.

    Training uses the mean and variance of the batch and moves the running ones toward them by `momentum`. Evaluation
    uses the running ones, so no row depends on another. A norm inside a residual wrapper does not know the padding:
    in training, padded tokens count, so use batches with little padding.
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, d_model: int, *, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        self.eps = eps
        self.momentum = momentum
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.register_buffer("running_mean", torch.zeros(d_model))
        self.register_buffer("running_var", torch.ones(d_model))

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.flatten(0, -2)
        running, weights = (self.running_mean, self.running_var), (self.weight, self.bias)
        return F.batch_norm(tokens, *running, *weights, self.training, self.momentum, self.eps).view(x.shape)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, eps={self.eps}, momentum={self.momentum}"
