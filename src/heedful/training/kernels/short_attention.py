"""Attention over short rows on a GPU: a program holds all queries and keys of a head, so nothing is read twice.

Kernels for long rows cut them into tiles that a sentence does not fill, and in the gradient add up pieces that are
none here. `core/attention.py` says what is computed. Shapes: B batch, H heads, G key/value heads, Tq queries, Tk keys,
K head width.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from . import block_of

LEAST = 16  # that the matrix units take
# One kernel for all values of these: each kind of them would take half a second to compile.
FREE = (
    *("n_heads", "group", "n_queries", "n_keys", "width", "causal"),
    *("m_row", "m_head", "m_query", "m_key", "d_row", "d_query"),
)


@triton.jit
def _head(x, row, head, by_row, by_head, by_token, n_tokens, width, side: tl.constexpr, wide: tl.constexpr):
    """Pointers to a head's tokens, and which of them are there."""
    tokens, lanes = tl.arange(0, side), tl.arange(0, wide)
    at = x + row * by_row + head * by_head
    return at + tokens[:, None] * by_token + lanes[None, :], (tokens < n_tokens)[:, None] & (lanes < width)[None, :]


@triton.jit
def _shares(query, key, mask, m_query, m_key, n_queries, n_keys, scale, causal, side: tl.constexpr):
    """softmax(q kᵀ · scale + mask): (side, side), zero beyond the last key."""
    rows, columns = tl.arange(0, side)[:, None], tl.arange(0, side)[None, :]
    scores = tl.dot(query, tl.trans(key)) * scale
    inside = (rows < n_queries) & (columns < n_keys)
    scores += tl.load(mask + rows * m_query + columns * m_key, mask=inside, other=0.0).to(tl.float32)
    seen = (columns < n_keys) & ((columns <= rows) | (causal == 0))
    scores = tl.where(seen, scores, float("-inf"))
    parts = tl.exp(scores - tl.max(scores, 1)[:, None])
    return parts / tl.sum(parts, 1)[:, None]


@triton.jit(do_not_specialize=FREE)
def _attention_forward(
    q, k, v, out, mask, dead, scale, n_heads, group, n_queries, n_keys, width, causal,
    q_row, q_head, q_token, k_row, k_head, k_token, v_row, v_head, v_token, o_row, o_head, o_token,
    m_row, m_head, m_query, m_key, d_row, d_query,
    side: tl.constexpr, wide: tl.constexpr,
):  # fmt: skip
    row, head = (tl.program_id(0) // n_heads).to(tl.int64), tl.program_id(0) % n_heads
    at, there = _head(q, row, head, q_row, q_head, q_token, n_queries, width, side, wide)
    query = tl.load(at, mask=there, other=0.0)
    at, there = _head(k, row, head // group, k_row, k_head, k_token, n_keys, width, side, wide)
    key = tl.load(at, mask=there, other=0.0)
    at, there = _head(v, row, head // group, v_row, v_head, v_token, n_keys, width, side, wide)
    value = tl.load(at, mask=there, other=0.0)
    own = mask + row * m_row + head * m_head
    shares = _shares(query, key, own, m_query, m_key, n_queries, n_keys, scale, causal, side)
    mixed = tl.dot(shares.to(value.dtype), value)
    tokens = tl.arange(0, side)
    blind = tl.load(dead + row * d_row + tokens * d_query, mask=tokens < n_queries, other=0)
    mixed = tl.where(blind[:, None] != 0, 0.0, mixed)
    at, there = _head(out, row, head, o_row, o_head, o_token, n_queries, width, side, wide)
    tl.store(at, mixed.to(out.dtype.element_ty), mask=there)


@triton.jit(do_not_specialize=FREE)
def _attention_backward(
    q, k, v, slope, by_q, by_k, by_v, mask, dead, scale, n_heads, group, n_queries, n_keys, width, causal,
    q_row, q_head, q_token, k_row, k_head, k_token, v_row, v_head, v_token, s_row, s_head, s_token,
    gq_row, gq_head, gq_token, gk_row, gk_head, gk_token,
    m_row, m_head, m_query, m_key, d_row, d_query,
    side: tl.constexpr, wide: tl.constexpr,
):  # fmt: skip
    shared = n_heads // group
    row, kept = (tl.program_id(0) // shared).to(tl.int64), tl.program_id(0) % shared
    at, there = _head(k, row, kept, k_row, k_head, k_token, n_keys, width, side, wide)
    key = tl.load(at, mask=there, other=0.0)
    at, there = _head(v, row, kept, v_row, v_head, v_token, n_keys, width, side, wide)
    value = tl.load(at, mask=there, other=0.0)
    tokens = tl.arange(0, side)
    blind = tl.load(dead + row * d_row + tokens * d_query, mask=tokens < n_queries, other=0)
    for_key, for_value = tl.zeros((side, wide), tl.float32), tl.zeros((side, wide), tl.float32)
    for head in range(kept * group, kept * group + group):
        place, inside = _head(q, row, head, q_row, q_head, q_token, n_queries, width, side, wide)
        query = tl.load(place, mask=inside, other=0.0)
        place, inside = _head(slope, row, head, s_row, s_head, s_token, n_queries, width, side, wide)
        given = tl.load(place, mask=inside & (blind[:, None] == 0), other=0.0)
        own = mask + row * m_row + head * m_head
        shares = _shares(query, key, own, m_query, m_key, n_queries, n_keys, scale, causal, side)
        for_value += tl.dot(tl.trans(shares.to(given.dtype)), given)
        by_share = tl.dot(given, tl.trans(value))
        by_score = (shares * (by_share - tl.sum(shares * by_share, 1)[:, None]) * scale).to(key.dtype)
        place, inside = _head(by_q, row, head, gq_row, gq_head, gq_token, n_queries, width, side, wide)
        tl.store(place, tl.dot(by_score, key).to(by_q.dtype.element_ty), mask=inside)
        for_key += tl.dot(tl.trans(by_score), query)
    at, there = _head(by_k, row, kept, gk_row, gk_head, gk_token, n_keys, width, side, wide)
    tl.store(at, for_key.to(by_k.dtype.element_ty), mask=there)
    at, there = _head(by_v, row, kept, gk_row, gk_head, gk_token, n_keys, width, side, wide)
    tl.store(at, for_value.to(by_v.dtype.element_ty), mask=there)


class ShortAttention(torch.autograd.Function):
    """softmax(q kᵀ · scale + mask) v: (B, H, Tq, K), zero where a query is dead. The mask broadcasts to
    (B, H, Tq, Tk), dead to (B, 1, Tq, 1); neither has a gradient."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor, dead: Tensor, causal: bool, scale: float
    ) -> Tensor:
        query, key, value = (part if part.stride(3) == 1 else part.contiguous() for part in (query, key, value))
        out = _by_token(query)
        ctx.save_for_backward(query, key, value, mask, dead)
        ctx.causal, ctx.scale = causal, scale
        rest, tile = _sizes(query, key, causal), _tile(query, key)
        if out.numel():
            _attention_forward[(query.shape[0] * query.shape[1],)](
                query, key, value, out, mask, dead, scale, *rest,
                *(size for part in (query, key, value, out) for size in part.stride()[:3]),
                *_strides(query, key, mask, dead), **tile,
            )  # fmt: skip
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, mask, dead = ctx.saved_tensors
        slope = slopes[0] if slopes[0].stride(3) == 1 else slopes[0].contiguous()
        by_query, by_key, by_value = _by_token(query), _by_token(key), _by_token(key)
        rest, tile = _sizes(query, key, ctx.causal), _tile(query, key)
        parts = query, key, value, slope, by_query, by_key
        if query.shape[0]:
            _attention_backward[(query.shape[0] * key.shape[1],)](
                query, key, value, slope, by_query, by_key, by_value, mask, dead, ctx.scale, *rest,
                *(size for part in parts for size in part.stride()[:3]), *_strides(query, key, mask, dead), **tile,
            )  # fmt: skip
        return by_query, by_key, by_value, None, None, None, None


def _by_token(x: Tensor) -> Tensor:
    """As (B, T, heads, K) in memory, so that what comes before and after needs no copy."""
    rows, heads, tokens, width = x.shape
    return x.new_empty(rows, tokens, heads, width).transpose(1, 2)


def _sizes(query: Tensor, key: Tensor, causal: bool) -> tuple[int, ...]:
    (_, n_heads, n_queries, width), (n_shared, n_keys) = query.shape, key.shape[1:3]
    return n_heads, n_heads // n_shared, n_queries, n_keys, width, int(causal)


def _strides(query: Tensor, key: Tensor, mask: Tensor, dead: Tensor) -> tuple[int, ...]:
    rows, heads, n_queries, _ = query.shape
    spread, blind = mask.expand(rows, heads, n_queries, key.shape[2]), dead.expand(rows, 1, n_queries, 1)
    return (*spread.stride(), blind.stride(0), blind.stride(2))


def _tile(query: Tensor, key: Tensor) -> dict[str, int]:
    """A square of one of two sizes: a third would take longer to compile than it saves."""
    side = 32 if max(query.shape[2], key.shape[2]) <= 32 else 64
    width = query.shape[3]
    return {"side": side, "wide": max(LEAST, block_of(width, width)), "num_warps": side // 16}
