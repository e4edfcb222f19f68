"""Encoder and decoder: N layers, positions, a mask, and a norm where the layers leave one to do.

Shapes: B batch, T tokens, S source tokens, D d_model: (B, T, D) → (B, T, D).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from .attention import beams
from .binding import bind, newest, zero_padding
from .cache import Cache
from .layers import DecoderLayer
from .masks import Grid, Mask, as_padding, causal, everything
from .positions import Positions


class Stack(nn.Module):
    """What encoder and decoder share: the way in, and the parts.

    `norm` is the final one that pre-norm layers need; `entry_norm` follows the embeddings (BERT, BART).
    The dropout is the paper's on the sum of embeddings and positions.
    """

    def __init__(
        self,
        layers: Iterable[nn.Module],
        *,
        mask: Mask,
        positions: Positions | None = None,
        entry_norm: nn.Module | None = None,
        norm: nn.Module | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.mask = mask
        self.positions = Positions() if positions is None else positions
        self.entry_norm = nn.Identity() if entry_norm is None else entry_norm
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(layers)
        self.norm = nn.Identity() if norm is None else norm

    def run(
        self,
        x: Tensor,
        *,
        keep: Mask | Tensor | None,
        positions: Tensor | None,
        cache: Cache | None = None,
        **memory: Any,
    ) -> Tensor:
        """Zero the padding, place the tokens and bind the mask, once for all layers; then run them."""
        batch, length, _ = x.shape
        start: int | Tensor = 0 if cache is None else cache.length
        n_keys = length if cache is None else cache.total(length)
        padding = as_padding(keep)
        grid = Grid(batch, length, n_keys, start, x.device)
        real = padding.real(grid)
        if cache is not None:
            _remember_padding(cache, padding, real)
        new = _count_real(padding, real, grid) if positions is None else _given(positions, grid)
        if new is None:
            self._check_length(start, length)
        placed = new if cache is None else cache.key_positions(new, length)
        grid = replace(grid, query_positions=new, key_positions=placed)
        q_pos = grid.query_slots if new is None else new
        k_pos = grid.key_slots if placed is None else placed

        x = zero_padding(x, None if real is None else newest(real, grid))
        x = self.dropout(self.entry_norm(self.positions.embed(x, q_pos)))
        bound = bind(self.mask & padding, grid, bias=self.positions.bias(q_pos, k_pos), dtype=x.dtype)
        rotate = self.positions.rotation(q_pos, q_pos)  # keys in the cache were turned when they came in
        for index, layer in enumerate(self.layers):
            x = layer(x, keep=bound, rotate=rotate, cache=cache, layer=index, **memory)
        if cache is not None:
            cache.advance(length, placed)
        return self.norm(x)

    def _check_length(self, start: int | Tensor, length: int) -> None:
        limit = self.positions.limit
        if isinstance(start, int) and limit is not None and start + length > limit:
            raise ValueError(
                f"the input has {start + length} tokens, but this model's positions end at {limit}; "
                "shorten it, or build the model with a larger max_length"
            )


class Encoder(Stack):
    """Every token sees every real token. Layers are EncoderLayers."""

    def __init__(self, layers: Iterable[nn.Module], *, mask: Mask | None = None, **parts: Any) -> None:
        super().__init__(layers, mask=everything() if mask is None else mask, **parts)

    def forward(self, x: Tensor, keep: Mask | Tensor | None = None, *, positions: Tensor | None = None) -> Tensor:
        """`keep` is (B, T), True = real, or padding(…)."""
        return self.run(x, keep=keep, positions=positions)


class Decoder(Stack):
    """Every token sees itself and what came before. Layers are DecoderLayers, which read a memory, or EncoderLayers.

    With a cache, x holds only the new tokens, and `keep` covers all keys, old and new.
    """

    def __init__(self, layers: Iterable[nn.Module], *, mask: Mask | None = None, **parts: Any) -> None:
        super().__init__(layers, mask=causal() if mask is None else mask, **parts)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        *,
        keep: Mask | Tensor | None = None,
        memory_keep: Mask | Tensor | None = None,
        cache: Cache | None = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        if memory is None:
            if any(isinstance(layer, DecoderLayer) for layer in self.layers):
                raise ValueError("the layers of this decoder read a memory, and none was given")
            return self.run(x, keep=keep, positions=positions, cache=cache)
        rows, source_length = memory.shape[:2]
        source = as_padding(memory_keep)
        grid = Grid(rows, beams(x, memory) * x.shape[1], source_length, 0, x.device)
        if cache is None or not cache.holds_memory:
            memory = zero_padding(memory, source.real(grid))
        bound = bind(source, grid, dtype=x.dtype)
        return self.run(x, keep=keep, positions=positions, cache=cache, memory=memory, memory_keep=bound)


def _remember_padding(cache: Cache, padding: Mask, real: Tensor | None) -> None:
    if cache.padded and not padding.parts:
        raise ValueError("the cache holds padding; give keep for all keys, old and new, at every step")
    cache.padded = cache.padded or real is not None


def _given(positions: Tensor, grid: Grid) -> Tensor:
    if positions.is_floating_point() or tuple(positions.shape) not in (
        (grid.n_queries,),
        (1, grid.n_queries),
        (grid.batch, grid.n_queries),
    ):
        raise ValueError(
            f"positions are integers of shape ({grid.n_queries},) or ({grid.batch}, {grid.n_queries}), one for each "
            f"new token, not {positions.dtype} of shape {tuple(positions.shape)}"
        )
    return positions


def _count_real(padding: Mask, real: Tensor | None, grid: Grid) -> Tensor | None:
    """Position ids: real tokens are counted, so that padding before them does not move them. None for the slots."""
    if real is None or padding.only_at_the_end:
        return None
    return newest((real.cumsum(dim=1) - 1).clamp(min=0), grid)
