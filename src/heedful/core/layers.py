"""Transformer layers, built from sublayers; a residual wrapper applies norm, dropout and the addition.

Shapes: (B, T, D) → (B, T, D).
"""

from typing import Any

from torch import Tensor, nn

from .attention import Rotate
from .cache import Cache
from .mask_preparation import Keep, prepare_memory, prepare_self


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
