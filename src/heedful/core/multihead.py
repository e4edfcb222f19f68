"""Multi-head attention: heads split, run in parallel, joined and projected; self and cross from one module.

Shapes: B batch, H heads, G key/value heads, Tq queries, Tk keys, K head width, D d_model.
"""

from __future__ import annotations

from torch import Tensor, nn

from .attention import DotProduct, Keep, Rotate, carries_its_bias
from .binding import Bound, bind, zero_padding
from .cache import Cache
from .init import linear
from .masks import Mask, Padded, as_mask, as_padding, padding
from .rules import Explicit, Grid


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
        found = self.mixed(x, memory, keep=keep, bias=bias, rotate=rotate, cache=cache, layer=layer)
        out: Tensor = self.out(found)
        return out.reshape(x.shape)

    def mixed(
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
        """What the heads find, side by side, before they are projected: (B, Tq, H · K)."""
        self._check_widths(x, memory)
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
        return mixed.transpose(1, 2).flatten(2)

    def _check_widths(self, x: Tensor, memory: Tensor | None) -> None:
        for name, given, width in (("x", x, self.query.in_features), ("memory", memory, self.key_value.in_features)):
            if given is not None and (given.dim() != 3 or given.shape[-1] != width):
                raise ValueError(f"{name} has the shape (B, T, {width}) here, not {tuple(given.shape)}")

    def keys_values(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """(B, Tk, D) → keys and values, each (B, G, Tk, K)."""
        both = self.key_value(source).unflatten(-1, (2, self.n_kv_heads, self.d_head))  # (B, Tk, 2, G, K)
        key, value = both.unbind(2)  # before heads and tokens change places, so that the gradient needs no copy
        return key.transpose(1, 2), value.transpose(1, 2)

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
        return x, carries_its_bias(keep, bias)
    if cache is not None:
        raise ValueError("a cache is filled by all layers of a stack together; hand it to the Decoder, not to a part")
    grid = Grid(x.shape[0], x.shape[1], x.shape[1], 0, x.device)
    rules = _rules(keep)
    return zero_padding(x, rules.real_keys(grid)), bind(rules, grid, bias=bias, dtype=x.dtype)


def bind_memory(x: Tensor, memory: Tensor, keep: Keep, *, bias: Tensor | None = None) -> tuple[Tensor, Bound]:
    """The same for cross-attention. Where several rows of x share one of the memory, padding is the only mask."""
    if isinstance(keep, Bound):
        return memory, carries_its_bias(keep, bias)
    rows, n_keys = memory.shape[:2]
    n_beams = beams(x, memory)
    rules = _rules(keep) if n_beams == 1 else as_padding(keep)
    n_queries = n_beams * x.shape[1]
    grid = Grid(rows, n_queries, n_keys, n_keys - n_queries, x.device)
    return zero_padding(memory, rules.seen_keys(grid)), bind(rules, grid, bias=bias, dtype=x.dtype)
