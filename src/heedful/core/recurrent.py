"""Recurrent encoder-decoders, the predecessors of the Transformer, with additive attention or without attention.

The encoder is a bidirectional GRU; the decoder is a GRU whose initial state comes from both directions. Without
attention, the decoder reads the source from this one vector; with it, every step attends to the whole source
(Bahdanau et al. 2015). They replace Encoder and Decoder in an EncoderDecoder.

Shapes: B batch, S source tokens, T target tokens, D d_model, M memory width (2 D), A attention width.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from .cache import check_memory_rows, check_same_batch, concat_rows
from .init import linear
from .mask_preparation import beams, newest, zero_padding
from .masks import Grid, Padded, as_padding

Prepared = tuple[Tensor, ...]  # what AdditiveAttention and NoAttention compute from the memory, once per sentence


class AdditiveAttention(nn.Module):
    """Scores vᵀ tanh(W₁ s + W₂ h), a softmax over the real source tokens, and the weighted sum of the memory."""

    def __init__(self, d_query: int, d_memory: int, d_attention: int) -> None:
        super().__init__()
        self.q_proj = linear(d_query, d_attention)
        self.k_proj = linear(d_memory, d_attention, bias=False)
        self.score = linear(d_attention, 1, bias=False)

    def prepare(self, memory: Tensor, real: Tensor | None) -> Prepared:
        """Compute from the memory (B, S, M) what every step needs."""
        return memory, self.k_proj(memory)

    def forward(self, query: Tensor, prepared: Prepared, real: Tensor | None) -> Tensor:
        """Return the contexts (B, Tq, M) of queries (B, Tq, D)."""
        return self.weights(query, prepared, real) @ prepared[0]

    def weights(self, query: Tensor, prepared: Prepared, real: Tensor | None) -> Tensor:
        """Return the attention weights (B, Tq, S)."""
        keys = prepared[1][:, None]  # (B, 1, S, A)
        scores: Tensor = self.score(torch.tanh(self.q_proj(query)[:, :, None] + keys)).squeeze(-1)  # (B, Tq, S)
        if real is None:
            return scores.softmax(dim=-1)
        visible = real[:, None]  # (B, 1, S)
        empty = ~visible.any(dim=-1, keepdim=True)
        return scores.masked_fill(~(visible | empty), -torch.inf).softmax(dim=-1).masked_fill(empty, 0.0)


class NoAttention(nn.Module):
    """Takes the place of attention: every step receives the same vector, the final states of both directions."""

    def prepare(self, memory: Tensor, real: Tensor | None) -> Prepared:
        return (final_states(memory, real)[:, None],)

    def forward(self, query: Tensor, prepared: Prepared, real: Tensor | None) -> Tensor:
        return prepared[0].expand(-1, query.shape[1], -1)

    def weights(self, query: Tensor, prepared: Prepared, real: Tensor | None) -> Tensor:
        raise ValueError("this recurrent model has no attention, so it has no attention weights")


def final_states(memory: Tensor, real: Tensor | None) -> Tensor:
    """Concatenate the forward state at the last real token and the backward state at the first one: (B, M)."""
    batch, length, width = memory.shape
    forward, backward = memory.split(width // 2, dim=-1)
    if real is None:
        return torch.cat([forward[:, -1], backward[:, 0]], dim=-1)
    rows = torch.arange(batch, device=memory.device)
    first = real.int().argmax(dim=1)
    last = length - 1 - real.int().flip(1).argmax(dim=1)
    return torch.cat([forward[rows, last], backward[rows, first]], dim=-1)


class RecurrentEncoder(nn.Module):
    """Bidirectional GRU layers, each over both directions of the layer below: (B, S, 2 D).

    Padding, wherever it is, is moved behind the real tokens first, so no state passes through it.
    """

    def __init__(self, d_model: int, *, n_layers: int = 1, dropout: float = 0.0) -> None:
        super().__init__()
        widths = [d_model] + [2 * d_model] * (n_layers - 1)
        self.forwards = nn.ModuleList(nn.GRU(width, d_model, batch_first=True) for width in widths)
        self.backwards = nn.ModuleList(nn.GRU(width, d_model, batch_first=True) for width in widths)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, keep: Padded = None) -> Tensor:
        real = _real(keep, x)
        orders = _reading_orders(x, real)
        x = zero_padding(x, real)
        for directions in zip(self.forwards, self.backwards, strict=True):
            x = self.dropout(x)
            states = [_run_in_order(gru, x, order) for gru, order in zip(directions, orders, strict=True)]
            x = zero_padding(torch.cat(states, dim=-1), real)
        return x


def _reading_orders(x: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the orders (B, S) in which to read, forward and backward, with real tokens first in both."""
    batch, length, _ = x.shape
    steps = torch.arange(length, device=x.device).expand(batch, length)
    if real is None:
        return steps, steps.flip(1)
    forward = torch.argsort(~real, dim=1, stable=True)
    n_real = real.sum(dim=1, keepdim=True)
    return forward, forward.gather(1, torch.where(steps < n_real, n_real - 1 - steps, steps))


def _run_in_order(gru: nn.Module, x: Tensor, order: Tensor) -> Tensor:
    out, _ = gru(torch.take_along_dim(x, order[..., None], dim=1))
    return torch.take_along_dim(out, order.argsort(dim=1)[..., None], dim=1)


class RecurrentState:
    """The cache of a recurrent decoder: its state and the prepared memory. The first step fills it."""

    def __init__(self) -> None:
        self.length = 0
        self.state: Tensor | None = None
        self.prepared: Prepared = ()

    def reorder(self, rows: Tensor) -> None:
        """Replace the state of row i by that of row rows[i]. The memory stays as it is."""
        self.state = None if self.state is None else self.state.index_select(0, rows)

    def select(self, rows: Tensor, memory_rows: Tensor | None = None) -> None:
        """Keep only these rows, and these rows of the memory (by default the same)."""
        check_memory_rows(None if self.state is None else [self.state], self.prepared, memory_rows)
        self.reorder(rows)
        memory_rows = rows if memory_rows is None else memory_rows
        self.prepared = tuple(tensor.index_select(0, memory_rows) for tensor in self.prepared)

    def join(self, other: RecurrentState) -> None:
        """Append the rows of another state and of its memory."""
        if self.state is None or other.state is None:
            raise ValueError("only states that have finished a step can be joined")
        self.state = torch.cat([self.state, other.state])
        self.prepared = tuple(concat_rows(*pair, 1) for pair in zip(self.prepared, other.prepared, strict=True))
        self.length = max(self.length, other.length)

    def drop(self, n: int) -> None:
        """Remove the first n slots, which hold nothing in a recurrent state."""
        self.length -= n


@dataclass(frozen=True, eq=False)
class DecoderInputs:
    """The inputs of a recurrent decoder: tokens, initial state, prepared memory, and what is real in both."""

    x: Tensor
    state: Tensor
    prepared: Prepared
    real: Tensor | None  # (B, S)
    target_real: Tensor | None  # (B, T)


class RecurrentDecoder(nn.Module):
    """A GRU that attends to the memory at every step, before it updates its state: (B, T, D) → (B, T, D).

    Its initial state comes from the final states of both directions. Padding in x leaves the state unchanged.
    """

    def __init__(
        self, d_model: int, d_memory: int, attention: AdditiveAttention | NoAttention, *, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.start = linear(d_memory, d_model)
        self.attention = attention
        self.cell = nn.GRUCell(d_model + d_memory, d_model)
        self.out_proj = linear(2 * d_model + d_memory, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        *,
        keep: Padded = None,
        memory_keep: Padded = None,
        cache: RecurrentState | None = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        """Decode x (B, T, D). With a cache, x holds only the new tokens, and `keep` covers all, old and new."""
        if positions is not None:
            raise ValueError("a recurrent decoder takes no positions: it counts its steps itself")
        inputs = self._begin(self.dropout(x), memory, keep, memory_keep, cache)
        steps = list(self._steps(inputs))
        states = torch.stack([state for _, state, _ in steps], dim=1)
        contexts = torch.stack([context for _, _, context in steps], dim=1)
        if cache is not None:
            cache.state, cache.prepared = states[:, -1], inputs.prepared
            cache.length += x.shape[1]
        return self.dropout(torch.tanh(self.out_proj(torch.cat([states, contexts, inputs.x], dim=-1))))

    def weights(self, x: Tensor, memory: Tensor, *, heads: Sequence[int] | None = None, **context: Any) -> Tensor:
        """Return the attention weights of `forward` with the same inputs: (B, 1, T, S). The cache is not changed."""
        inputs = self._begin(x, memory, *(context.get(name) for name in ("keep", "memory_keep", "cache")))
        queries = torch.stack([before for before, _, _ in self._steps(inputs)], dim=1)
        folded = queries.reshape(inputs.prepared[0].shape[0], -1, queries.shape[-1])
        weights = self.attention.weights(folded, inputs.prepared, inputs.real)
        return weights.reshape(x.shape[0], 1, x.shape[1], -1)

    def new_cache(self, capacity: int | None = None) -> RecurrentState:
        """Return an empty cache. It has a fixed size, so `capacity` has no effect."""
        return RecurrentState()

    def _begin(
        self, x: Tensor, memory: Tensor, keep: Padded, memory_keep: Padded, cache: RecurrentState | None
    ) -> DecoderInputs:
        real, target_real = _real(memory_keep, memory), _real(keep, x, 0 if cache is None else cache.length)
        x = zero_padding(x, target_real)
        if cache is not None and cache.state is not None:
            check_same_batch(cache.state, x)
            return DecoderInputs(x, cache.state, cache.prepared, real, target_real)
        memory = zero_padding(memory, real)
        start = torch.tanh(self.start(final_states(memory, real))).repeat_interleave(beams(x, memory), dim=0)
        return DecoderInputs(x, start, self.attention.prepare(memory, real), real, target_real)

    def _steps(self, inputs: DecoderInputs) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Yield the state before, the state after and the context of each token. Beams share a row of the memory."""
        x, state, rows = inputs.x, inputs.state, inputs.prepared[0].shape[0]
        for t in range(x.shape[1]):
            queries = state.reshape(rows, -1, state.shape[-1])
            context = self.attention(queries, inputs.prepared, inputs.real).reshape(x.shape[0], -1)
            new_state = self.cell(torch.cat([x[:, t], context], dim=-1), state)
            if inputs.target_real is not None:
                new_state = torch.where(inputs.target_real[:, t, None], new_state, state)
            yield state, new_state, context
            state = new_state


def _real(keep: Padded, x: Tensor, past: int = 0) -> Tensor | None:
    """(B, T) which of the tokens that come in now are real; None for all."""
    batch, length, _ = x.shape
    if not length:
        raise ValueError("a recurrent model needs at least one token on either side")
    grid = Grid(batch, length, past + length, past, x.device)
    real = as_padding(keep).real_keys(grid)
    return None if real is None else newest(real, grid).expand(batch, length)
