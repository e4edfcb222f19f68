"""Multi-head attention: heads are split, run in parallel, concatenated and projected; for self- and cross-attention.

Shapes: B batch, H heads, G key/value heads, Tq queries, Tk keys, K head width, D d_model.
"""

from functools import partial
from typing import Any

from torch import Tensor, nn

from .attention import DotProduct, Rotate
from .cache import Cache
from .init import linear
from .mask_preparation import Keep, beams, prepare_memory, prepare_self


class MultiHeadAttention(nn.Module):
    """Queries come from x; keys and values from x, or from a memory (cross-attention).

    With `n_kv_heads` below `n_heads`, several query heads share a key/value head. `query_norm` and `key_norm` receive
    the queries (B, H, Tq, K) and the keys (B, G, Tk, K) between projection and rotation and return the same shape:
    `RMSNorm(d_head)` for both is the QK-norm of Qwen3. Each of the four matrices is initialized Xavier uniform, and the
    biases are zero.
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
        query_norm: nn.Module | None = None,
        key_norm: nn.Module | None = None,
    ) -> None:
        super().__init__()
        kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        if n_heads < 1 or kv_heads < 1 or n_heads % kv_heads:
            raise ValueError(f"n_heads={n_heads} is not a multiple of n_kv_heads={kv_heads}")
        if d_head is None and d_model % n_heads:
            raise ValueError(f"d_model={d_model} is not a multiple of n_heads={n_heads}; change one or set d_head")
        if d_head is not None and d_head < 1:
            raise ValueError(f"d_head must be at least 1, not {d_head}")
        self.n_heads = n_heads
        self.n_kv_heads = kv_heads
        self.d_head = d_model // n_heads if d_head is None else d_head
        self.q_proj = linear(d_model, n_heads * self.d_head, bias=bias)
        self.kv_proj = linear(d_memory or d_model, 2 * kv_heads * self.d_head, bias=bias, pieces=2)
        self.query_norm = nn.Identity() if query_norm is None else query_norm
        self.key_norm = nn.Identity() if key_norm is None else key_norm
        self.attention = DotProduct(scale=scale, dropout=dropout)
        self.out_proj = linear(n_heads * self.d_head, d_model, bias=bias if out_bias is None else out_bias)

    @property
    def normalizes(self) -> bool:
        """True if queries or keys are normalized between projection and attention."""
        return not (type(self.query_norm) is type(self.key_norm) is nn.Identity)

    def forward(self, x: Tensor, memory: Tensor | None = None, **context: Any) -> Tensor:
        """Attend from x (B, Tq, D) to x itself or to the memory: (B, Tq, D). `context` holds the arguments of `mixed`:

        `keep` is a mask, a (B, Tk) tensor, True = real, or a prepared mask from a stack. If x has n times the rows of
        the memory (the beams of a sentence), they are folded into the query length, so the memory is never copied.
        `rotate` rotates queries and keys by their positions, in self-attention only. `cache` and `layer`, the index
        of the layer, come from a stack.
        """
        out: Tensor = self.out_proj(self.mixed(x, memory, **context))
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
        layer: int | None = None,
    ) -> Tensor:
        """Return the concatenated outputs of the heads, before the output projection: (B, Tq, H · K)."""
        self._check_widths(x, memory)
        in_stack = cache is not None or layer is not None
        if memory is None:
            x, mask = prepare_self(x, keep, bias=bias, in_stack=in_stack)
            query, (key, value) = self._queries(x), self.keys_values(x)
            if rotate is not None:
                query, key = rotate(query, key)
            if cache is not None:
                key, value = cache.append(layer or 0, key, value)
        else:
            if rotate is not None:
                raise ValueError("rotate is for self-attention only: a memory has positions of its own")
            source, mask = prepare_memory(x, memory, keep, bias=bias, in_stack=in_stack)
            query = self._queries(x.reshape(len(source), beams(x, source) * x.shape[1], x.shape[2]))
            compute = partial(self.keys_values, source)
            key, value = compute() if cache is None else cache.memory(layer or 0, compute)
        heads = self.attention(query, key, value, mask)  # (B, H, Tq, K)
        return heads.transpose(1, 2).flatten(2)

    def _check_widths(self, x: Tensor, memory: Tensor | None) -> None:
        for name, value, width in (("x", x, self.q_proj.in_features), ("memory", memory, self.kv_proj.in_features)):
            if value is not None and (value.dim() != 3 or value.shape[-1] != width):
                raise ValueError(f"{name} must have the shape (B, T, {width}), not {tuple(value.shape)}")

    def keys_values(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Project (B, Tk, D) to normalized keys and values, each (B, G, Tk, K)."""
        both = self.kv_proj(source).unflatten(-1, (2, self.n_kv_heads, self.d_head))  # (B, Tk, 2, G, K)
        key, value = both.unbind(2)  # before the transpose, so that the gradient needs no copy
        return self.key_norm(key.transpose(1, 2)), value.transpose(1, 2)

    def _queries(self, x: Tensor) -> Tensor:
        return self.query_norm(self._heads(self.q_proj(x), self.n_heads))

    def _heads(self, x: Tensor, n: int) -> Tensor:
        return x.unflatten(-1, (n, self.d_head)).transpose(1, 2)  # (B, T, n·K) → (B, n, T, K)
