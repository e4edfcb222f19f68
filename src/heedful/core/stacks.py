"""Encoder and decoder: N layers, positions, a mask, and the final norm that pre-norm layers need.

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
    """The base class of encoder and decoder.

    Args:
        layers: The layers, called in order.
        mask: One mask for all layers, or a sequence with one per layer. It is combined with the padding.
        positions: One position scheme for all layers, or a sequence with one per layer.
        entry: Applied to the embeddings: a norm (BERT, BART), or a norm and a projection (ALBERT).
        norm: The final norm, which pre-norm layers need.
        dropout: Applied to the sum of embeddings and positions, as in the paper.

    With `activation_checkpointing`, training stores only the input of each layer and reruns it in the backward pass.
    """

    default_mask = everything()
    activation_checkpointing = False

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
                raise ValueError(
                    f"{name} has {len(values)} entries for {len(layers)} layers; pass one, or one per layer"
                )
        self.masks = tuple(mask) if isinstance(mask, Sequence) else (self.default_mask if mask is None else mask,)
        if not all(isinstance(mask, Mask) for mask in self.masks):
            raise TypeError(f"a stack takes a mask from causal(), window() or everything(), not {self.masks}")
        self.positions = LayerPositions(positions) if isinstance(positions, Sequence) else positions or Positions()
        self.entry = nn.Identity() if entry is None else entry
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(layers)
        self.norm = nn.Identity() if norm is None else norm

    @property
    def mask(self) -> Mask:
        """The mask of all layers; an error if the layers have different masks, which `masks` returns."""
        if len({mask.parts for mask in self.masks}) > 1:
            raise ValueError("the layers of this stack have different masks; read `masks`")
        return self.masks[0]

    @mask.setter
    def mask(self, mask: Mask) -> None:
        self.masks = (mask,)

    def forward_layers(
        self,
        x: Tensor,
        *,
        keep: Padded,
        positions: Tensor | None,
        bias: Tensor | None = None,
        cache: Cache | None = None,
        **memory: Any,
    ) -> Tensor:
        """Zero the padding, compute positions and prepare the masks once for all layers; then run the layers."""
        if x.dim() != 3:
            raise ValueError(f"a stack takes vectors of shape (B, T, D), not {tuple(x.shape)}")
        batch, length, _ = x.shape
        padding = as_padding(keep)
        start, n_keys = (0, length) if cache is None else self._begin(cache, padding, positions, length)
        grid = Grid(batch, length, n_keys, start, x.device)
        real = padding.real_keys(grid)
        always = cache is not None and cache.has_positions
        new = (
            _count_real(padding, real, grid, always=always) if positions is None else _check_positions(positions, grid)
        )
        if new is None or not can_read(new):
            self._check_length(start, length)
        placed = new if cache is None else cache.key_positions(new)
        grid = replace(grid, query_positions=new, key_positions=placed)

        x = self.embed_positions(x, None if real is None else newest(real, grid), grid)
        again = self.activation_checkpointing and self.training and torch.is_grad_enabled()
        prepared = self._prepare(padding, grid, bias, x.dtype)
        for index, (layer, mask_and_rotation) in enumerate(zip(self.layers, prepared, strict=True)):
            context = {**mask_and_rotation, "cache": cache, "layer": index, **memory}
            x = checkpoint(layer, x, use_reentrant=False, **context) if again else layer(x, **context)
        if cache is not None:
            cache.advance(length, placed, needs_keep=bool(padding.parts), needs_positions=positions is not None)
        return self.norm(x)

    def _prepare(self, padding: Mask, grid: Grid, bias: Tensor | None, dtype: torch.dtype) -> list[dict[str, Any]]:
        """Return the mask and the rotation for each layer, computed once for layers that share them."""
        q_pos, k_pos = grid.queries_at, grid.keys_at
        rotations, biases, masks, contexts = {}, {}, {}, []
        for index in range(len(self.layers)):
            scheme, mask = self.positions.of_layer(index), self.masks[index % len(self.masks)]
            if scheme not in rotations:
                rotations[scheme] = scheme.rotation(q_pos, q_pos)  # keys in the cache are rotated already
                scheme_bias = scheme.bias(q_pos, k_pos)
                biases[scheme] = bias if scheme_bias is None else scheme_bias if bias is None else scheme_bias + bias
            shared = mask.parts, None if biases[scheme] is None else scheme  # the compiler cannot trace id(None)
            if shared not in masks:
                masks[shared] = prepare_mask(mask & padding, grid, bias=biases[scheme], dtype=dtype)
            contexts.append({"keep": masks[shared], "rotate": rotations[scheme]})
        return contexts

    def embed_positions(self, x: Tensor, real: Tensor | None, grid: Grid) -> Tensor:
        """Return the input of the first layer; `real` (B, T) marks the tokens that are not padding."""
        return self.dropout(self.entry(self.positions.embed(zero_padding(x, real), grid.queries_at)))

    def _begin(self, cache: Cache, padding: Mask, positions: Tensor | None, length: int) -> tuple[int | Tensor, int]:
        """Return the slot of the first new token, and the number of keys after this step."""
        if cache.needs_keep and not padding.parts:
            raise ValueError("keep was passed at an earlier step; pass it at every step, for all keys, old and new")
        if cache.needs_positions and positions is None:
            raise ValueError("positions were passed at an earlier step; pass them at every step")
        if isinstance(cache.length, Tensor) and not all(mask.is_causal for mask in self.masks):
            raise ValueError("a cache of fixed size needs a causal mask to hide unwritten slots; use KVCache")
        return cache.length, cache.begin(length)

    def _check_length(self, start: int | Tensor, length: int) -> None:
        limit = self.positions.limit
        if isinstance(start, int) and limit is not None and start + length > limit:
            raise ValueError(
                f"the input has {start + length} tokens, but this model's positions end at {limit}; "
                "shorten it, or build the model with a larger max_length"
            )


class Encoder(Stack):
    """A stack of EncoderLayers in which every token sees every real token."""

    def forward(
        self, x: Tensor, keep: Padded = None, *, positions: Tensor | None = None, bias: Tensor | None = None
    ) -> Tensor:
        """Encode x (B, T, D). `keep` is (B, T), True = real, or padding(…); `bias` is added to the scores."""
        return self.forward_layers(x, keep=keep, positions=positions, bias=bias)


class Decoder(Stack):
    """A stack in which every token sees itself and earlier tokens: DecoderLayers with a memory, or EncoderLayers.

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
            raise ValueError("the layers of this decoder " + ("need a memory; pass one" if reads else "take no memory"))
        if memory is None:
            return self.forward_layers(x, keep=keep, positions=positions, bias=bias, cache=cache)
        rows, source_length = memory.shape[:2]
        memory_padding = as_padding(memory_keep)
        grid = Grid(rows, beams(x, memory) * x.shape[1], source_length, 0, x.device)
        if cache is None or not cache.holds_memory:
            memory = zero_padding(memory, memory_padding.real_keys(grid))
        mask = prepare_mask(memory_padding, grid, dtype=x.dtype)
        source = {"memory": memory, "memory_keep": mask}
        return self.forward_layers(x, keep=keep, positions=positions, bias=bias, cache=cache, **source)

    def new_cache(self, capacity: int | None = None) -> Cache:
        """Return an empty cache: growing, or of a fixed capacity."""
        return KVCache() if capacity is None else FixedKVCache(capacity, device=next(self.parameters()).device)


def _check_positions(positions: Tensor, grid: Grid) -> Tensor:
    shapes = (grid.n_queries,), (1, grid.n_queries), (grid.batch, grid.n_queries)
    whole = not positions.is_floating_point() and positions.dtype != torch.bool
    if not whole or tuple(positions.shape) not in shapes:
        raise ValueError(
            f"positions are integers of shape ({grid.n_queries},) or ({grid.batch}, {grid.n_queries}), one for each "
            f"new token, not {positions.dtype} of shape {tuple(positions.shape)}"
        )
    return positions.long()


def _count_real(padding: Mask, real: Tensor | None, grid: Grid, *, always: bool) -> Tensor | None:
    """Return position ids that count real tokens, so that padding does not shift them.

    None if the positions are the slots and the cache holds no others.
    """
    if real is None or padding.only_at_the_end:
        return grid.query_slots if always else None
    return newest((real.cumsum(dim=1) - 1).clamp(min=0), grid)
