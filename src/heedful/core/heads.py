"""Heads map the output of a stack (B, T, D) to a prediction. Each takes the output and its padding mask.

Shapes: B batch, T tokens, D d_model, V vocabulary, C classes or channels, P patches.
"""

from collections.abc import Iterable
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .init import linear, table
from .layers import Activation, activation_of
from .mask_preparation import zero_padding
from .masks import Grid, Mask, as_padding


class OutputEmbedding(nn.Module):
    """An embedding matrix for an output layer that shares none."""

    def __init__(self, n: int, d_model: int) -> None:
        super().__init__()
        self.weight = table(n, d_model)


class Transform(nn.Module):
    """norm(act(x W + b)), which BERT applies before its output layer."""

    def __init__(self, d_in: int, d_out: int, *, activation: str | Activation, norm: nn.Module) -> None:
        super().__init__()
        self.dense = linear(d_in, d_out)
        self.activation = activation_of(activation)
        self.norm = norm

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.activation(self.dense(x)))


class VocabularyHead(nn.Module):
    """Logits over the vocabulary: (B, T, V). Pass an `embedding` to tie the weights.

    The module is shared, not only its parameter, so code that replaces parameters does not untie them. `transform`
    is applied first (BERT has a `Transform`); `scale` multiplies the input (T5: D^−½).
    """

    def __init__(
        self,
        d_model: int,
        vocab_size: int,
        *,
        embedding: nn.Module | None = None,
        bias: bool = False,
        transform: nn.Module | None = None,
        scale: float = 1.0,
    ) -> None:
        super().__init__()
        self.transform = nn.Identity() if transform is None else transform
        self.scale = scale
        self.embedding = OutputEmbedding(vocab_size, d_model) if embedding is None else embedding
        if tuple(self.weight.shape) != (vocab_size, d_model):
            shape = tuple(self.weight.shape)
            raise ValueError(f"this head needs an embedding of shape ({vocab_size}, {d_model}), not {shape}")
        self.bias = nn.Parameter(torch.zeros(vocab_size)) if bias else None

    @property
    def weight(self) -> Tensor:
        """The output matrix (V, D), which may be shared with an embedding."""
        return cast("Tensor", self.embedding.weight)

    def forward(self, x: Tensor, keep: Mask | None = None) -> Tensor:
        x = self.transform(x)
        return F.linear(x if self.scale == 1.0 else x * self.scale, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[1]}, {self.weight.shape[0]}"


class Hidden(nn.Module):
    """Returns the hidden states themselves: (B, T, D)."""

    def forward(self, x: Tensor, keep: Mask | None = None) -> Tensor:
        return x


class ClsPool(nn.Module):
    """The vector of the first real token, such as BERT's [CLS]: (B, D)."""

    def forward(self, x: Tensor, keep: Mask | None = None) -> Tensor:
        real = _real(x, keep)
        if real is None:
            return x[:, 0]
        first = real.int().argmax(dim=1)
        return x[torch.arange(x.shape[0], device=x.device), first]


class TokenPool(nn.Module):
    """The vector of the real token with this index, from 0: (B, D); zero for rows with fewer tokens."""

    def __init__(self, place: int) -> None:
        super().__init__()
        if place < 0:
            raise ValueError(f"the index of a token is at least 0, not {place}")
        self.place = place

    def forward(self, x: Tensor, keep: Mask | None = None) -> Tensor:
        real = _real(x, keep)
        if real is None:
            return x[:, self.place]
        selected = real & (real.cumsum(dim=1) == self.place + 1)
        return zero_padding(x, selected).sum(dim=1)

    def extra_repr(self) -> str:
        return f"place={self.place}"


class MeanPool(nn.Module):
    """The mean over the real tokens: (B, D); zero for rows without any."""

    def forward(self, x: Tensor, keep: Mask | None = None) -> Tensor:
        real = _real(x, keep)
        if real is None:
            return x.mean(dim=1)
        return zero_padding(x, real).sum(dim=1) / real.sum(dim=1, keepdim=True).clamp(min=1)


class MaxPool(nn.Module):
    """The maximum of each feature over the real tokens: (B, D); zero for rows without any."""

    def forward(self, x: Tensor, keep: Mask | None = None) -> Tensor:
        real = _real(x, keep)
        if real is None:
            return x.amax(dim=1)
        largest = x.masked_fill(~real[..., None], -torch.inf).amax(dim=1)
        return largest.masked_fill(~real.any(dim=1, keepdim=True), 0.0)


class ConcatPool(nn.Module):
    """The vectors of all `n` positions, concatenated: (B, n · D). Padded ones are zero."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n

    def forward(self, x: Tensor, keep: Mask | None = None) -> Tensor:
        if x.shape[1] != self.n:
            raise ValueError(f"this head reads {self.n} patches, but there are {x.shape[1]}")
        return zero_padding(x, _real(x, keep)).flatten(1)

    def extra_repr(self) -> str:
        return str(self.n)


class PoolingHead(nn.Module):
    """One vector per row, (B, D): pooling, then an optional dense layer and activation (BERT: tanh)."""

    def __init__(self, pool: nn.Module, dense: nn.Module | None = None, activation: str | Activation | None = None):
        super().__init__()
        self.pool = pool
        self.dense = nn.Identity() if dense is None else dense
        self.activation = activation_of(activation) if activation is not None else nn.Identity()

    def forward(self, x: Tensor, keep: Mask | None = None) -> Tensor:
        return self.activation(self.dense(self.pool(x, keep)))


class ClassHead(nn.Module):
    """Class logits of the pooled vector of each row, (B, C), or with Hidden() of every token, (B, T, C)."""

    def __init__(self, pool: nn.Module, d_model: int, n_classes: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.pool = pool
        self.dropout = nn.Dropout(dropout)
        self.out_proj = linear(d_model, n_classes)

    def forward(self, x: Tensor, keep: Mask | None = None) -> Tensor:
        return self.out_proj(self.dropout(self.pool(x, keep)))


class SpanHead(nn.Module):
    """Scores of each token as the start and as the end of an answer: (B, T, 2).

    Padding gets the lowest finite score, so that the softmax of a row without any token is finite too.
    """

    def __init__(self, d_model: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.out_proj = linear(d_model, 2)

    def forward(self, x: Tensor, keep: Mask | None = None) -> Tensor:
        scores: Tensor = self.out_proj(self.dropout(x))
        real = _real(x, keep)
        return scores if real is None else scores.masked_fill(~real[..., None], torch.finfo(scores.dtype).min)


class EnsembleHead(nn.Module):
    """The mean output of several heads (DeiT: one for the class token, one for the distillation token)."""

    def __init__(self, heads: Iterable[nn.Module]) -> None:
        super().__init__()
        self.heads = nn.ModuleList(heads)

    def forward(self, x: Tensor, keep: Mask | None = None) -> Tensor:
        return torch.stack([head(x, keep) for head in self.heads]).mean(dim=0)


class ForecastHead(nn.Module):
    """The forecast (B, horizon, C), from the pooled vector of all patches."""

    def __init__(
        self, pool: nn.Module, d_pooled: int, *, horizon: int, n_channels: int = 1, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.pool = pool
        self.horizon = horizon
        self.dropout = nn.Dropout(dropout)
        self.out_proj = linear(d_pooled, horizon * n_channels)

    def forward(self, x: Tensor, keep: Mask | None = None) -> Tensor:
        return self.out_proj(self.dropout(self.pool(x, keep))).unflatten(1, (self.horizon, -1))


def _real(x: Tensor, keep: Mask | None) -> Tensor | None:
    return as_padding(keep).real_keys(Grid(x.shape[0], x.shape[1], x.shape[1], 0, x.device))
