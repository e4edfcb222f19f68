"""Parts of a module that compute the same in less time on a CPU.

Torch draws dropout's numbers one after another, and its fused attention is made for long rows; its matrix products in
float32 have a faster sibling. Only float32 and bf16 are quickened.
Shapes: B batch, H heads, Tq queries, Tk keys, K head width, N tokens.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..core import DecoderLayer, DotProduct, EncoderLayer, Mask, MultiHeadAttention, VocabularyHead
from ..core.mask_preparation import PreparedMask
from .packed import PackedDecoderLayer, PackedEncoderLayer, PackedMultiHeadAttention, packs
from .pending import PendingLogits
from .products import mapped

DTYPES = (torch.float32, torch.bfloat16)
FEW = 2**13  # numbers that torch draws as fast
SHORT = 128  # keys: above, the fused attention is faster
LEVELS = 2**16  # a draw has two bytes


def quicken_on_cpu(module: nn.Module) -> None:
    """Let a copy that only computes have them."""
    for part in [part for part in module.modules() if type(part) in (EncoderLayer, DecoderLayer) and packs(part)]:
        for inner in part.modules():
            inner.__class__ = PACKED.get(type(inner), type(inner))
    for part in module.modules():
        part.__class__ = QUICKER.get(type(part), type(part))


def _pays(*tensors: Tensor) -> bool:
    if torch.compiler.is_compiling() or not torch.is_grad_enabled():
        return False
    return all(tensor.device.type == "cpu" and tensor.dtype in DTYPES for tensor in tensors)


class QuickDropout(nn.Dropout):
    """A generator of numpy's draws, begun anew each time by a number from torch's, which alone has a state."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002  # torch's name
        dropped = round(self.p * LEVELS)
        if not (self.training and _pays(input)) or not 0 < dropped < LEVELS or input.numel() < FEW:
            return super().forward(input)
        generator = np.random.SFC64(int(torch.randint(2**63 - 1, ())))
        drawn = generator.random_raw(math.ceil(input.numel() / 4)).view(np.int16)[: input.numel()]
        factors = torch.empty_like(input, requires_grad=False, memory_format=torch.contiguous_format)
        torch.ge(torch.from_numpy(drawn).view(input.shape), dropped - LEVELS // 2, out=factors)
        return input * factors.mul_(LEVELS / (LEVELS - dropped))


class QuickDotProduct(DotProduct):
    """Over short rows, written out."""

    def forward(self, query: Tensor, key: Tensor, value: Tensor, keep: PreparedMask) -> Tensor:
        drops = self.training and self.dropout
        learned = keep.additive is not None and keep.additive.requires_grad
        grouped = query.shape[1] != key.shape[1]
        special = drops or learned or grouped or keep.unpad_index is not None or key.shape[2] > SHORT
        if special or not _pays(query, key, value):
            return super().forward(query, key, value, keep)
        keep.check(query, key)
        scale = 1 / math.sqrt(query.shape[-1]) if self.scale is None else self.scale
        mixed: Tensor = _Attended.apply(query, key, value, _additive(keep), scale)  # type: ignore[no-untyped-call]
        return mixed if keep.fully_masked is None else mixed.masked_fill(keep.fully_masked, 0.0)


def _additive(keep: PreparedMask) -> Tensor | None:
    if not keep.is_causal:
        return None if keep.additive is None else keep.additive.float()
    grid = keep.grid
    return torch.full((grid.n_queries, grid.n_keys), -torch.inf).triu_(1 + grid.n_keys - grid.n_queries)


class _Attended(torch.autograd.Function):
    """softmax(q kᵀ · scale + additive) v in float32, whatever it is given in."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, additive: Tensor | None, scale: float) -> Tensor:
        with torch.autocast("cpu", enabled=False):
            q, k, v = (_heads(part) for part in (query, key, value))  # (B·H, T, K)
            scores = torch.bmm(q, k.mT).mul_(scale)
            if additive is not None:
                scores.view(*query.shape[:3], -1).add_(additive)
            weights = scores.softmax(dim=-1)
            ctx.save_for_backward(q, k, v, weights)
            ctx.scale = scale
            return _tokens(torch.bmm(weights, v), query)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, weights = ctx.saved_tensors
        slope = _heads(slopes[0])
        by_value = torch.bmm(weights.mT, slope)
        by_scores = torch._softmax_backward_data(torch.bmm(slope, v.mT), weights, -1, weights.dtype).mul_(ctx.scale)
        by_query, by_key = torch.bmm(by_scores, k), torch.bmm(by_scores.mT, q)
        return *(_tokens(part, slopes[0]) for part in (by_query, by_key, by_value)), None, None


def _heads(x: Tensor) -> Tensor:
    """(B, H, T, K), whose memory is (B, T, H, K) → (B·H, T, K) in float32, in one copy."""
    return torch.empty(x.shape, dtype=torch.float32).copy_(x).flatten(0, 1)


def _tokens(x: Tensor, like: Tensor) -> Tensor:
    """The other way round."""
    batch, heads, _, width = like.shape
    out = torch.empty(batch, x.shape[1], heads, width, dtype=like.dtype).transpose(1, 2)
    return out.copy_(x.unflatten(0, (batch, heads)))


class QuickLinear(nn.Linear):
    """Where a product is by the weight, forward and to its input, oneDNN is faster than BLAS in float32."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002  # torch's name
        if not _pays(input, self.weight) or input.dtype != torch.float32 or torch.is_autocast_enabled("cpu"):
            return super().forward(input)
        x = input.reshape(-1, self.in_features)
        out: Tensor = _Mapped.apply(x, self.weight, self.bias)  # type: ignore[no-untyped-call]
        return out.view(*input.shape[:-1], self.out_features)


class _Mapped(torch.autograd.Function):
    """x (N, D) by a weight (E, D) and a bias (E)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return mapped(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        slope = slopes[0].contiguous()
        by_x = mapped(slope, weight.mT) if ctx.needs_input_grad[0] else None
        by_weight = slope.mT @ x if ctx.needs_input_grad[1] else None
        return by_x, by_weight, slope.sum(dim=0) if ctx.needs_input_grad[2] else None


class QuickVocabularyHead(VocabularyHead):
    """Its logits wait for the loss."""

    def forward(self, x: Tensor, keep: Mask | None = None) -> Tensor:
        if not _pays(x, self.weight) or x.dtype != self.weight.dtype or torch.is_autocast_enabled("cpu"):
            return super().forward(x, keep)
        x = self.transform(x)
        return PendingLogits(x if self.scale == 1.0 else x * self.scale, self.weight, self.bias)


QUICKER: dict[type, type] = {
    nn.Dropout: QuickDropout,
    nn.Linear: QuickLinear,
    DotProduct: QuickDotProduct,
    VocabularyHead: QuickVocabularyHead,
}
PACKED: dict[type, type] = {
    EncoderLayer: PackedEncoderLayer,
    DecoderLayer: PackedDecoderLayer,
    MultiHeadAttention: PackedMultiHeadAttention,
}
