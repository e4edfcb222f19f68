"""One layer: parts handed in, each inside a residual wrapper that owns norm, dropout and addition.

Shapes: (B, T, D) → (B, T, D).
"""

from typing import Any

from torch import Tensor, nn

from .attention import Rotate
from .cache import Cache
from .mask_preparation import Keep, prepare_memory, prepare_self


class PreNorm(nn.Module):
    """x + dropout(part(norm(x))). What passes straight through is never normalised, so the stack ends with a norm."""

    def __init__(self, part: nn.Module, norm: nn.Module, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm = norm
        self.part = part
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, *args: Any, **context: Any) -> Tensor:
        return x + self.branch(x, *args, **context)

    def branch(self, x: Tensor, *args: Any, **context: Any) -> Tensor:
        """What is added to x."""
        return self.dropout(self.part(self.norm(x), *args, **context))


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
        bias: Tensor | None = None,
        rotate: Rotate | None = None,
        cache: Cache | None = None,
        layer: int | None = None,
    ) -> Tensor:
        x, mask = prepare_self(x, keep, bias=bias, in_stack=cache is not None or layer is not None)
        return self.sublayers(x, keep=mask, rotate=rotate, cache=cache, layer=layer)

    def sublayers(self, x: Tensor, **context: Any) -> Tensor:
        """The attention, which alone needs the context, and the feed-forward."""
        return self.feed_forward(self.attention(x, **context))


class ParallelLayer(EncoderLayer):
    """x + attention(norm(x)) + feed_forward(norm(x)): both sublayers read the layer's input (GPT-J, PaLM, Falcon).

    Both come wrapped in PreNorm: with one norm that they share, or with a norm each (GPT-NeoX).
    """

    attention: PreNorm
    feed_forward: PreNorm

    def sublayers(self, x: Tensor, **context: Any) -> Tensor:
        return x + self.attention.branch(x, **context) + self.feed_forward.branch(x)


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention over the memory, feed-forward.

    `keep` and `bias` are of the self-attention (a Decoder gives causal()); the mask of the cross-attention is the
    source's padding, `memory_keep`.
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
        bias: Tensor | None = None,
        rotate: Rotate | None = None,
        cache: Cache | None = None,
        layer: int | None = None,
    ) -> Tensor:
        x, mask = prepare_self(x, keep, bias=bias, in_stack=cache is not None or layer is not None)
        memory, memory_mask = prepare_memory(x, memory, memory_keep, in_stack=layer is not None)
        x = self.attention(x, keep=mask, rotate=rotate, cache=cache, layer=layer)
        x = self.cross_attention(x, memory, keep=memory_mask, cache=cache, layer=layer)
        return self.feed_forward(x)
