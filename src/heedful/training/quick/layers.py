"""Layers in as few kernels as they allow: each bias is added by what comes after its product, which then also adds up
its gradient; and what passes by a part has its gradient added to the part's own by a kernel that runs anyway.

Shapes: B batch, T tokens, H heads, G key/value heads, K head width, D d_model.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from torch import Tensor, nn

from ...core import ACTIVATIONS, DotProduct, FeedForward, LayerNorm, MultiHeadAttention, PostNorm, PreNorm
from ...core.feedforward import Activation
from ...core.mask_preparation import PreparedMask
from .maps import Map, rows_of
from .parts import Quick, QuickDotProduct, QuickLayerNorm, pays

KNOWN = "relu", "gelu", "gelu_tanh", "silu"  # activations that have a kernel


class QuickFeedForward(Quick, FeedForward):
    """Two products and a kernel between."""

    @classmethod
    def fits(cls, part: FeedForward) -> bool:
        return _are_plain(part.wide, part.narrow) and _kind(part.activation) is not None

    @property
    def last(self) -> nn.Linear:
        return self.narrow

    def unbiased(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(…, D) → (…, D) without the last bias; and x, to be added to it."""
        from ..kernels.activation import Activated

        made: Any = Activated.apply
        wide, kept = Map.of(self.wide, bias=False)(self.shared, x)
        hidden = made(self.shared, rows_of(wide), self.wide.bias, _kind(self.activation)).view(wide.shape)
        return Map.of(self.narrow, bias=False)(self.shared, self.dropout(hidden))[0], kept


def _are_plain(*maps: nn.Linear) -> bool:
    """With a bias, and none that compute something else beside."""
    return all(type(layer) is nn.Linear and layer.bias is not None for layer in maps)


def _kind(activation: Activation) -> str | None:
    def described(given: Any) -> Any:
        return (given.func, given.args, given.keywords) if isinstance(given, partial) else given  # copies are not equal

    return next((name for name in KNOWN if described(ACTIVATIONS[name]) == described(activation)), None)


class QuickMultiHeadAttention(Quick, MultiHeadAttention):
    """Queries, keys and values of self-attention come from one product, and their gradients go back in one piece."""

    attention: QuickDotProduct

    @classmethod
    def fits(cls, part: MultiHeadAttention) -> bool:
        plain = type(part.attention) is DotProduct and not part.normalizes
        return plain and _are_plain(part.query, part.key_value, part.out)

    def settle(self) -> None:
        alike = self.query.in_features == self.key_value.in_features
        self.joined = Map.stacked(self.query, self.key_value) if alike else None

    @property
    def last(self) -> nn.Linear:
        return self.out

    def unbiased(self, x: Tensor, memory: Tensor | None = None, **context: Any) -> tuple[Tensor, Tensor]:
        """(B, T, D) → (B, T, D) without the last bias; and x, to be added to it."""
        keep, others = context.get("keep"), [context.get(name) for name in ("bias", "cache")]
        if isinstance(keep, PreparedMask) and others == [None, None] and (memory is None or len(memory) == len(x)):
            mixed, kept = self._found(x, memory, keep, context.get("rotate") if memory is None else None)
        else:
            mixed, kept = self.mixed(x, memory, **context), x
        return Map.of(self.out, bias=False)(self.shared, mixed)[0].view(x.shape), kept

    def _found(self, x: Tensor, memory: Tensor | None, keep: PreparedMask, rotate: Any) -> tuple[Tensor, Tensor]:
        """What the heads found, (B, T, H·K), and x."""
        self._check_widths(x, memory)
        if memory is None and self.joined is not None:
            joined, kept = self.joined(self.shared, x)
            stacked = [joined.unflatten(-1, (-1, self.d_head))]  # (B, T, H + 2G, K)
        else:
            query, kept = Map.of(self.query)(self.shared, x)
            source = self.key_value(x if memory is None else memory)
            stacked = [part.unflatten(-1, (-1, self.d_head)) for part in (query, source)]
        heads = self.n_heads, self.n_kv_heads
        found = self.attention.over_short_rows(heads, stacked, keep) if rotate is None else None
        if found is None:
            from ..kernels.short_attention import unstacked

            query, key, value = (part.transpose(1, 2) for part in unstacked(stacked, heads))
            if rotate is not None:
                query, key = rotate(query, key)
            found = self.attention(query, key, value, keep).transpose(1, 2)
        return found.flatten(2), kept


UNBIASED: dict[type, type[Quick]] = {FeedForward: QuickFeedForward, MultiHeadAttention: QuickMultiHeadAttention}


def _surrounds(residual: Any) -> bool:
    """Whether it is about a part whose last bias may be left to it, and a norm that has a kernel."""
    kind = UNBIASED.get(type(residual.part))
    norm = type(residual.norm) is LayerNorm and QuickLayerNorm.fits(residual.norm)
    return norm and kind is not None and kind.fits(residual.part) and residual.dropout.p < 1


class QuickPreNorm(Quick, PreNorm):
    """A kernel before the part, and one after it."""

    part: Any
    norm: QuickLayerNorm

    @classmethod
    def fits(cls, part: PreNorm) -> bool:
        return _surrounds(part)

    def forward(self, x: Tensor, *args: Any, **context: Any) -> Tensor:
        if not pays(x):
            return super().forward(x, *args, **context)
        from ..kernels.residual import Added

        normed, kept = self.norm.with_itself(x)
        found, _ = self.part.unbiased(normed, *args, **context)
        made: Any = Added.apply
        out: Tensor = made(self.shared, rows_of(kept), rows_of(found), self.part.last.bias, self.dropping(self.dropout))
        return out.view(x.shape)


class QuickPostNorm(Quick, PostNorm):
    """A kernel after the part."""

    part: Any
    norm: QuickLayerNorm

    @classmethod
    def fits(cls, part: PostNorm) -> bool:
        return _surrounds(part)

    def forward(self, x: Tensor, *args: Any, **context: Any) -> Tensor:
        if not pays(x):
            return super().forward(x, *args, **context)
        from ..kernels.residual import AddedAndNormed

        found, kept = self.part.unbiased(x, *args, **context)
        made: Any = AddedAndNormed.apply
        norm, bias = (self.norm.weight, self.norm.bias, self.norm.eps), self.part.last.bias
        out: Tensor = made(self.shared, rows_of(kept), rows_of(found), bias, *norm, self.dropping(self.dropout))
        return out.view(x.shape)
