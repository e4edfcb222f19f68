"""Scaled dot-product attention, fused and written out, and the multi-head module around it.

Shapes: B batch, H heads, G key/value heads, Tq queries, Tk keys, K head width, D d_model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .binding import Bound, bind, zero_padding
from .cache import Cache
from .init import linear
from .masks import Explicit, Grid, Mask, Padded, as_mask, as_padding, padding

Rotate = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
Keep = Mask | Bound | Tensor | None


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    keep: Keep = None,
    bias: Tensor | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """softmax(q kᵀ · scale + bias) v over the keys that `keep` allows: (B, H, Tq, K).

    The scale is 1/√K unless given. A query that may see nothing gives zero. Padding speaks of keys: what
    stands in them is never read. Queries are the caller's; under causal() a query that is itself padding
    gets a row that nobody should read.
    """
    bound, key, value = _bound(query, key, value, keep, bias)
    if bound.order is not None:
        query, key, value = (_moved(part, bound.order[0]) for part in (query, key, value))
    mixed = F.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=None if bound.additive is None else bound.additive.to(query.dtype),
        dropout_p=dropout,
        is_causal=bound.is_causal,
        scale=scale,
        enable_gqa=query.shape[1] != key.shape[1],
    )
    if bound.order is not None:
        mixed = _moved(mixed, bound.order[1])
    return mixed if bound.dead is None else mixed.masked_fill(bound.dead, 0.0)


def attention_weights(
    query: Tensor,
    key: Tensor,
    *,
    keep: Keep = None,
    bias: Tensor | None = None,
    scale: float | None = None,
) -> Tensor:
    """What `attend` multiplies the values with, written out: (B, H, Tq, Tk), each row a distribution.

    A row that may see nothing is all zero.
    """
    bound, key, _ = _bound(query, key, key, keep, bias)
    key = key.repeat_interleave(query.shape[1] // key.shape[1], dim=1)  # (B, H, Tk, K)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query * scale) @ key.transpose(-2, -1)  # (B, H, Tq, Tk)
    allowed = bound.rules.dense(bound.grid)
    if allowed is None and bound.bias is None:
        return scores.softmax(dim=-1)
    if bound.bias is not None:
        scores = scores + bound.bias
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -torch.inf)
    blind = (scores == -torch.inf).all(dim=-1, keepdim=True)
    return scores.masked_fill(blind, 0.0).softmax(dim=-1).masked_fill(blind, 0.0)


def _moved(x: Tensor, order: Tensor) -> Tensor:
    """The tokens of (B, H, T, K) in another order, (B, T)."""
    rows = torch.arange(order.shape[0], device=order.device)[:, None]
    return x.transpose(1, 2)[rows, order].transpose(1, 2)


def _bound(query: Tensor, key: Tensor, value: Tensor, keep: Keep, bias: Tensor | None) -> tuple[Bound, Tensor, Tensor]:
    """The mask laid over these lengths, and keys and values with nothing left where nobody may look."""
    _check_shapes(query, key, value)
    if isinstance(keep, Bound):
        keep.check(query, key)
        return _as_it_is(keep, bias), key, value
    n_queries, n_keys = query.shape[2], key.shape[2]
    grid = Grid(query.shape[0], n_queries, n_keys, n_keys - n_queries, query.device)
    rules = as_mask(keep)
    bound = bind(rules, grid, bias=bias, dtype=query.dtype)
    bound.check(query, key)
    seen = rules.seen_keys(grid)
    if seen is not None:
        unseen = ~seen[:, None, :, None]  # (B, 1, Tk, 1)
        key, value = key.masked_fill(unseen, 0.0), value.masked_fill(unseen, 0.0)
    return bound, key, value


def _as_it_is(bound: Bound, bias: Tensor | None) -> Bound:
    if bias is not None:
        raise ValueError("a bound mask carries its bias already; hand the bias to bind()")
    return bound


def _check_shapes(query: Tensor, key: Tensor, value: Tensor) -> None:
    def refuse(wanted: str) -> ValueError:
        return ValueError(
            f"attention takes {wanted}; got query {tuple(query.shape)}, key {tuple(key.shape)}, "
            f"value {tuple(value.shape)}"
        )

    if not query.dim() == key.dim() == value.dim() == 4:
        raise refuse("(B, heads, T, K) tensors")
    if query.shape[-1] != key.shape[-1] or key.shape[:3] != value.shape[:3] or query.shape[0] != key.shape[0]:
        raise refuse("one batch, one head width, and as many values as keys")
    if query.shape[1] % key.shape[1]:
        raise refuse("key/value heads that the query heads can share evenly")


class DotProduct(nn.Module):
    """`attend` as a module, so that one can hook it: whoever wants to look asks `weights` with the same inputs."""

    def __init__(self, *, scale: float | None = None, dropout: float = 0.0) -> None:
        super().__init__()
        self.scale = scale
        self.dropout = dropout

    def forward(self, query: Tensor, key: Tensor, value: Tensor, keep: Bound) -> Tensor:
        dropout = self.dropout if self.training else 0.0
        return attend(query, key, value, keep=keep, scale=self.scale, dropout=dropout)

    def weights(
        self, query: Tensor, key: Tensor, value: Tensor, keep: Bound, *, heads: Sequence[int] | None = None
    ) -> Tensor:
        """The attention weights of the heads asked for: (B, H, Tq, Tk), before dropout."""
        if heads is not None:
            group = query.shape[1] // key.shape[1]
            chosen = list(heads)
            query, key = query[:, chosen], key[:, [head // group for head in chosen]]
            keep = keep.heads(chosen)
        return attention_weights(query, key, keep=keep, scale=self.scale)

    def extra_repr(self) -> str:
        return f"scale={'1/√K' if self.scale is None else self.scale}, dropout={self.dropout}"


class MultiHeadAttention(nn.Module):
    """Queries from x; keys and values from x itself, or from a memory (cross-attention).

    `n_kv_heads` below `n_heads` lets several query heads share a key/value head. Weights start Xavier
    uniform, each of the four matrices on its own, and biases at zero.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        n_kv_heads: int | None = None,
        d_head: int | None = None,
        d_memory: int | None = None,
        bias: bool = True,
        out_bias: bool | None = None,
        scale: float | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        if n_heads < 1 or kv_heads < 1 or n_heads % kv_heads:
            raise ValueError(f"n_heads={n_heads} is not a multiple of n_kv_heads={kv_heads}")
        if d_head is None and d_model % n_heads:
            raise ValueError(f"d_model={d_model} is not a multiple of n_heads={n_heads}; change one, or give d_head")
        if d_head is not None and d_head < 1:
            raise ValueError(f"d_head must be at least 1, not {d_head}")
        self.n_heads = n_heads
        self.n_kv_heads = kv_heads
        self.d_head = d_model // n_heads if d_head is None else d_head
        self.query = linear(d_model, n_heads * self.d_head, bias=bias)
        self.key_value = linear(d_memory or d_model, 2 * kv_heads * self.d_head, bias=bias, pieces=2)
        self.attention = DotProduct(scale=scale, dropout=dropout)
        self.out = linear(n_heads * self.d_head, d_model, bias=bias if out_bias is None else out_bias)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        *,
        keep: Keep = None,
        bias: Tensor | None = None,
        rotate: Rotate | None = None,
        cache: Cache | None = None,
        layer: int = 0,
    ) -> Tensor:
        """(B, Tq, D) → (B, Tq, D).

        `keep` is a mask, a (B, Tk) tensor of what is real, or what a stack has bound. Where x has n times
        the rows of the memory (the beams of one sentence), they are folded into the query length and the
        memory is never copied. Caches come from a stack.
        """
        self._check_widths(x, memory)
        shape = x.shape
        if memory is None:
            x, bound = bind_self(x, keep, bias=bias, cache=cache)
        else:
            memory, bound = bind_memory(x, memory, keep, bias=bias)
            x = x.reshape(memory.shape[0], beams(x, memory) * x.shape[1], x.shape[2])
        query = self._heads(self.query(x), self.n_heads)
        if memory is None:
            key, value = self.keys_values(x)
            if rotate is not None:
                query, key = rotate(query, key)
            if cache is not None:
                key, value = cache.append(layer, key, value)
        elif cache is not None:
            key, value = cache.memory(layer, lambda: self.keys_values(memory))
        else:
            key, value = self.keys_values(memory)
        mixed = self.attention(query, key, value, bound)  # (B, H, Tq, K)
        out: Tensor = self.out(mixed.transpose(1, 2).flatten(2))
        return out.reshape(shape)

    def _check_widths(self, x: Tensor, memory: Tensor | None) -> None:
        for name, given, width in (("x", x, self.query.in_features), ("memory", memory, self.key_value.in_features)):
            if given is not None and (given.dim() != 3 or given.shape[-1] != width):
                raise ValueError(f"{name} has the shape (B, T, {width}) here, not {tuple(given.shape)}")

    def keys_values(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """(B, Tk, D) → keys and values, each (B, G, Tk, K)."""
        key, value = self._heads(self.key_value(source), 2 * self.n_kv_heads).chunk(2, dim=1)
        return key, value

    def _heads(self, x: Tensor, n: int) -> Tensor:
        return x.unflatten(-1, (n, self.d_head)).transpose(1, 2)  # (B, T, n·K) → (B, n, T, K)


def beams(x: Tensor, memory: Tensor) -> int:
    """How many rows of x read each row of the memory."""
    rows, memory_rows = x.shape[0], memory.shape[0]
    if rows == memory_rows:
        return 1
    if not memory_rows or rows % memory_rows:
        raise ValueError(f"{rows} rows cannot share {memory_rows} rows of memory evenly")
    return rows // memory_rows


def _rules(keep: Padded) -> Mask:
    """A mask over sequences: a tensor of two dimensions is (B, Tk), what is real, as in the models."""
    if isinstance(keep, Tensor) and keep.dim() == 2:
        return padding(keep)
    mask = as_mask(keep)
    if any(isinstance(part, Explicit) and part.keep.dim() == 2 for part in mask.parts):
        raise ValueError(
            "a tensor of two dimensions joined to a mask may mean two things over sequences: "
            "write padding(keep) for (B, Tk), or mask[None, None] for (Tq, Tk)"
        )
    return mask


def bind_self(x: Tensor, keep: Keep, *, bias: Tensor | None = None, cache: Cache | None = None) -> tuple[Tensor, Bound]:
    """For a part called without its stack: bind the mask of its self-attention, and zero what is padding in x."""
    if isinstance(keep, Bound):
        return x, _as_it_is(keep, bias)
    if cache is not None:
        raise ValueError("a cache is filled by all layers of a stack together; hand it to the Decoder, not to a part")
    grid = Grid(x.shape[0], x.shape[1], x.shape[1], 0, x.device)
    rules = _rules(keep)
    return zero_padding(x, rules.real_keys(grid)), bind(rules, grid, bias=bias, dtype=x.dtype)


def bind_memory(x: Tensor, memory: Tensor, keep: Keep, *, bias: Tensor | None = None) -> tuple[Tensor, Bound]:
    """The same for cross-attention. Where several rows of x share one of the memory, padding is the only mask."""
    if isinstance(keep, Bound):
        return memory, _as_it_is(keep, bias)
    rows, n_keys = memory.shape[:2]
    n_beams = beams(x, memory)
    rules = _rules(keep) if n_beams == 1 else as_padding(keep)
    n_queries = n_beams * x.shape[1]
    grid = Grid(rows, n_queries, n_keys, n_keys - n_queries, x.device)
    return zero_padding(memory, rules.seen_keys(grid)), bind(rules, grid, bias=bias, dtype=x.dtype)
