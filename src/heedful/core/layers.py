"""One layer: parts handed in, each inside a residual wrapper that owns norm, dropout and addition.

Shapes: (B, T, D) → (B, T, D).
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from .attention import Keep, Rotate
from .cache import Cache
from .multihead import bind_memory, bind_self


class PreNorm(nn.Module):
    """x + dropout(part(norm(x))). What passes straight through is never normalised, so the stack ends with a norm."""

    def __init__(self, part: nn.Module, norm: nn.Module, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm = norm
        self.part = part
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, *args: Any, **context: Any) -> Tensor:
        return x + self.dropout(self.part(self.norm(x), *args, **context))


class PostNorm(nn.Module):
    """norm(x + dropout(part(x))): the paper's order."""

    def __init__(self, part: nn.Module, norm: nn.Module, dropout: float = 0.0) -> None:
        super().__init__()
        self.part = part
        self.dropout = nn.Dropout(dropout)
        self.norm = norm

    def forward(self, x: Tensor, *args: Any, **context: Any) -> Tensor:
        return self.norm(x + self.dropout(self.part(x, *args, **context)))


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward; each part comes wrapped, as PostNorm(…) or PreNorm(…)."""

    def __init__(self, attention: nn.Module, feed_forward: nn.Module) -> None:
        super().__init__()
        self.attention = attention
        self.feed_forward = feed_forward

    def forward(
        self,
        x: Tensor,
        *,
        keep: Keep = None,
        rotate: Rotate | None = None,
        cache: Cache | None = None,
        layer: int = 0,
    ) -> Tensor:
        x, keep = bind_self(x, keep, cache=cache)
        x = self.attention(x, keep=keep, rotate=rotate, cache=cache, layer=layer)
        return self.feed_forward(x)


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention over the memory, feed-forward.

    The mask of the self-attention is the caller's to give (a Decoder gives causal()); that of the
    cross-attention is the source's padding.
    """

    def __init__(self, attention: nn.Module, cross_attention: nn.Module, feed_forward: nn.Module) -> None:
        super().__init__()
        self.attention = attention
        self.cross_attention = cross_attention
        self.feed_forward = feed_forward

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        *,
        keep: Keep = None,
        memory_keep: Keep = None,
        rotate: Rotate | None = None,
        cache: Cache | None = None,
        layer: int = 0,
    ) -> Tensor:
        x, keep = bind_self(x, keep, cache=cache)
        memory, memory_keep = bind_memory(x, memory, memory_keep)
        x = self.attention(x, keep=keep, rotate=rotate, cache=cache, layer=layer)
        x = self.cross_attention(x, memory, keep=memory_keep, cache=cache, layer=layer)
        return self.feed_forward(x)
