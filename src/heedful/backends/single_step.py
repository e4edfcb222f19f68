"""One decoding step with few small operations: it computes what Decoder.forward does for one token per row.

A step through the modules handles any length, mask and part, which costs host time. Here the parts of every layer are
collected once, and a step runs only the operations that one new token per row needs.

Shapes: R rows, B sentences, W = R / B beams, H heads, G key/value heads, K head width, D d_model, V vocabulary.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .. import core
from ..core.attention import Rotate
from .description import Reason, joined_projection, only, stack_refusals, sublayers, within
from .registry import Implementation, register

Linear = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Step:
    """Values that all layers of one step share."""

    cache: core.Cache
    keep: Tensor | None  # (R, 1, 1, T) 0 or -inf, plus the position bias; None where every key is visible
    memory_keep: Tensor | None  # (B, 1, 1, S)
    rotate: Rotate | None


class SelfAttention:
    """Attention over the cache. One product, `qkv`, gives queries, keys and values; in cross-attention only queries."""

    def __init__(self, part: core.MultiHeadAttention, index: int, qkv: Linear) -> None:
        self._qkv, self._out, self._index = qkv, part.out_proj, index
        self._heads = part.n_heads, part.n_kv_heads, part.n_kv_heads
        self._width = part.d_head
        self._options: dict[str, Any] = {"scale": part.attention.scale, "enable_gqa": part.n_heads != part.n_kv_heads}

    def _mix(self, query: Tensor, key: Tensor, value: Tensor, keep: Tensor | None) -> Tensor:
        keep = keep if keep is None or keep.dtype == query.dtype else keep.to(query.dtype)
        return F.scaled_dot_product_attention(query, key, value, attn_mask=keep, **self._options)

    def __call__(self, x: Tensor, step: Step) -> Tensor:
        heads = self._qkv(x).view(x.shape[0], -1, 1, self._width)  # (R, H + 2 G, 1, K)
        query, key, value = heads.split(self._heads, dim=1)
        if step.rotate is not None:
            query, key = step.rotate(query, key)
        key, value = step.cache.append(self._index, key, value)
        return self._out(self._mix(query, key, value, step.keep).view(x.shape[0], -1))


class CrossAttention(SelfAttention):
    """Attention over the memory. The beams of a sentence are folded into the query's length."""

    def __call__(self, x: Tensor, step: Step) -> Tensor:
        key, value = step.cache.memory(self._index, _not_computed)
        query = self._qkv(x).view(key.shape[0], -1, self._heads[0], self._width).transpose(1, 2)  # (B, H, W, K)
        mixed = self._mix(query, key, value, step.memory_keep)
        return self._out(mixed.transpose(1, 2).reshape(x.shape[0], -1))


def _not_computed() -> tuple[Tensor, Tensor]:
    raise RuntimeError("the memory's keys and values must be in the cache: the model's first step computes them")


@register("single_step", core.EncoderDecoder, core.DecoderOnly)
class SingleStepDecoder(Implementation):
    """The embedding, decoder and head of a model, for single steps. `qkv` has each layer's joined projection."""

    @classmethod
    def refusals(cls, part: Any) -> Iterator[Reason]:
        yield from only(part, core.EncoderDecoder, core.DecoderOnly)
        yield from within("decoder", stack_refusals(part.decoder, core.Decoder))

    def __init__(self, module: Any, qkv: Sequence[Linear]) -> None:
        self._embedding = module.target_embedding if hasattr(module, "target_embedding") else module.embedding
        self._stack, self._head = module.decoder, module.head
        self._parts: list[tuple[bool, nn.Module, Callable[..., Tensor], bool]] = []
        for index, (layer, joined) in enumerate(zip(module.decoder.layers, qkv, strict=True)):
            for name, norm_first, norm, part in sublayers(layer):
                if name == "self_attention":
                    part = SelfAttention(part, index, joined)
                elif name == "cross_attention":
                    part = CrossAttention(part, index, part.q_proj)
                self._parts.append((norm_first, norm, part, name != "feed_forward"))

    @staticmethod
    def joined_projections(module: Any) -> list[nn.Linear]:
        """Return each layer's projections to queries, keys and values as one linear map, for a supported model."""
        return [_linear(*joined_projection(sublayers(layer)[0].module)) for layer in module.decoder.layers]

    def step(self, tokens: Tensor, cache: core.Cache, real: Tensor | None, memory_keep: Tensor | None) -> Tensor:
        """Decode a new token for each row (R,). Return logits (R, V).

        `real` (R, T) says which keys are real, the new ones included; None means all.
        """
        x, _ = self._embedding(tokens[:, None])  # (R, 1, D)
        n_keys = cache.begin(1)
        device = x.device
        here = torch.full((1,), n_keys - 1, device=device) if real is None else real.sum(dim=1, keepdim=True) - 1
        placed = None if real is None else cache.key_positions(here)
        positions = self._stack.positions
        x = self._stack.entry(positions.embed(x, here))[:, 0]
        bias = positions.bias(here, torch.arange(n_keys, device=device) if placed is None else placed)
        step = Step(cache, _additive_mask(bias, real), memory_keep, positions.rotation(here, here))
        for norm_first, norm, part, is_attention in self._parts:
            args = (step,) if is_attention else ()
            x = x + part(norm(x), *args) if norm_first else norm(x + part(x, *args))
        cache.advance(1, placed, needs_keep=real is not None, needs_positions=False)
        logits: Tensor = self._head(self._stack.norm(x))
        return logits


def _additive_mask(bias: Tensor | None, real: Tensor | None) -> Tensor | None:
    """Combine the position bias with -inf on padding. The result broadcasts to (R, H, 1, T)."""
    if bias is not None and bias.dim() == 3:
        bias = bias[None]
    if real is None:
        return bias
    return torch.where(real[:, None, None], 0.0 if bias is None else bias, -torch.inf)


def _linear(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    joined = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, device="meta")
    joined.weight = nn.Parameter(weight, requires_grad=False)
    if bias is not None:
        joined.bias = nn.Parameter(bias, requires_grad=False)
    return joined


def indices(places: Iterable[int], device: torch.device) -> Tensor:
    """Copy indices to a tensor on the device, without waiting for the device."""
    return torch.tensor(list(places)).to(device, non_blocking=True)
