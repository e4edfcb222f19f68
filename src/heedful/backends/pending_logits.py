"""Logits that are computed where they are used, since they are the largest tensor of a small model.

The cross-entropy computes them and their gradient one block at a time, which fits the cache, and skips tokens that do
not count. Any other function gets an ordinary tensor. Shapes: N tokens, D d_model, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils._pytree import tree_map_only

_ONEDNN_LINEAR = getattr(torch.ops.mkldnn, "_linear_pointwise", None) if torch.backends.mkldnn.is_available() else None
BLOCK = 2**22  # logits processed at once
METADATA = {vars(torch._C.TensorBase)[name].__get__ for name in ("shape", "dtype", "device")}  # need no logits


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Multiply x (N, D) by a weight (E, D), by oneDNN if it is available: in float32 it is faster than BLAS."""
    if _ONEDNN_LINEAR is None or x.dtype != torch.float32:
        return F.linear(x, weight, bias)
    out: Tensor = _ONEDNN_LINEAR(x, weight, bias, "none", [], "")
    return out


class PendingLogits(Tensor):
    """The product of x (…, D) and a weight (V, D), with an optional bias (V): (…, V), computed at the first use."""

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
        apply: Any = _PendingCrossEntropy.apply
        total, plain = apply(rows, weight, bias, targets, smoothing)
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
