"""Which models may take a quick way: those whose every part is exactly one that the way was written for.

A subclass may do anything, so types are compared and not inherited.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..core import (
    ACTIVATIONS,
    ALiBi,
    Decoder,
    DecoderLayer,
    DecoderOnly,
    DotProduct,
    Encoder,
    EncoderDecoder,
    EncoderLayer,
    FeedForward,
    GatedFeedForward,
    LayerNorm,
    LayerPositions,
    Learned,
    MultiHeadAttention,
    Positions,
    PostNorm,
    PreNorm,
    Relative,
    RMSNorm,
    Rotary,
    Sinusoidal,
    TokenEmbedding,
    VocabularyHead,
)
from ..core.masks import Causal

ACTIVATION_KINDS = {"relu": 0, "gelu": 1, "gelu_tanh": 2, "silu": 3}  # as layers.c numbers them


def takes_apart(module: Any) -> bool:
    """Whether the decoder's step can be run part by part (lean.py)."""
    return (
        type(module) in (EncoderDecoder, DecoderOnly)
        and type(module.decoder) is Decoder
        and _is_plain(module.decoder)
        and all(_layer(layer) for layer in module.decoder.layers)
    )


def runs_natively(module: Any) -> bool:
    """Whether layers.c knows all of it, in float32 on the CPU."""
    if not takes_apart(module) or any(not _is_float32(tensor) for tensor in module.parameters()):
        return False
    reads = type(module) is EncoderDecoder
    embeddings = [module.source_embedding, module.target_embedding] if reads else [module.embedding]
    stacks = [module.decoder, module.encoder] if reads else [module.decoder]
    return (
        all(_embeds(embedding) for embedding in embeddings)
        and type(module.head) is VocabularyHead
        and type(module.head.transform) is nn.Identity
        and (not reads or (type(module.encoder) is Encoder and _is_plain(module.encoder)))
        and all(_same_layers(stack) for stack in stacks)
    )


def _is_float32(tensor: Tensor) -> bool:
    return tensor.dtype == torch.float32 and tensor.device.type == "cpu"


def _embeds(embedding: Any) -> bool:
    """A table and nothing else."""
    return type(embedding) is TokenEmbedding and embedding.segments is None


def _is_plain(stack: Any) -> bool:
    """The mask is the usual one, and positions do one of the things that are known."""
    if len(stack.masks) > 1 or type(stack.positions) is LayerPositions:
        return False  # the quick ways have one mask and one scheme of positions for all layers
    rules = [type(part) for part in stack.mask.parts]
    return rules == ([Causal] if type(stack) is Decoder else []) and bool(len(stack.layers))


def _layer(layer: Any) -> bool:
    if type(layer) not in (EncoderLayer, DecoderLayer):
        return False
    *attentions, last = layer.children()
    return (
        len({type(wrap) for wrap in (*attentions, last)}) == 1
        and type(last) in (PreNorm, PostNorm)
        and all(_attention(wrap.part) for wrap in attentions)
        and type(last.part) in (FeedForward, GatedFeedForward)
    )


def _attention(part: Any) -> bool:
    if type(part) is not MultiHeadAttention or type(part.attention) is not DotProduct or part.normalizes:
        return False
    maps = part.query, part.key_value, part.out
    return _linear(*maps) and (part.query.bias is None) == (part.key_value.bias is None)


def _linear(*maps: nn.Module) -> bool:
    return all(type(linear) is nn.Linear for linear in maps)


def _same_layers(stack: Any) -> bool:
    """Layers that differ in their weights alone, so that what they share is said once."""
    layers: Sequence[Any] = list(stack.layers)
    ends = stack.entry, stack.norm
    return (
        all(_layer(layer) and _norms(layer) and _feed_forward(layer.feed_forward.part) for layer in layers)
        and all(type(norm) in (nn.Identity, LayerNorm, RMSNorm) for norm in ends)
        and len({_like(layer) for layer in layers}) == 1
        and len(_heads(layers[0])) == 1
        and _positions(stack.positions, layers[0].attention.part)
    )


def _norms(layer: Any) -> bool:
    return all(type(wrap.norm) in (LayerNorm, RMSNorm) for wrap in layer.children())


def _feed_forward(part: Any) -> bool:
    wide = part.gate_up if type(part) is GatedFeedForward else part.wide
    return _linear(wide, part.narrow) and activation_kind(part) is not None


def _like(layer: Any) -> tuple[object, ...]:
    *attentions, last = [wrap.part for wrap in layer.children()]
    scales = [part.attention.scale for part in attentions]
    return type(layer), type(layer.attention), *_heads(layer), *scales, type(last), activation_kind(last)


def _heads(layer: Any) -> set[tuple[int, ...]]:
    """How many and how wide, of both attentions."""
    attentions = [wrap.part for wrap in layer.children()][:-1]
    return {(part.n_heads, part.n_kv_heads, part.d_head) for part in attentions}


def _positions(positions: Any, attention: MultiHeadAttention) -> bool:
    kind = type(positions)
    if kind is Relative:
        return bool(positions.weight.shape[1] == attention.n_heads)
    if kind is ALiBi:
        return bool(positions.n_heads == attention.n_heads)
    if kind is Rotary:
        return bool(positions.d_head == attention.d_head)
    return kind in (Positions, Sinusoidal, Learned)


def activation_kind(part: Any) -> int | None:
    """The number layers.c has for a feed-forward's activation; None where it has none."""
    kinds = (kind for name, kind in ACTIVATION_KINDS.items() if part.activation is ACTIVATIONS[name])
    return next(kinds, None)
