"""Attention over short rows on a GPU: a tile holds all queries and keys of a head, so nothing is read twice.

Kernels for long rows use tiles that a sentence does not fill, and sum pieces of the gradient. Here a tile holds as many
rows as fit, each of which sees only itself. `core/attention.py` is the reference.
Shapes: B batch, H heads, G key/value heads, Tq queries, Tk keys, K head width.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from . import SIDES, block_of

LEAST = 16  # the smallest side of a matrix for the tensor cores
FORTH, BACK = {32: 2, 64: 4}, {32: 4, 64: 8}  # warps that share a tile, in each direction
# Triton does not specialize on these, since compiling takes half a second. It does on the width: if that is a multiple
# of 16, a thread reads several numbers at once.
FREE = (
    *("n_rows", "pack", "n_queries", "n_keys", "causal"),
    *("m_row", "m_head", "m_query", "m_key", "d_row", "d_query"),
)


@triton.jit
def _lines(first, n_rows, pack, n_tokens, side: tl.constexpr):
    """Return for each line of a tile its row in the tile, its token in the row, and whether it has one."""
    line = tl.arange(0, side)
    tile_row = line // n_tokens
    return tile_row, line % n_tokens, (tile_row < pack) & (first + tile_row < n_rows)


@triton.jit
def _head(x, head, row, token, there, by_row, by_token, by_head, width, wide: tl.constexpr):
    """Return pointers to the numbers of a head in a tile, and the mask of valid ones."""
    lanes = tl.arange(0, wide)
    at = x + row.to(tl.int64)[:, None] * by_row + token[:, None] * by_token + head * by_head + lanes[None, :]
    return at, there[:, None] & (lanes < width)[None, :]


@triton.jit
def _masked(
    mask, head, token, k_row, k_token, k_there, m_row, m_head, m_query, m_key, by_query: tl.constexpr
):  # fmt: skip
    """Load the mask of a tile; only that of its keys if it is the same for all queries."""
    at = mask + head * m_head + k_row.to(tl.int64) * m_row + k_token * m_key
    if by_query:
        bias = tl.load(at[None, :] + token[:, None] * m_query, mask=k_there[None, :], other=0.0)
    else:
        bias = tl.load(at, mask=k_there, other=0.0)[None, :]
    return bias.to(tl.float32)


@triton.jit
def _shares(scores, seen):
    """Return the softmax over visible keys (side, side); zeros in a line that sees none."""
    scores = tl.where(seen, scores, float("-inf"))
    top = tl.max(scores, 1)
    parts = tl.exp(scores - tl.where(top == float("-inf"), 0.0, top)[:, None])
    return parts / tl.maximum(tl.sum(parts, 1), 1e-30)[:, None]


@triton.jit(do_not_specialize=FREE)
def _attention_forward(
    q, k, v, out, mask, fully_masked, scale, n_rows, pack, n_queries, n_keys, width, causal,
    q_row, q_token, q_head, k_row, k_token, k_head, v_row, v_token, v_head, o_row, o_token, o_head,
    m_row, m_head, m_query, m_key, d_row, d_query,
    group: tl.constexpr, by_query: tl.constexpr, side: tl.constexpr, wide: tl.constexpr,
):  # fmt: skip
    first, head = tl.program_id(0) * pack, tl.program_id(1)
    tile_row, token, there = _lines(first, n_rows, pack, n_queries, side)
    k_tile_row, k_tokens, k_there = _lines(first, n_rows, pack, n_keys, side)
    row, k_rows = first + tile_row, first + k_tile_row
    at, inside = _head(q, head, row, token, there, q_row, q_token, q_head, width, wide)
    query = tl.load(at, mask=inside, other=0.0)
    at, inside = _head(k, head // group, k_rows, k_tokens, k_there, k_row, k_token, k_head, width, wide)
    key = tl.load(at, mask=inside, other=0.0)
    at, inside = _head(v, head // group, k_rows, k_tokens, k_there, v_row, v_token, v_head, width, wide)
    value = tl.load(at, mask=inside, other=0.0)
    seen = there[:, None] & k_there[None, :] & (tile_row[:, None] == k_tile_row[None, :])
    seen = seen & ((k_tokens[None, :] <= token[:, None]) | (causal == 0))
    scores = tl.dot(query, tl.trans(key)) * scale
    if mask is not None:
        scores += _masked(mask, head, token, k_rows, k_tokens, k_there, m_row, m_head, m_query, m_key, by_query)
    mixed = tl.dot(_shares(scores, seen).to(value.dtype), value)
    if fully_masked is not None:
        blind = tl.load(fully_masked + row * d_row + token * d_query, mask=there, other=0)
        mixed = tl.where(blind[:, None] != 0, 0.0, mixed)
    at, inside = _head(out, head, row, token, there, o_row, o_token, o_head, width, wide)
    tl.store(at, mixed.to(out.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=FREE)
def _attention_backward(
    q, k, v, slope, by_q, by_k, by_v, mask, fully_masked, scale, n_rows, pack, n_queries, n_keys, width, causal,
    q_row, q_token, q_head, k_row, k_token, k_head, v_row, v_token, v_head, s_row, s_token, s_head,
    gq_row, gq_token, gq_head, gk_row, gk_token, gk_head, gv_row, gv_token, gv_head,
    m_row, m_head, m_query, m_key, d_row, d_query,
    group: tl.constexpr, by_query: tl.constexpr, side: tl.constexpr, wide: tl.constexpr,
):  # fmt: skip
    first, kv_head = tl.program_id(0) * pack, tl.program_id(1)
    tile_row, token, there = _lines(first, n_rows, pack, n_queries, side)
    k_tile_row, k_tokens, k_there = _lines(first, n_rows, pack, n_keys, side)
    row, k_rows = first + tile_row, first + k_tile_row
    at, k_inside = _head(k, kv_head, k_rows, k_tokens, k_there, k_row, k_token, k_head, width, wide)
    key = tl.load(at, mask=k_inside, other=0.0)
    at, k_inside = _head(v, kv_head, k_rows, k_tokens, k_there, v_row, v_token, v_head, width, wide)
    value = tl.load(at, mask=k_inside, other=0.0)
    seen = there[:, None] & k_there[None, :] & (tile_row[:, None] == k_tile_row[None, :])
    seen = seen & ((k_tokens[None, :] <= token[:, None]) | (causal == 0))
    to_k, k_inside = _head(by_k, kv_head, k_rows, k_tokens, k_there, gk_row, gk_token, gk_head, width, wide)
    to_v, k_inside = _head(by_v, kv_head, k_rows, k_tokens, k_there, gv_row, gv_token, gv_head, width, wide)
    for_key, for_value = tl.zeros((side, wide), tl.float32), tl.zeros((side, wide), tl.float32)
    for turn in tl.static_range(group):  # queries that share a key: each has its part in the key's gradient
        head = kv_head * group + turn
        at, inside = _head(q, head, row, token, there, q_row, q_token, q_head, width, wide)
        query = tl.load(at, mask=inside, other=0.0)
        at, inside = _head(slope, head, row, token, there, s_row, s_token, s_head, width, wide)
        if fully_masked is not None:
            blind = tl.load(fully_masked + row * d_row + token * d_query, mask=there, other=0)
            inside = inside & (blind[:, None] == 0)
        grad_out = tl.load(at, mask=inside, other=0.0)
        scores = tl.dot(query, tl.trans(key)) * scale
        if mask is not None:
            scores += _masked(mask, head, token, k_rows, k_tokens, k_there, m_row, m_head, m_query, m_key, by_query)
        shares = _shares(scores, seen)
        for_value += tl.dot(tl.trans(shares.to(grad_out.dtype)), grad_out)
        if turn == group - 1:
            tl.store(to_v, for_value.to(by_v.dtype.element_ty), mask=k_inside)
        by_share = tl.dot(grad_out, tl.trans(value))
        by_score = (shares * (by_share - tl.sum(shares * by_share, 1)[:, None]) * scale).to(key.dtype)
        for_key += tl.dot(tl.trans(by_score), query)
        if turn == group - 1:
            tl.store(to_k, for_key.to(by_k.dtype.element_ty), mask=k_inside)
        at, inside = _head(by_q, head, row, token, there, gq_row, gq_token, gq_head, width, wide)
        tl.store(at, tl.dot(by_score, key).to(by_q.dtype.element_ty), mask=inside)


class VisibleKeys(NamedTuple):
    """The keys that a query sees. Neither tensor has a gradient."""

    mask: Tensor | None  # broadcasts to (B, H, Tq, Tk)
    fully_masked: Tensor | None  # broadcasts to (B, 1, Tq, 1): queries that see no key
    causal: bool
    scale: float


class ShortAttention(torch.autograd.Function):
    """softmax(q kᵀ · scale + mask) v: (B, Tq, H, K), zero for queries that see no key.

    H heads of queries, G of keys and G of values come in one, two or three tensors (B, T, heads, K), stacked in this
    order as the projections return them. So neither they nor their gradients are copied.
    """

    @staticmethod
    def forward(ctx: Any, seen: VisibleKeys, heads: tuple[int, int], *stacked: Tensor) -> Tensor:
        stacked = tuple(part if part.stride(3) == 1 else part.contiguous() for part in stacked)
        query, key, value = unstacked(stacked, heads)
        out = query.new_empty(query.shape)
        ctx.save_for_backward(*stacked)
        ctx.seen, ctx.heads = seen, heads
        if out.numel():
            _launch(_attention_forward, FORTH, heads[0], (query, key, value, out), seen)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        stacked = ctx.saved_tensors
        grad_out = slope if slope.stride(3) == 1 else slope.contiguous()
        by_stacked = [torch.empty_like(part, memory_format=torch.contiguous_format) for part in stacked]
        query, key, value = unstacked(stacked, ctx.heads)
        if not slope.numel():
            by_stacked = [part.zero_() for part in by_stacked]
        else:
            parts = query, key, value, grad_out, *unstacked(by_stacked, ctx.heads)
            _launch(_attention_backward, BACK, ctx.heads[1], parts, ctx.seen)
        return None, None, *by_stacked


def unstacked(stacked: Sequence[Tensor], heads: tuple[int, int]) -> list[Tensor]:
    """Split stacked tensors into queries, keys and values."""
    left, parts = [heads[0], heads[1], heads[1]], []
    for tensor in stacked:
        while tensor.shape[2]:
            parts.append(tensor[:, :, : left[0]])
            tensor = tensor[:, :, left.pop(0) :]
    return parts


def _launch(kernel: Any, warps: dict[int, int], n_heads: int, parts: Sequence[Tensor], seen: VisibleKeys) -> None:
    """Run a kernel with a program for every head of every tile."""
    (rows, n_queries, heads, width), (_, n_keys, shared, _) = parts[0].shape, parts[1].shape
    longest = max(n_queries, n_keys)
    side = SIDES[0] if longest <= SIDES[0] else SIDES[1]
    pack = side // longest
    mask = None if seen.mask is None else seen.mask.expand(rows, heads, n_queries, n_keys)
    fully_masked = None if seen.fully_masked is None else seen.fully_masked.expand(rows, 1, n_queries, 1)
    by_mask = (0, 0, 0, 0) if mask is None else mask.stride()
    by_masked = (0, 0, 0, 0) if fully_masked is None else fully_masked.stride()
    kernel[-(-rows // pack), n_heads](
        *parts, mask, fully_masked, seen.scale, rows, pack, n_queries, n_keys, width, int(seen.causal),
        *(size for part in parts for size in part.stride()[:3]), *by_mask, by_masked[0], by_masked[2],
        group=heads // shared, by_query=by_mask[2] != 0,
        side=side, wide=max(LEAST, block_of(width, width)), num_warps=warps[side],
    )  # fmt: skip
