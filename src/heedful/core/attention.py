"""Scaled dot-product attention: `attend` runs the fused kernel, `attention_weights` computes the formula.

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

Rotate = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]  # rotates queries and keys by their positions

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
    """Compute softmax(q kᵀ · scale + bias) v with the fused kernel: (B, H, Tq, K).

    Args:
        query, key, value: (B, H, Tq, K), (B, G, Tk, K) and (B, G, Tk, K); G divides H.
        keep: Which query may attend to which key. The values of padded keys are never read, not even NaN.
        bias: Added to the scaled scores; broadcasts to (B, H, Tq, Tk).
        scale: 1/√K by default.
        dropout: Probability of dropping an attention weight.

    A query that may see no key gives zero. Under causal() the output of a query that is itself padding is undefined.
    """
    mask, key, value = _prepare(query, key, value, keep, bias)
    if mask.unpad_index is not None:
        query, key, value = (_permute_tokens(tensor, mask.unpad_index[0]) for tensor in (query, key, value))
    with sdpa_kernel(WITHOUT_CUDNN) if query.is_cuda and mask.additive is not None else nullcontext():
        output = F.scaled_dot_product_attention(
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
        output = _KeepGradientLayout.apply(output)  # type: ignore[no-untyped-call]  # torch's
    if mask.unpad_index is not None:
        output = _permute_tokens(output, mask.unpad_index[1])
    return output if mask.fully_masked is None else torch.where(mask.fully_masked, 0.0, output)


def attention_weights(
    query: Tensor,
    key: Tensor,
    *,
    keep: Keep = None,
    bias: Tensor | None = None,
    scale: float | None = None,
) -> Tensor:
    """Compute the weights that `attend` applies to the values: (B, H, Tq, Tk), each row a distribution.

    The arguments are those of `attend`. The row of a query that may see no key is zero.
    """
    mask, key, _ = _prepare(query, key, key, keep, bias)
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
    fully_masked = (scores == -torch.inf).all(dim=-1, keepdim=True)
    return scores.masked_fill(fully_masked, 0.0).softmax(dim=-1).masked_fill(fully_masked, 0.0)


class _KeepGradientLayout(torch.autograd.Function):
    """The identity, whose gradient has the memory layout of the value.

    cuDNN plans its backward pass once per shape and assumes that every later gradient has the layout of the first.
    With another layout its results are wrong, without an error (torch 2.11).
    """

    @staticmethod
    def forward(value: Tensor) -> Tensor:
        return value.view_as(value)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.strides = output.stride()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        if gradient.stride() == ctx.strides:
            return gradient
        return gradient.new_empty_strided(gradient.shape, ctx.strides).copy_(gradient)


def _permute_tokens(x: Tensor, order: Tensor) -> Tensor:
    """Reorder the tokens of x (B, H, T, K) by the indices `order` (B, T)."""
    rows = torch.arange(order.shape[0], device=order.device)[:, None]
    return x.transpose(1, 2)[rows, order].transpose(1, 2)


def _prepare(
    query: Tensor, key: Tensor, value: Tensor, keep: Keep, bias: Tensor | None
) -> tuple[PreparedMask, Tensor, Tensor]:
    """Return the mask prepared for these lengths, and keys and values with zeros where no query may look."""
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
    def error(expected: str) -> ValueError:
        return ValueError(
            f"attention takes {expected}; got query {tuple(query.shape)}, key {tuple(key.shape)}, "
            f"value {tuple(value.shape)}"
        )

    if not query.dim() == key.dim() == value.dim() == 4:
        raise error("(B, heads, T, K) tensors")
    if query.shape[-1] != key.shape[-1] or key.shape[:3] != value.shape[:3] or query.shape[0] != key.shape[0]:
        raise error("one batch, one head width, and as many values as keys")
    if query.shape[1] % key.shape[1]:
        raise error("key/value heads that the query heads can share evenly")


class DotProduct(nn.Module):
    """`attend` as a module that hooks can observe: `weights` takes the inputs of `forward`."""

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
        """Return the attention weights of the selected heads, or of all: (B, H, Tq, Tk), before dropout."""
        if heads is not None:
            group = query.shape[1] // key.shape[1]
            query, key = query[:, list(heads)], key[:, [head // group for head in heads]]
            keep = keep.heads(list(heads))
        return attention_weights(query, key, keep=keep, scale=self.scale)

    def extra_repr(self) -> str:
        return f"scale={'1/√K' if self.scale is None else self.scale}, dropout={self.dropout}"
