"""Cross-entropy with label smoothing, as sums over the real tokens.

With V classes and a smoothing of ε the right class has the probability 1 − ε + ε/V and every other ε/V:

    loss = (1 − ε) · (lse − logit of the target) + ε · (lse − mean of the logits),   lse = log Σ exp(logits)

Shapes: B batch, T tokens, V vocabulary; any leading dimensions will do.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor


class Loss(NamedTuple):
    """Sums, so that batches of different sizes add up to the gradient of one large batch."""

    total: Tensor  # what is minimised
    plain: Tensor  # the same without smoothing, and without a gradient: what a log and a perplexity want
    n: Tensor  # how many tokens, or examples, the two are sums over


def cross_entropy(logits: Tensor, target: Tensor, keep: Tensor | None = None, *, smoothing: float = 0.0) -> Loss:
    """Logits (B, T, V), target ids (B, T) and which of them count (B, T); what does not count may be NaN."""
    if logits.shape[:-1] != target.shape:
        raise ValueError(f"logits of shape {tuple(logits.shape)} do not fit a target of shape {tuple(target.shape)}")
    real = torch.ones_like(target, dtype=torch.bool) if keep is None else keep
    each: Any = _CrossEntropy.apply  # torch does not say what this takes and gives
    smoothed, plain = each(logits, target, real, smoothing)
    return Loss(smoothed.sum(), plain.sum(), real.sum())


class _CrossEntropy(torch.autograd.Function):
    """Written out with its gradient, softmax minus target: the one large float32 tensor it makes in either
    direction is a temporary, where autograd would keep one and add up three."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, target: Tensor, keep: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        exact = _exact(logits)
        lse = exact.logsumexp(dim=-1)
        plain = lse - exact.gather(-1, target[..., None]).squeeze(-1)
        even = lse - exact.mean(dim=-1) if smoothing else plain
        ctx.save_for_backward(logits, target, keep, lse)
        ctx.smoothing = smoothing
        plain = plain.masked_fill(~keep, 0.0)
        ctx.mark_non_differentiable(plain)
        return torch.where(keep, torch.lerp(plain, even, smoothing), 0.0), plain

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        logits, target, keep, lse = ctx.saved_tensors
        gradient = (_exact(logits) - lse[..., None]).exp_()
        if ctx.smoothing:
            gradient -= ctx.smoothing / logits.shape[-1]
        gradient.scatter_add_(
            -1, target[..., None], gradient.new_full((), ctx.smoothing - 1).expand_as(target)[..., None]
        )
        gradient.mul_(gradients[0][..., None]).masked_fill_(~keep[..., None], 0.0)
        return gradient.to(logits.dtype), None, None, None


def _exact(logits: Tensor) -> Tensor:
    """In float32 at least: halves have too few digits for a sum over a vocabulary."""
    return logits if logits.dtype in (torch.float32, torch.float64) else logits.float()
