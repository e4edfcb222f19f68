"""The position-wise feed-forward network: expands each token to d_ff features and projects it back.

Shapes: (B, T, D) → (B, T, F) → (B, T, D).
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .init import linear

Activation = Callable[[Tensor], Tensor]

ACTIVATIONS: dict[str, Activation] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
    "tanh": torch.tanh,
}


def activation_of(name: str | Activation) -> Activation:
    """Return the activation with this name; a function is returned as it is."""
    if not isinstance(name, str):
        return name
    if name not in ACTIVATIONS:
        raise ValueError(f"unknown activation {name!r}; choose one of {', '.join(ACTIVATIONS)}, or pass a function")
    return ACTIVATIONS[name]


class FeedForward(nn.Module):
    """act(x W₁ + b₁) W₂ + b₂. The paper uses ReLU and no dropout between the two matrices."""

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        *,
        activation: str | Activation = "relu",
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.activation = activation_of(activation)
        self.up_proj = linear(d_model, d_ff, bias=bias)
        self.dropout = nn.Dropout(dropout)
        self.down_proj = linear(d_ff, d_model, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(self.dropout(self.activation(self.up_proj(x))))


class GatedFeedForward(nn.Module):
    """(act(x W_gate) · x W_up) W_down: SwiGLU with "silu", GEGLU with "gelu". Gate and up share one matrix."""

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        *,
        activation: str | Activation = "silu",
        bias: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.activation = activation_of(activation)
        self.gate_up_proj = linear(d_model, 2 * d_ff, bias=bias, pieces=2)
        self.dropout = nn.Dropout(dropout)
        self.down_proj = linear(d_ff, d_model, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.gate_up_proj(x).chunk(2, dim=-1)
        return self.down_proj(self.dropout(self.activation(gate) * up))
