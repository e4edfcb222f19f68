"""Layers that leave padding out: all but attention works on each token alone, and a batch is padded by a seventh.

Shapes: B batch, T tokens, S tokens of a memory, N real ones among all B · T; (1, N, D) is a batch without padding.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..core import (
    DecoderLayer,
    DotProduct,
    EncoderLayer,
    FeedForward,
    GatedFeedForward,
    LayerNorm,
    MultiHeadAttention,
    PostNorm,
    PreNorm,
    RMSNorm,
)
from ..core.mask_preparation import PreparedMask

PAYS = 0.95  # with more real tokens than this, packing them costs as much as it saves
TOKENWISE = {FeedForward, GatedFeedForward, LayerNorm, RMSNorm, PreNorm, PostNorm, nn.Linear, nn.Dropout, nn.Identity}


def packs(layer: nn.Module) -> bool:
    """Whether a layer has only parts which are known to work on each token alone, or to be told of the padding."""
    known = TOKENWISE | {MultiHeadAttention, DotProduct}
    parts = [part for part in layer.modules() if part is not layer]
    return all(type(part) in known and not getattr(part, "normalizes", False) for part in parts)


class Places(NamedTuple):
    """Where the real tokens of a batch stand."""

    rows: int
    columns: int
    real: Tensor  # (N,) indexes into B · T

    def pack(self, x: Tensor) -> Tensor:
        """(B, T, D) → (1, N, D)."""
        packed: Tensor = _Packed.apply(x.flatten(0, 1), self.real)  # type: ignore[no-untyped-call]
        return packed[None]

    def unpack(self, x: Tensor) -> Tensor:
        """(1, N, D) → (B, T, D), zero where padding is."""
        zeros = x.new_zeros(self.rows * self.columns, x.shape[-1])
        return zeros.index_copy(0, self.real, x[0]).view(self.rows, self.columns, -1)


class _Packed(torch.autograd.Function):
    """Some rows of x; in its gradient, torch would add where it is enough to copy."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.n = x.shape[0]
        return x.index_select(0, rows)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None]:
        (rows,) = ctx.saved_tensors
        return slopes[0].new_zeros(ctx.n, slopes[0].shape[1]).index_copy_(0, rows, slopes[0]), None


def places(x: Tensor, keep: Any, cache: Any) -> Places | None:
    """Of the real tokens in x (B, T, D), if it pays to compute them alone."""
    if (
        torch.compiler.is_compiling()
        or not torch.is_grad_enabled()
        or cache is not None
        or not isinstance(keep, PreparedMask)
    ):
        return None
    real = keep.rules.real_keys(keep.grid)
    if real is None or real.shape[-1] != x.shape[1] or x.device.type != "cpu" or x.dtype == torch.float64:
        return None
    found = real.expand(x.shape[:2]).flatten().nonzero().squeeze(1)
    return Places(x.shape[0], x.shape[1], found) if found.numel() <= PAYS * real.numel() else None


class PackedEncoderLayer(EncoderLayer):
    """Packs what comes in, and unpacks what goes out."""

    def forward(self, x: Tensor, *, keep: Any = None, cache: Any = None, **context: Any) -> Tensor:
        at = places(x, keep, cache)
        if at is None:
            return super().forward(x, keep=keep, cache=cache, **context)
        x = self.attention(at.pack(x), keep=keep, rotate=context.get("rotate"), at=at)
        return at.unpack(self.feed_forward(x))


class PackedDecoderLayer(DecoderLayer):
    """The same beside a memory, which is packed too."""

    def forward(
        self, x: Tensor, memory: Tensor, *, keep: Any = None, memory_keep: Any = None, cache: Any = None, **context: Any
    ) -> Tensor:
        at, there = places(x, keep, cache), places(memory, memory_keep, cache)
        if at is None or there is None or at.rows != there.rows:
            return super().forward(x, memory, keep=keep, memory_keep=memory_keep, cache=cache, **context)
        x = self.attention(at.pack(x), keep=keep, rotate=context.get("rotate"), at=at)
        x = self.cross_attention(x, there.pack(memory), keep=memory_keep, at=at, there=there)
        return at.unpack(self.feed_forward(x))


class PackedMultiHeadAttention(MultiHeadAttention):
    """Between the maps, which take tokens without padding, attention has them in their rows."""

    def forward(
        self, x: Tensor, memory: Tensor | None = None, *, at: Places | None = None, there: Any = None, **context: Any
    ) -> Tensor:
        if at is None:
            return super().forward(x, memory, **context)
        query = self._heads(at.unpack(self.query(x)), self.n_heads)
        source, where = (x, at) if memory is None else (memory, there)
        both = where.unpack(self.key_value(source)).unflatten(-1, (2, self.n_kv_heads, self.d_head))
        key, value = (part.transpose(1, 2) for part in both.unbind(2))
        rotate = context.get("rotate")
        if rotate is not None:
            query, key = rotate(query, key)
        mixed = self.attention(query, key, value, context["keep"])  # (B, H, T, K)
        out: Tensor = self.out(at.pack(mixed.transpose(1, 2).flatten(2)))
        return out
