"""Logits that are made where they are used: a vocabulary's for every token are the largest tensor of a small model.

The cross-entropy takes them a block at a time, which stays in the cache, and leaves out what does not count; the
gradient is made on the way. Whoever else touches them gets a tensor like any other.
Shapes: N tokens, D d_model, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils._pytree import tree_map_only

_ONEDNN_LINEAR = getattr(torch.ops.mkldnn, "_linear_pointwise", None) if torch.backends.mkldnn.is_available() else None
BLOCK = 2**22  # logits worked on at once
KNOWN = {vars(torch._C.TensorBase)[name].__get__ for name in ("shape", "dtype", "device")}  # before they are made


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x (N, D) by a weight (E, D) → (N, E). In float32, oneDNN is faster than BLAS where it is there."""
    if _ONEDNN_LINEAR is None or x.dtype != torch.float32:
        return F.linear(x, weight, bias)
    out: Tensor = _ONEDNN_LINEAR(x, weight, bias, "none", [], "")
    return out


class PendingLogits(Tensor):
    """x (…, D) by a weight (V, D), with a bias (V) or none: (…, V), once somebody wants them."""

    def __new__(cls, x: Tensor, weight: Tensor, bias: Tensor | None) -> PendingLogits:
        shape = (*x.shape[:-1], weight.shape[0])
        made: PendingLogits = Tensor._make_wrapper_subclass(cls, shape, dtype=x.dtype)
        return made

    def __init__(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> None:
        self.parts = x, weight, bias
        self.made: Tensor | None = None

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in KNOWN:
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args)
        return func(*tree_map_only(cls, _made, args), **tree_map_only(cls, _made, kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        raise RuntimeError(f"these logits are not made yet; call a function of torch on them before {func}")

    def cross_entropy(self, target: Tensor, keep: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        """Sums over what `keep` (…) lets count, with smoothing and without."""
        x, weight, bias = self.parts
        counted = keep.reshape(-1).nonzero().squeeze(1)
        rows, targets = x.reshape(-1, x.shape[-1]).index_select(0, counted), target.reshape(-1)[counted]
        made: Any = _PendingCrossEntropy.apply
        total, plain = made(rows, weight, bias, targets, smoothing)
        return total, plain


def _made(logits: PendingLogits) -> Tensor:
    if logits.made is None:
        logits.made = F.linear(*logits.parts)
    return logits.made


class _PendingCrossEntropy(torch.autograd.Function):
    """Of x (N, D) by a weight (V, D): sums, and their gradients beside them."""

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
            slope, smoothed, sharp = _softmax_minus_target(logits, target[rows, None], smoothing)
            total, plain = total + smoothed, plain + sharp
            if by_bias is not None:
                by_bias += slope.sum(dim=0)
            slope = slope.to(x.dtype)
            by_x[rows] = linear(slope, weight.mT)
            _add_product(by_weight, slope.mT, x[rows])
        ctx.save_for_backward(by_x, by_weight.to(weight.dtype), None if by_bias is None else by_bias.to(x.dtype))
        ctx.mark_non_differentiable(plain)
        return total, plain

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        return *(None if part is None else part * slopes[0] for part in ctx.saved_tensors), None, None


def _softmax_minus_target(logits: Tensor, target: Tensor, smoothing: float) -> tuple[Tensor, Tensor, Tensor]:
    """The gradient by logits (n, V), and the sums of the cross-entropy with smoothing and without; target: (n, 1)."""
    slope = logits.softmax(dim=-1)
    lse = logits.amax(dim=-1) - slope.amax(dim=-1).log()  # the largest logit's probability is never too small
    sharp = (lse - logits.gather(-1, target).squeeze(-1)).sum()
    smoothed = torch.lerp(sharp, (lse - logits.mean(dim=-1)).sum(), smoothing)
    slope.sub_(smoothing / logits.shape[-1])
    slope.scatter_add_(-1, target, slope.new_full((), smoothing - 1).expand_as(target))
    return slope, smoothed, sharp


def _add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """In float32: halves would lose what is small beside the sum."""
    if left.dtype == total.dtype:
        total.addmm_(left, right)
    else:
        total += left @ right
