"""Scaled dot-product attention, fused and written out.

Shapes: B batch, H heads, G key/value heads, Tq queries, Tk keys, K head width, D d_model.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from .mask_preparation import Keep, PreparedMask, prepare_mask
from .masks import Grid, as_mask

Rotate = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]  # queries and keys, turned by their positions

# cuDNN's kernel is fast over long rows, but with a mask its gradients may be NaN (pytorch/pytorch#196678).
WITHOUT_CUDNN = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


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
    mask, key, value = _prepared(query, key, value, keep, bias)
    if mask.unpad_index is not None:
        query, key, value = (_moved(part, mask.unpad_index[0]) for part in (query, key, value))
    with sdpa_kernel(WITHOUT_CUDNN) if query.is_cuda and mask.additive is not None else nullcontext():
        mixed = F.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=None if mask.additive is None else mask.additive.to(query.dtype),
            dropout_p=dropout,
            is_causal=mask.is_causal,
            scale=scale,
            enable_gqa=query.shape[1] != key.shape[1],
        )
    if query.is_cuda and not torch.compiler.is_compiling():
        mixed = _Laid.apply(mixed)  # type: ignore[no-untyped-call]  # torch's
    if mask.unpad_index is not None:
        mixed = _moved(mixed, mask.unpad_index[1])
    return mixed if mask.fully_masked is None else torch.where(mask.fully_masked, 0.0, mixed)


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
    mask, key, _ = _prepared(query, key, key, keep, bias)
    key = key.repeat_interleave(query.shape[1] // key.shape[1], dim=1)  # (B, H, Tk, K)
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query * scale) @ key.transpose(-2, -1)  # (B, H, Tq, Tk)
    allowed = mask.rules.dense(mask.grid)
    if allowed is None and mask.bias is None:
        return scores.softmax(dim=-1)
    if mask.bias is not None:
        scores = scores + mask.bias
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -torch.inf)
    blind = (scores == -torch.inf).all(dim=-1, keepdim=True)
    return scores.masked_fill(blind, 0.0).softmax(dim=-1).masked_fill(blind, 0.0)


class _Laid(torch.autograd.Function):
    """The value itself; its gradient comes back in the value's own memory layout.

    cuDNN's backward pass plans once for each shape, and takes every later gradient as laid out like the first one:
    another layout gives wrong numbers, silently (torch 2.11).
    """

    @staticmethod
    def forward(value: Tensor) -> Tensor:
        return value.view_as(value)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.strides = output.stride()

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Tensor:
        if slope.stride() == ctx.strides:
            return slope
        return slope.new_empty_strided(slope.shape, ctx.strides).copy_(slope)


def _moved(x: Tensor, order: Tensor) -> Tensor:
    """The tokens of (B, H, T, K) in another order, (B, T)."""
    rows = torch.arange(order.shape[0], device=order.device)[:, None]
    return x.transpose(1, 2)[rows, order].transpose(1, 2)


def _prepared(
    query: Tensor, key: Tensor, value: Tensor, keep: Keep, bias: Tensor | None
) -> tuple[PreparedMask, Tensor, Tensor]:
    """The mask prepared for these lengths, and keys and values with nothing left where nobody may look."""
    _check_shapes(query, key, value)
    if isinstance(keep, PreparedMask):
        keep.check(query, key)
        return keep.reject_bias(bias), key, value
    n_queries, n_keys = query.shape[2], key.shape[2]
    grid = Grid(query.shape[0], n_queries, n_keys, n_keys - n_queries, query.device)
    rules = as_mask(keep)
    mask = prepare_mask(rules, grid, bias=bias, dtype=query.dtype)
    mask.check(query, key)
    visible = rules.visible_keys(grid)
    if visible is not None:
        hidden = ~visible[:, None, :, None]  # (B, 1, Tk, 1)
        key, value = key.masked_fill(hidden, 0.0), value.masked_fill(hidden, 0.0)
    return mask, key, value


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

    def forward(self, query: Tensor, key: Tensor, value: Tensor, keep: PreparedMask) -> Tensor:
        dropout = self.dropout if self.training else 0.0
        return attend(query, key, value, keep=keep, scale=self.scale, dropout=dropout)

    def weights(
        self, query: Tensor, key: Tensor, value: Tensor, keep: PreparedMask, *, heads: Sequence[int] | None = None
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
