"""Encoder and decoder: N layers, positions, a mask, and a norm where the layers leave one to do.

Shapes: B batch, T tokens, S source tokens, D d_model: (B, T, D) → (B, T, D).
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from .cache import Cache, FixedKVCache, KVCache
from .layers import DecoderLayer
from .mask_preparation import beams, newest, prepare_mask, zero_padding
from .masks import Grid, Mask, Padded, as_padding, can_read, causal, everything
from .positions import LayerPositions, Positions


class Stack(nn.Module):
    """What encoder and decoder share: the way in, and the parts.

    `mask` and `positions` are one for all layers, or a sequence with one for each (a window in every second layer, or
    rotary positions in some). Each layer's mask is joined with the padding; layers that share one share its tensors.
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
        mask: Mask | Sequence[Mask] | None = None,
        positions: Positions | Sequence[Positions] | None = None,
        entry: nn.Module | None = None,
        norm: nn.Module | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        layers = list(layers)
        for name, values in (("mask", mask), ("positions", positions)):
            if isinstance(values, Sequence) and len(values) != len(layers):
                raise ValueError(f"{name} has {len(values)} entries for {len(layers)} layers; give one, or one each")
        self.masks = tuple(mask) if isinstance(mask, Sequence) else (self.default_mask if mask is None else mask,)
        if not all(isinstance(mask, Mask) for mask in self.masks):
            raise TypeError(f"a stack's mask is made by causal(), window() or everything(); got {self.masks}")
        self.positions = LayerPositions(positions) if isinstance(positions, Sequence) else positions or Positions()
        self.entry = nn.Identity() if entry is None else entry
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(layers)
        self.norm = nn.Identity() if norm is None else norm

    @property
    def mask(self) -> Mask:
        """The one mask of all layers. A stack whose layers have a mask each refuses: ask `masks`."""
        if len({mask.parts for mask in self.masks}) > 1:
            raise ValueError("the layers of this stack have different masks: ask masks")
        return self.masks[0]

    @mask.setter
    def mask(self, mask: Mask) -> None:
        self.masks = (mask,)

    def run(
        self,
        x: Tensor,
        *,
        keep: Padded,
        positions: Tensor | None,
        bias: Tensor | None = None,
        cache: Cache | None = None,
        **memory: Any,
    ) -> Tensor:
        """Zero the padding, place the tokens and prepare the masks, once for all layers; then run them."""
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

        x = self.enter(x, None if real is None else newest(real, grid), grid)
        again = self.recompute and self.training and torch.is_grad_enabled()
        prepared = self._prepare(padding, grid, bias, x.dtype)
        for index, (layer, own) in enumerate(zip(self.layers, prepared, strict=True)):
            context = {**own, "cache": cache, "layer": index, **memory}
            x = checkpoint(layer, x, use_reentrant=False, **context) if again else layer(x, **context)
        if cache is not None:
            cache.advance(length, placed, padded=bool(padding.parts), given=positions is not None)
        return self.norm(x)

    def _prepare(self, padding: Mask, grid: Grid, bias: Tensor | None, dtype: torch.dtype) -> list[dict[str, Any]]:
        """What each layer is told of its mask and its positions, computed once for all layers that share them."""
        q_pos, k_pos = grid.queries_at, grid.keys_at
        rotations, biases, masks, contexts = {}, {}, {}, []
        for index in range(len(self.layers)):
            scheme, mask = self.positions.of_layer(index), self.masks[index % len(self.masks)]
            if scheme not in rotations:
                rotations[scheme] = scheme.rotation(q_pos, q_pos)  # keys in the cache were turned when they came in
                own = scheme.bias(q_pos, k_pos)
                biases[scheme] = own if bias is None else bias if own is None else own + bias
            shared = mask.parts, None if biases[scheme] is None else scheme  # the compiler cannot trace id(None)
            if shared not in masks:
                masks[shared] = prepare_mask(mask & padding, grid, bias=biases[scheme], dtype=dtype)
            contexts.append({"keep": masks[shared], "rotate": rotations[scheme]})
        return contexts

    def enter(self, x: Tensor, real: Tensor | None, grid: Grid) -> Tensor:
        """What the first layer is given, of new tokens of which some are `real` (B, T), or all."""
        return self.dropout(self.entry(self.positions.embed(zero_padding(x, real), grid.queries_at)))

    def _begin(self, cache: Cache, padding: Mask, positions: Tensor | None, length: int) -> tuple[int | Tensor, int]:
        """Where the first new token stands among the keys, and how many keys there will be."""
        if cache.padded and not padding.parts:
            raise ValueError("keep was given at an earlier step; give it at every step, for all keys, old and new")
        if cache.given and positions is None:
            raise ValueError("positions were given at an earlier step; give them at every step")
        if isinstance(cache.length, Tensor) and not all(mask.is_causal for mask in self.masks):
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

    def forward(
        self, x: Tensor, keep: Padded = None, *, positions: Tensor | None = None, bias: Tensor | None = None
    ) -> Tensor:
        """`keep` is (B, T), True = real, or padding(…); `bias`, added to the scores of every layer, (T, T) or wider."""
        return self.run(x, keep=keep, positions=positions, bias=bias)


class Decoder(Stack):
    """Every token sees itself and what came before. Layers are DecoderLayers, which read a memory, or EncoderLayers.

    With a cache, x holds only the new tokens, and `keep` covers all keys, old and new. `bias` is added to the scores
    of every self-attention: (Tq, Tk), (H, Tq, Tk) or (B, H, Tq, Tk).
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
        bias: Tensor | None = None,
    ) -> Tensor:
        reads = any(isinstance(layer, DecoderLayer) for layer in self.layers)
        if reads == (memory is None):
            raise ValueError("the layers of this decoder " + ("read a memory: give one" if reads else "read no memory"))
        if memory is None:
            return self.run(x, keep=keep, positions=positions, bias=bias, cache=cache)
        rows, source_length = memory.shape[:2]
        source = as_padding(memory_keep)
        grid = Grid(rows, beams(x, memory) * x.shape[1], source_length, 0, x.device)
        if cache is None or not cache.holds_memory:
            memory = zero_padding(memory, source.real_keys(grid))
        mask = prepare_mask(source, grid, dtype=x.dtype)
        return self.run(x, keep=keep, positions=positions, bias=bias, cache=cache, memory=memory, memory_keep=mask)

    def new_cache(self, capacity: int | None = None) -> Cache:
        """An empty cache: growing, or of a fixed capacity."""
        return KVCache() if capacity is None else FixedKVCache(capacity, device=next(self.parameters()).device)


def _given(positions: Tensor, grid: Grid) -> Tensor:
    shapes = (grid.n_queries,), (1, grid.n_queries), (grid.batch, grid.n_queries)
    whole = not positions.is_floating_point() and positions.dtype != torch.bool
    if not whole or tuple(positions.shape) not in shapes:
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
