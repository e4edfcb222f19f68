"""Parts of a model that train faster on a CPU, in float32 and bf16.

Torch draws dropout's random numbers sequentially, its fused attention is made for long rows, and oneDNN multiplies
float32 matrices faster. Layers skip padding, a seventh of a batch: all parts but attention work on single tokens.
Shapes: B batch, H heads, Tq queries, Tk keys, K head width, T tokens of a row, N real ones among all B · T;
(1, N, D) is a batch without padding; D d_model, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils._pytree import tree_map_only

from .. import core
from ..core.mask_preparation import PreparedMask
from .description import Reason, only, within
from .registry import ModuleImplementation, apply, machine_check, register

DTYPES = (torch.float32, torch.bfloat16)
FEW = 2**13  # numbers that torch draws as fast
SHORT = 128  # keys, above which the fused attention is faster
LEVELS = 2**16  # a random number has two bytes
PACKED_BELOW = 0.95  # above this share of real tokens, packing costs as much as it saves
_ONEDNN_LINEAR = getattr(torch.ops.mkldnn, "_linear_pointwise", None) if torch.backends.mkldnn.is_available() else None
BLOCK = 2**22  # logits that are computed at once
METADATA = {vars(torch._C.TensorBase)[name].__get__ for name in ("shape", "dtype", "device")}  # need no logits
TOKENWISE = (
    core.FeedForward,
    core.GatedFeedForward,
    core.LayerNorm,
    core.RMSNorm,
    core.PreNorm,
    core.PostNorm,
    nn.Linear,
    nn.Dropout,
    nn.Identity,
)


@machine_check("cpu")
def _machine(module: nn.Module) -> Iterator[str]:
    tensors = list(module.parameters())
    if any(tensor.device.type != "cpu" for tensor in tensors):
        yield "the model is not on a CPU"
    if any(tensor.dtype not in DTYPES for tensor in tensors):
        yield "some of its weights are neither float32 nor bf16"


def _is_training(*tensors: Tensor) -> bool:
    """Return True in eager training, for tensors that this backend supports."""
    if torch.compiler.is_compiling() or not torch.is_grad_enabled():
        return False
    return all(tensor.device.type == "cpu" and tensor.dtype in DTYPES for tensor in tensors)


@register("cpu", nn.Dropout)
class CpuFusedDropout(ModuleImplementation, nn.Dropout):
    """Dropout by numpy's generator, which a number from torch's generator seeds in each call."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002  # torch's name
        dropped = round(self.p * LEVELS)
        if not (self.training and _is_training(input)) or not 0 < dropped < LEVELS or input.numel() < FEW:
            return super().forward(input)
        generator = np.random.SFC64(int(torch.randint(2**63 - 1, ())))
        random = generator.random_raw(math.ceil(input.numel() / 4)).view(np.int16)[: input.numel()]
        factors = torch.empty_like(input, requires_grad=False, memory_format=torch.contiguous_format)
        torch.ge(torch.from_numpy(random).view(input.shape), dropped - LEVELS // 2, out=factors)
        return input * factors.mul_(LEVELS / (LEVELS - dropped))


@register("cpu", core.DotProduct)
class CpuFusedDotProduct(ModuleImplementation, core.DotProduct):
    """Attention over short rows by matrix products and softmax, not by torch's fused attention."""

    def forward(self, query: Tensor, key: Tensor, value: Tensor, keep: PreparedMask) -> Tensor:
        drops = self.training and self.dropout
        learned = keep.additive is not None and keep.additive.requires_grad
        grouped = query.shape[1] != key.shape[1]
        special = drops or learned or grouped or keep.unpad_index is not None or key.shape[2] > SHORT
        if special or not _is_training(query, key, value):
            return super().forward(query, key, value, keep)
        keep.check(query, key)
        scale = 1 / math.sqrt(query.shape[-1]) if self.scale is None else self.scale
        mixed: Tensor = apply(_Attention, query, key, value, _additive(keep), scale)
        return mixed if keep.fully_masked is None else mixed.masked_fill(keep.fully_masked, 0.0)


def _additive(keep: PreparedMask) -> Tensor | None:
    if not keep.is_causal:
        return None if keep.additive is None else keep.additive.float()
    grid = keep.grid
    return torch.full((grid.n_queries, grid.n_keys), -torch.inf).triu_(1 + grid.n_keys - grid.n_queries)


class _Attention(torch.autograd.Function):
    """softmax(q kᵀ · scale + additive) v, computed in float32 for inputs of any dtype."""

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
    """Copy (B, H, T, K), whose memory is (B, T, H, K), to (B·H, T, K) in float32."""
    return torch.empty(x.shape, dtype=torch.float32).copy_(x).flatten(0, 1)


def _tokens(x: Tensor, like: Tensor) -> Tensor:
    """Copy (B·H, T, K) back to (B, H, T, K) in the dtype of `like`."""
    batch, heads, _, width = like.shape
    out = torch.empty(batch, x.shape[1], heads, width, dtype=like.dtype).transpose(1, 2)
    return out.copy_(x.unflatten(0, (batch, heads)))


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Multiply x (N, D) by a weight (E, D), by oneDNN if it is available: in float32 it is faster than BLAS."""
    if _ONEDNN_LINEAR is None or x.dtype != torch.float32:
        return F.linear(x, weight, bias)
    out: Tensor = _ONEDNN_LINEAR(x, weight, bias, "none", [], "")
    return out


@register("cpu", nn.Linear)
class CpuFusedLinear(ModuleImplementation, nn.Linear):
    """A linear map by oneDNN, which is faster than BLAS for float32 products with the weight."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002  # torch's name
        if not _is_training(input, self.weight) or input.dtype != torch.float32 or torch.is_autocast_enabled("cpu"):
            return super().forward(input)
        x = input.reshape(-1, self.in_features)
        out: Tensor = apply(_Linear, x, self.weight, self.bias)
        return out.view(*input.shape[:-1], self.out_features)


class _Linear(torch.autograd.Function):
    """The product of x (N, D) and a weight (E, D), plus a bias (E)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        slope = slopes[0].contiguous()
        by_x = linear(slope, weight.mT) if ctx.needs_input_grad[0] else None
        by_weight = slope.mT @ x if ctx.needs_input_grad[1] else None
        return by_x, by_weight, slope.sum(dim=0) if ctx.needs_input_grad[2] else None


@register("cpu", core.VocabularyHead)
class CpuFusedVocabularyHead(ModuleImplementation, core.VocabularyHead):
    """A head whose logits are computed in the loss."""

    def forward(self, x: Tensor, keep: core.Mask | None = None) -> Tensor:
        if not _is_training(x, self.weight) or x.dtype != self.weight.dtype or torch.is_autocast_enabled("cpu"):
            return super().forward(x, keep)
        x = self.transform(x)
        return PendingLogits(x if self.scale == 1.0 else x * self.scale, self.weight, self.bias)


class PendingLogits(Tensor):
    """The product of x (…, D) and a weight (V, D), with an optional bias (V): (…, V), computed at the first use.

    Logits are the largest tensor of a small model. The cross-entropy computes them and their gradient one block at a
    time, which fits the cache, and skips tokens that do not count. Any other function gets an ordinary tensor.
    """

    def __new__(cls, x: Tensor, weight: Tensor, bias: Tensor | None) -> PendingLogits:
        shape = (*x.shape[:-1], weight.shape[0])
        logits: PendingLogits = Tensor._make_wrapper_subclass(cls, shape, dtype=x.dtype)
        return logits

    def __init__(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> None:
        self.factors = x, weight, bias
        self.computed: Tensor | None = None

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in METADATA:
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args)
        return func(*tree_map_only(cls, _computed, args), **tree_map_only(cls, _computed, kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        raise RuntimeError(f"these logits are not computed yet; call a function of torch on them before {func}")

    def cross_entropy(self, target: Tensor, keep: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        """Return the sums over the tokens that `keep` (…) selects, with smoothing and without."""
        x, weight, bias = self.factors
        places = keep.reshape(-1).nonzero().squeeze(1)
        rows, targets = x.reshape(-1, x.shape[-1]).index_select(0, places), target.reshape(-1)[places]
        total, plain = apply(_PendingCrossEntropy, rows, weight, bias, targets, smoothing)
        return total, plain


def _computed(logits: PendingLogits) -> Tensor:
    if logits.computed is None:
        logits.computed = F.linear(*logits.factors)
    return logits.computed


class _PendingCrossEntropy(torch.autograd.Function):
    """The cross-entropy of x (N, D) times a weight (V, D): sums, whose gradients the forward pass computes too."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        total, plain = torch.zeros(2, dtype=torch.float32)
        by_x, by_weight = torch.empty_like(x), torch.zeros(weight.shape, dtype=torch.float32)
        by_bias = None if bias is None else torch.zeros(bias.shape, dtype=torch.float32)
        size = max(1, BLOCK // weight.shape[0])
        for start in range(0, x.shape[0], size):
            rows = slice(start, start + size)
            logits = linear(x[rows], weight, bias).float()
            slope, smoothed, unsmoothed = _softmax_minus_target(logits, target[rows, None], smoothing)
            total, plain = total + smoothed, plain + unsmoothed
            if by_bias is not None:
                by_bias += slope.sum(dim=0)
            slope = slope.to(x.dtype)
            by_x[rows] = linear(slope, weight.mT)
            if slope.dtype == by_weight.dtype:
                by_weight.addmm_(slope.mT, x[rows])
            else:  # sums in float32: 16 bits would lose what is small beside the sum
                by_weight += slope.mT @ x[rows]
        ctx.save_for_backward(by_x, by_weight.to(weight.dtype), None if by_bias is None else by_bias.to(x.dtype))
        ctx.mark_non_differentiable(plain)
        return total, plain

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        return *(None if part is None else part * slopes[0] for part in ctx.saved_tensors), None, None


def _softmax_minus_target(logits: Tensor, target: Tensor, smoothing: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradient by logits (n, V), and the summed cross-entropy with smoothing and without; target: (n, 1)."""
    slope = logits.softmax(dim=-1)
    lse = logits.amax(dim=-1) - slope.amax(dim=-1).log()  # the largest logit's probability cannot underflow
    plain = (lse - logits.gather(-1, target).squeeze(-1)).sum()
    smoothed = torch.lerp(plain, (lse - logits.mean(dim=-1)).sum(), smoothing)
    slope.sub_(smoothing / logits.shape[-1])
    slope.scatter_add_(-1, target, slope.new_full((), smoothing - 1).expand_as(target))
    return slope, smoothed, plain


# ---- layers without padding ----


class RealTokens(NamedTuple):
    """The positions of the real tokens in a batch."""

    rows: int
    columns: int
    real: Tensor  # (N,) indices into B · T

    def pack(self, x: Tensor) -> Tensor:  # (B, T, D) → (1, N, D)
        packed: Tensor = apply(_Packed, x.flatten(0, 1), self.real)
        return packed[None]

    def unpack(self, x: Tensor) -> Tensor:
        """Return (B, T, D) from (1, N, D), with zeros for padding."""
        zeros = x.new_zeros(self.rows * self.columns, x.shape[-1])
        return zeros.index_copy(0, self.real, x[0]).view(self.rows, self.columns, -1)


class _Packed(torch.autograd.Function):
    """Rows of x. Torch would compute its gradient by adding, where copying is enough."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.n = x.shape[0]
        return x.index_select(0, rows)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, None]:
        (rows,) = ctx.saved_tensors
        return slopes[0].new_zeros(ctx.n, slopes[0].shape[1]).index_copy_(0, rows, slopes[0]), None


def real_tokens(x: Tensor, keep: Any, cache: Any) -> RealTokens | None:
    """Return the real tokens of x (B, T, D) if it is worth packing them; else None."""
    if (
        torch.compiler.is_compiling()
        or not torch.is_grad_enabled()
        or cache is not None
        or not isinstance(keep, PreparedMask)
    ):
        return None
    real = keep.rules.real_keys(keep.grid)
    if real is None or real.shape[-1] != x.shape[1] or x.device.type != "cpu" or x.dtype == torch.float64:
        return None
    places = real.expand(x.shape[:2]).flatten().nonzero().squeeze(1)
    return RealTokens(x.shape[0], x.shape[1], places) if places.numel() <= PACKED_BELOW * real.numel() else None


class _PackedLayer(ModuleImplementation):
    """A layer whose parts all work on single tokens, or are attention, which gets the positions of the tokens."""

    @classmethod
    def refusals(cls, part: Any) -> Iterator[Reason]:
        yield from super().refusals(part)
        for path, inner in part.named_modules():
            if inner is not part:
                yield from within(path, only(inner, core.MultiHeadAttention, core.DotProduct, *TOKENWISE))


@register("cpu", core.EncoderLayer)
class PackedEncoderLayer(_PackedLayer, core.EncoderLayer):
    """An encoder layer that packs its input and unpacks its output."""

    def forward(self, x: Tensor, *, keep: Any = None, cache: Any = None, **context: Any) -> Tensor:
        at = real_tokens(x, keep, cache)
        if at is None:
            return super().forward(x, keep=keep, cache=cache, **context)
        x = self.self_attention(at.pack(x), keep=keep, rotate=context.get("rotate"), at=at)
        return at.unpack(self.feed_forward(x))


@register("cpu", core.DecoderLayer)
class PackedDecoderLayer(_PackedLayer, core.DecoderLayer):
    """A decoder layer that packs its input and its memory, and unpacks its output."""

    def forward(
        self, x: Tensor, memory: Tensor, *, keep: Any = None, memory_keep: Any = None, cache: Any = None, **context: Any
    ) -> Tensor:
        at, memory_at = real_tokens(x, keep, cache), real_tokens(memory, memory_keep, cache)
        if at is None or memory_at is None or at.rows != memory_at.rows:
            return super().forward(x, memory, keep=keep, memory_keep=memory_keep, cache=cache, **context)
        x = self.self_attention(at.pack(x), keep=keep, rotate=context.get("rotate"), at=at)
        x = self.cross_attention(x, memory_at.pack(memory), keep=memory_keep, at=at, memory_at=memory_at)
        return at.unpack(self.feed_forward(x))


@register("cpu", core.MultiHeadAttention)
class PackedMultiHeadAttention(ModuleImplementation, core.MultiHeadAttention):
    """Attention whose projections take packed tokens; only the heads are unpacked into rows."""

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        *,
        at: RealTokens | None = None,
        memory_at: Any = None,
        **context: Any,
    ) -> Tensor:
        if at is None:
            return super().forward(x, memory, **context)
        query = self._heads(at.unpack(self.q_proj(x)), self.n_heads)
        source, source_at = (x, at) if memory is None else (memory, memory_at)
        keys_values = source_at.unpack(self.kv_proj(source)).unflatten(-1, (2, self.n_kv_heads, self.d_head))
        key, value = (part.transpose(1, 2) for part in keys_values.unbind(2))
        rotate = context.get("rotate")
        if rotate is not None:
            query, key = rotate(query, key)
        mixed = self.attention(query, key, value, context["keep"])  # (B, H, T, K)
        out: Tensor = self.out_proj(at.pack(mixed.transpose(1, 2).flatten(2)))
        return out
