"""What came before: recurrent encoder-decoders, with additive attention and with none.

The encoder reads both ways; the decoder is a GRU that starts from both directions joined. Without
attention a sentence is squeezed into that one vector; with it, every step looks over the whole source
(Bahdanau et al. 2015). They take the places of Encoder and Decoder in an EncoderDecoder.

Shapes: B batch, S source tokens, T target tokens, D d_model, M memory width (2 D), A attention width.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from .cache import check_memory_rows, same_batch, stacked
from .init import linear
from .mask_preparation import beams, newest, zero_padding
from .masks import Grid, Padded, as_padding

Prepared = tuple[Tensor, ...]  # what a reader (AdditiveAttention, NoAttention) makes of the memory, once per sentence


class AdditiveAttention(nn.Module):
    """Scores vᵀ tanh(W₁ s + W₂ h), softmax over the real source tokens, and the memory's mean under it."""

    def __init__(self, d_query: int, d_memory: int, d_attention: int) -> None:
        super().__init__()
        self.query = linear(d_query, d_attention)
        self.key = linear(d_memory, d_attention, bias=False)
        self.score = linear(d_attention, 1, bias=False)

    def prepare(self, memory: Tensor, real: Tensor | None) -> Prepared:
        """From the memory (B, S, M), what every step needs."""
        return memory, self.key(memory)

    def forward(self, query: Tensor, prepared: Prepared, real: Tensor | None) -> Tensor:
        """Queries (B, Tq, D) → contexts (B, Tq, M)."""
        return self.weights(query, prepared, real) @ prepared[0]

    def weights(self, query: Tensor, prepared: Prepared, real: Tensor | None) -> Tensor:
        """(B, Tq, S)."""
        keys = prepared[1][:, None]  # (B, 1, S, A)
        scores: Tensor = self.score(torch.tanh(self.query(query)[:, :, None] + keys)).squeeze(-1)  # (B, Tq, S)
        if real is None:
            return scores.softmax(dim=-1)
        seen = real[:, None]  # (B, 1, S)
        blind = ~seen.any(dim=-1, keepdim=True)
        return scores.masked_fill(~(seen | blind), -torch.inf).softmax(dim=-1).masked_fill(blind, 0.0)


class NoAttention(nn.Module):
    """Every step is given the same one vector: the last state of each direction."""

    def prepare(self, memory: Tensor, real: Tensor | None) -> Prepared:
        return (both_ends(memory, real)[:, None],)

    def forward(self, query: Tensor, prepared: Prepared, real: Tensor | None) -> Tensor:
        return prepared[0].expand(-1, query.shape[1], -1)

    def weights(self, query: Tensor, prepared: Prepared, real: Tensor | None) -> Tensor:
        raise ValueError("this recurrent model has no attention, so there are no weights to look at")


def both_ends(memory: Tensor, real: Tensor | None) -> Tensor:
    """The forward direction's state at the last real token, joined with the backward one's at the first: (B, M)."""
    batch, length, width = memory.shape
    forward, backward = memory.split(width // 2, dim=-1)
    if real is None:
        return torch.cat([forward[:, -1], backward[:, 0]], dim=-1)
    rows = torch.arange(batch, device=memory.device)
    first = real.int().argmax(dim=1)
    last = length - 1 - real.int().flip(1).argmax(dim=1)
    return torch.cat([forward[rows, last], backward[rows, first]], dim=-1)


class RecurrentEncoder(nn.Module):
    """GRUs that read forwards and backwards, each layer over both directions of the one below: (B, S, 2 D).

    Padding, wherever it stands, is moved behind the real tokens first, so no state ever passes through it.
    """

    def __init__(self, d_model: int, *, n_layers: int = 1, dropout: float = 0.0) -> None:
        super().__init__()
        widths = [d_model] + [2 * d_model] * (n_layers - 1)
        self.forwards = nn.ModuleList(nn.GRU(width, d_model, batch_first=True) for width in widths)
        self.backwards = nn.ModuleList(nn.GRU(width, d_model, batch_first=True) for width in widths)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, keep: Padded = None) -> Tensor:
        real = _real(keep, x)
        there, back = _reading_orders(x, real)
        x = zero_padding(x, real)
        for forwards, backwards in zip(self.forwards, self.backwards, strict=True):
            x = self.dropout(x)
            both = [_in_order(gru, x, order) for gru, order in ((forwards, there), (backwards, back))]
            x = zero_padding(torch.cat(both, dim=-1), real)
        return x


def _reading_orders(x: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
    """(B, S) the places to read, forwards and backwards, real tokens first in both."""
    batch, length, _ = x.shape
    steps = torch.arange(length, device=x.device).expand(batch, length)
    if real is None:
        return steps, steps.flip(1)
    there = torch.argsort(~real, dim=1, stable=True)
    n_real = real.sum(dim=1, keepdim=True)
    return there, there.gather(1, torch.where(steps < n_real, n_real - 1 - steps, steps))


def _in_order(gru: nn.Module, x: Tensor, order: Tensor) -> Tensor:
    out, _ = gru(torch.take_along_dim(x, order[..., None], dim=1))
    return torch.take_along_dim(out, order.argsort(dim=1)[..., None], dim=1)


class RecurrentState:
    """A recurrent decoder's cache: the state, and the memory as it was prepared. Filled by the first step."""

    def __init__(self) -> None:
        self.length = 0
        self.state: Tensor | None = None
        self.prepared: Prepared = ()

    def reorder(self, rows: Tensor) -> None:
        """Row i goes on from the state of row rows[i]. The memory stays."""
        self.state = None if self.state is None else self.state.index_select(0, rows)

    def select(self, rows: Tensor, memory_rows: Tensor | None = None) -> None:
        """Keep these rows only, and these of the memory (the same unless given)."""
        check_memory_rows(None if self.state is None else [self.state], self.prepared, memory_rows)
        self.reorder(rows)
        chosen = rows if memory_rows is None else memory_rows
        self.prepared = tuple(part.index_select(0, chosen) for part in self.prepared)

    def join(self, other: RecurrentState) -> None:
        """The rows of another state come after these, and its memory's after this one's."""
        if self.state is None or other.state is None:
            raise ValueError("only states that have finished a step can be joined")
        self.state = torch.cat([self.state, other.state])
        self.prepared = tuple(stacked(*pair, 1) for pair in zip(self.prepared, other.prepared, strict=True))
        self.length = max(self.length, other.length)

    def drop(self, n: int) -> None:
        """Forget the first n slots: there is nothing in them."""
        self.length -= n


@dataclass(frozen=True, eq=False)
class Walk:
    """What the decoder walks over: its inputs, its first state, and the memory with what is real in both."""

    x: Tensor
    state: Tensor
    prepared: Prepared
    real: Tensor | None  # (B, S)
    target_real: Tensor | None  # (B, T)


class RecurrentDecoder(nn.Module):
    """A GRU that reads the memory at every step, before it moves on: (B, T, D) → (B, T, D).

    It starts from both directions of the memory joined. Padding in x leaves the state as it is.
    """

    def __init__(
        self, d_model: int, d_memory: int, reader: AdditiveAttention | NoAttention, *, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.start = linear(d_memory, d_model)
        self.reader = reader
        self.cell = nn.GRUCell(d_model + d_memory, d_model)
        self.out = linear(2 * d_model + d_memory, d_model)
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
        """With a cache, x holds only the new tokens, and `keep` covers all of them, old and new."""
        if positions is not None:
            raise ValueError("a recurrent decoder counts its steps itself; positions cannot be given")
        walk = self._begin(self.dropout(x), memory, keep, memory_keep, cache)
        steps = list(self._steps(walk))
        states = torch.stack([after for _, after, _ in steps], dim=1)
        contexts = torch.stack([context for _, _, context in steps], dim=1)
        if cache is not None:
            cache.state, cache.prepared = states[:, -1], walk.prepared
            cache.length += x.shape[1]
        return self.dropout(torch.tanh(self.out(torch.cat([states, contexts, walk.x], dim=-1))))

    def weights(self, x: Tensor, memory: Tensor, *, heads: Sequence[int] | None = None, **inputs: Any) -> Tensor:
        """What each step of `forward` with the same inputs looks at: (B, 1, T, S). The cache stays as it is."""
        walk = self._begin(x, memory, *(inputs.get(name) for name in ("keep", "memory_keep", "cache")))
        queries = torch.stack([before for before, _, _ in self._steps(walk)], dim=1)
        folded = queries.reshape(walk.prepared[0].shape[0], -1, queries.shape[-1])
        weights = self.reader.weights(folded, walk.prepared, walk.real)
        return weights.reshape(x.shape[0], 1, x.shape[1], -1)

    def new_cache(self, capacity: int | None = None) -> RecurrentState:
        """An empty cache. It never grows, so a capacity changes nothing."""
        return RecurrentState()

    def _begin(
        self, x: Tensor, memory: Tensor, keep: Padded, memory_keep: Padded, cache: RecurrentState | None
    ) -> Walk:
        real, target_real = _real(memory_keep, memory), _real(keep, x, 0 if cache is None else cache.length)
        x = zero_padding(x, target_real)
        if cache is not None and cache.state is not None:
            same_batch(cache.state, x)
            return Walk(x, cache.state, cache.prepared, real, target_real)
        memory = zero_padding(memory, real)
        start = torch.tanh(self.start(both_ends(memory, real))).repeat_interleave(beams(x, memory), dim=0)
        return Walk(x, start, self.reader.prepare(memory, real), real, target_real)

    def _steps(self, walk: Walk) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """State before, state after and context of each token. Beams of a sentence share its memory's row."""
        x, state, rows = walk.x, walk.state, walk.prepared[0].shape[0]
        for t in range(x.shape[1]):
            queries = state.reshape(rows, -1, state.shape[-1])
            context = self.reader(queries, walk.prepared, walk.real).reshape(x.shape[0], -1)
            after = self.cell(torch.cat([x[:, t], context], dim=-1), state)
            if walk.target_real is not None:
                after = torch.where(walk.target_real[:, t, None], after, state)
            yield state, after, context
            state = after


def _real(keep: Padded, x: Tensor, past: int = 0) -> Tensor | None:
    """(B, T) which of the tokens that come in now are real; None for all."""
    batch, length, _ = x.shape
    if not length:
        raise ValueError("a recurrent model needs at least one token on either side")
    grid = Grid(batch, length, past + length, past, x.device)
    real = as_padding(keep).real_keys(grid)
    return None if real is None else newest(real, grid).expand(batch, length)
