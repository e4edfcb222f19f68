"""Transformer layers and what they are built from: norms, the feed-forward network, and residual wrappers.

A residual wrapper applies norm, dropout and the addition. The feed-forward network expands each token to F features and
projects it back. Shapes: (B, T, D) → (B, T, D).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .attention import Rotate
from .cache import Cache
from .init import linear
from .mask_preparation import Keep, prepare_memory, prepare_self

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


class PreNorm(nn.Module):
    """x + dropout(sublayer(norm(x))). The residual stream itself is not normalized, so the stack needs a final norm."""

    def __init__(self, sublayer: nn.Module, norm: nn.Module, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm = norm
        self.sublayer = sublayer
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, *args: Any, **context: Any) -> Tensor:
        return x + self.branch(x, *args, **context)

    def branch(self, x: Tensor, *args: Any, **context: Any) -> Tensor:
        """Return the term that is added to x."""
        return self.dropout(self.sublayer(self.norm(x), *args, **context))


class PostNorm(nn.Module):
    """norm(x + dropout(sublayer(x))), as in the paper."""

    def __init__(self, sublayer: nn.Module, norm: nn.Module, dropout: float = 0.0) -> None:
        super().__init__()
        self.sublayer = sublayer
        self.dropout = nn.Dropout(dropout)
        self.norm = norm

    def forward(self, x: Tensor, *args: Any, **context: Any) -> Tensor:
        return self.norm(x + self.dropout(self.sublayer(x, *args, **context)))


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward; both are wrapped in PostNorm(…) or PreNorm(…)."""

    def __init__(self, self_attention: nn.Module, feed_forward: nn.Module) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.feed_forward = feed_forward

    def forward(
        self,
        x: Tensor,
        *,
        keep: Keep = None,
        bias: Tensor | None = None,
        rotate: Rotate | None = None,
        cache: Cache | None = None,
        layer: int | None = None,
    ) -> Tensor:
        x, mask = prepare_self(x, keep, bias=bias, in_stack=cache is not None or layer is not None)
        return self.sublayers(x, keep=mask, rotate=rotate, cache=cache, layer=layer)

    def sublayers(self, x: Tensor, **context: Any) -> Tensor:
        """Apply the attention, which takes the context, and the feed-forward."""
        return self.feed_forward(self.self_attention(x, **context))


class ParallelLayer(EncoderLayer):
    """x + attention(norm(x)) + feed_forward(norm(x)): both sublayers read the input of the layer (GPT-J, PaLM, Falcon).

    Both are wrapped in PreNorm, with one shared norm or with a norm each (GPT-NeoX).
    """

    self_attention: PreNorm
    feed_forward: PreNorm

    def sublayers(self, x: Tensor, **context: Any) -> Tensor:
        return x + self.self_attention.branch(x, **context) + self.feed_forward.branch(x)


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention over the memory, feed-forward.

    `keep` and `bias` apply to the self-attention (a Decoder passes causal()); the cross-attention is masked by the
    padding of the source, `memory_keep`.
    """

    def __init__(self, self_attention: nn.Module, cross_attention: nn.Module, feed_forward: nn.Module) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.cross_attention = cross_attention
        self.feed_forward = feed_forward

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        *,
        keep: Keep = None,
        memory_keep: Keep = None,
        bias: Tensor | None = None,
        rotate: Rotate | None = None,
        cache: Cache | None = None,
        layer: int | None = None,
    ) -> Tensor:
        x, mask = prepare_self(x, keep, bias=bias, in_stack=cache is not None or layer is not None)
        memory, memory_mask = prepare_memory(x, memory, memory_keep, in_stack=layer is not None)
        x = self.self_attention(x, keep=mask, rotate=rotate, cache=cache, layer=layer)
        x = self.cross_attention(x, memory, keep=memory_mask, cache=cache, layer=layer)
        return self.feed_forward(x)
