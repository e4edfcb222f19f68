"""Encoder and decoder: N layers, positions, a mask, and a norm where the layers leave one to do.

Shapes: B batch, T tokens, S source tokens, D d_model: (B, T, D) → (B, T, D).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from .binding import bind, newest, zero_padding
from .cache import Cache, KVCache
from .fixed_cache import FixedKVCache
from .host import can_read
from .layers import DecoderLayer
from .masks import Mask, Padded, as_padding, causal, everything
from .multihead import beams
from .positions import Positions
from .rules import Grid


class Stack(nn.Module):
    """What encoder and decoder share: the way in, and the parts.

    `norm` is the final one that pre-norm layers need; `entry` follows the embeddings: a norm (BERT, BART), or a norm
    and a matrix that widens them (ALBERT).
    The dropout is the paper's on the sum of embeddings and positions. With `recompute`, training keeps only what goes
    into each layer and runs it again for its gradient: a third more work, for memory that no longer grows with what a
    layer holds inside.
    """

    default_mask = everything()
    recompute = False

    def __init__(
        self,
        layers: Iterable[nn.Module],
        *,
        mask: Mask | None = None,
        positions: Positions | None = None,
        entry: nn.Module | None = None,
        norm: nn.Module | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.mask = self.default_mask if mask is None else mask
        self.positions = Positions() if positions is None else positions
        self.entry = nn.Identity() if entry is None else entry
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(layers)
        self.norm = nn.Identity() if norm is None else norm

    def run(
        self,
        x: Tensor,
        *,
        keep: Padded,
        positions: Tensor | None,
        cache: Cache | None = None,
        **memory: Any,
    ) -> Tensor:
        """Zero the padding, place the tokens and bind the mask, once for all layers; then run them."""
        if x.dim() != 3:
            raise ValueError(f"a stack takes vectors of shape (B, T, D), not {tuple(x.shape)}")
        batch, length, _ = x.shape
        padding = as_padding(keep)
        start, n_keys = (0, length) if cache is None else self._begin(cache, padding, positions, length)
        grid = Grid(batch, length, n_keys, start, x.device)
        real = padding.real_keys(grid)
        always = cache is not None and cache.placed
        new = _count_real(padding, real, grid, always=always) if positions is None else _given(positions, grid)
        if new is None or not can_read(new):
            self._check_length(start, length)
        placed = new if cache is None else cache.key_positions(new)
        grid = replace(grid, query_positions=new, key_positions=placed)
        q_pos, k_pos = grid.queries_at, grid.keys_at

        x = self.enter(x, None if real is None else newest(real, grid), grid)
        bound = bind(self.mask & padding, grid, bias=self.positions.bias(q_pos, k_pos), dtype=x.dtype)
        rotate = self.positions.rotation(q_pos, q_pos)  # keys in the cache were turned when they came in
        again = self.recompute and self.training and torch.is_grad_enabled()
        for index, layer in enumerate(self.layers):
            context = {"keep": bound, "rotate": rotate, "cache": cache, "layer": index, **memory}
            x = checkpoint(layer, x, use_reentrant=False, **context) if again else layer(x, **context)
        if cache is not None:
            cache.advance(length, placed, padded=bool(padding.parts), given=positions is not None)
        return self.norm(x)

    def enter(self, x: Tensor, real: Tensor | None, grid: Grid) -> Tensor:
        """What the first layer is given, of new tokens of which some are `real` (B, T), or all."""
        return self.dropout(self.entry(self.positions.embed(zero_padding(x, real), grid.queries_at)))

    def _begin(self, cache: Cache, padding: Mask, positions: Tensor | None, length: int) -> tuple[int | Tensor, int]:
        """Where the first new token stands among the keys, and how many keys there will be."""
        if cache.padded and not padding.parts:
            raise ValueError("keep was given at an earlier step; give it at every step, for all keys, old and new")
        if cache.given and positions is None:
            raise ValueError("positions were given at an earlier step; give them at every step")
        if isinstance(cache.length, Tensor) and not self.mask.is_causal:
            raise ValueError("only a causal mask hides what a cache of fixed size has not written yet; use KVCache")
        return cache.length, cache.begin(length)

    def _check_length(self, start: int | Tensor, length: int) -> None:
        limit = self.positions.limit
        if isinstance(start, int) and limit is not None and start + length > limit:
            raise ValueError(
                f"the input has {start + length} tokens, but this model's positions end at {limit}; "
                "shorten it, or build the model with a larger max_length"
            )


class Encoder(Stack):
    """Every token sees every real token. Layers are EncoderLayers."""

    def forward(self, x: Tensor, keep: Padded = None, *, positions: Tensor | None = None) -> Tensor:
        """`keep` is (B, T), True = real, or padding(…)."""
        return self.run(x, keep=keep, positions=positions)


class Decoder(Stack):
    """Every token sees itself and what came before. Layers are DecoderLayers, which read a memory, or EncoderLayers.

    With a cache, x holds only the new tokens, and `keep` covers all keys, old and new.
    """

    default_mask = causal()

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        *,
        keep: Padded = None,
        memory_keep: Padded = None,
        cache: Cache | None = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        reads = any(isinstance(layer, DecoderLayer) for layer in self.layers)
        if reads == (memory is None):
            raise ValueError("the layers of this decoder " + ("read a memory: give one" if reads else "read no memory"))
        if memory is None:
            return self.run(x, keep=keep, positions=positions, cache=cache)
        rows, source_length = memory.shape[:2]
        source = as_padding(memory_keep)
        grid = Grid(rows, beams(x, memory) * x.shape[1], source_length, 0, x.device)
        if cache is None or not cache.holds_memory:
            memory = zero_padding(memory, source.real_keys(grid))
        bound = bind(source, grid, dtype=x.dtype)
        return self.run(x, keep=keep, positions=positions, cache=cache, memory=memory, memory_keep=bound)

    def new_cache(self, capacity: int | None = None) -> Cache:
        """An empty cache: growing, or of a fixed capacity."""
        return KVCache() if capacity is None else FixedKVCache(capacity, device=next(self.parameters()).device)


def _given(positions: Tensor, grid: Grid) -> Tensor:
    if (
        positions.is_floating_point()
        or positions.dtype == torch.bool
        or tuple(positions.shape)
        not in (
            (grid.n_queries,),
            (1, grid.n_queries),
            (grid.batch, grid.n_queries),
        )
    ):
        raise ValueError(
            f"positions are integers of shape ({grid.n_queries},) or ({grid.batch}, {grid.n_queries}), one for each "
            f"new token, not {positions.dtype} of shape {tuple(positions.shape)}"
        )
    return positions.long()


def _count_real(padding: Mask, real: Tensor | None, grid: Grid, *, always: bool) -> Tensor | None:
    """Position ids: real tokens are counted, so that padding before them does not move them.

    None where they are the slots, unless a cache holds others already.
    """
    if real is None or padding.only_at_the_end:
        return grid.query_slots if always else None
    return newest((real.cumsum(dim=1) - 1).clamp(min=0), grid)
