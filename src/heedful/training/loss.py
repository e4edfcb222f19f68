"""Cross-entropy with label smoothing, as sums over the real tokens.

With V classes and a smoothing of ε the right class has the probability 1 − ε + ε/V and every other ε/V:

    loss = (1 − ε) · (lse − logit of the target) + ε · (lse − mean of the logits),   lse = log Σ exp(logits)

Shapes: B batch, T tokens, V vocabulary; any leading dimensions will do, and N is their product.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..backends.pending_logits import PendingLogits
from ..backends.triton import available

BLOCK = 2**26  # logits worked on at once: a quarter of a gigabyte in float32
CACHED = 2**20  # the same on a CPU, whose caches shall hold them


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
    if isinstance(logits, PendingLogits):
        return Loss(*logits.cross_entropy(target, real, smoothing), real.sum())
    each: Any = _CrossEntropy.apply
    if available(logits):
        from ..backends.triton.cross_entropy import costs as each
    smoothed, plain = each(logits.reshape(-1, logits.shape[-1]), target.reshape(-1), real.reshape(-1), smoothing)
    return Loss(smoothed.sum(), plain.sum(), real.sum())


class _CrossEntropy(torch.autograd.Function):
    """Of logits (N, V), written out with its gradient, softmax minus target: what it makes in float32 is a block at
    a time, where autograd would keep one tensor as large as the logits and add up three."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, target: Tensor, keep: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        found = [costs(exact(logits[rows]).log_softmax(dim=-1), target[rows], smoothing) for rows in blocks(logits)]
        smoothed, plain = (torch.cat(parts).masked_fill(~keep, 0.0) for parts in zip(*found, strict=True))
        ctx.save_for_backward(logits, target, keep)
        ctx.smoothing = smoothing
        ctx.mark_non_differentiable(plain)
        return smoothed, plain

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        logits, target, keep = ctx.saved_tensors
        whole = torch.empty_like(logits)
        for rows in blocks(logits):
            _slope(logits[rows], target[rows], ctx.smoothing, gradients[0][rows], keep[rows], into=whole[rows])
        return whole, None, None, None


def _slope(logits: Tensor, target: Tensor, smoothing: float, gradient: Tensor, keep: Tensor, *, into: Tensor) -> None:
    """The gradient of a block; a function, so that what it made is gone before the next."""
    given = exact(logits)
    slope = torch.softmax(given, dim=-1, out=into if into.dtype == given.dtype else None)
    subtract_target(slope, target, smoothing=smoothing)
    torch.mul(slope, gradient[:, None], out=into).masked_fill_(~keep[:, None], 0.0)


def blocks(logits: Tensor) -> list[slice]:
    """Which rows of (…, N, V) are worked on at once. A compiler makes no large temporaries, and gets one block."""
    if torch.compiler.is_compiling():
        return [slice(None)]
    n = max(1, logits.shape[-2])
    most = min(BLOCK, CACHED) if logits.device.type == "cpu" else BLOCK
    size = max(1, most * n // max(1, logits.numel()))
    return [slice(start, start + size) for start in range(0, n, size)]


def exact(logits: Tensor) -> Tensor:
    """In float32 at least: halves have too few digits for a sum over a vocabulary."""
    return logits if logits.dtype in (torch.float32, torch.float64) else logits.float()


def costs(logs: Tensor, target: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """Log-probabilities (…, V) and targets (…) → cross-entropies (…), with smoothing and without."""
    plain = -logs.gather(-1, target[..., None]).squeeze(-1)
    return torch.lerp(plain, -logs.mean(dim=-1), smoothing) if smoothing else plain, plain


def subtract_target(slope: Tensor, target: Tensor, *, smoothing: float, share: float = 1.0) -> None:
    """From (…, V), in place: the smoothed target's probabilities, `share` times."""
    if smoothing:
        slope -= share * smoothing / slope.shape[-1]
    right = slope.new_full((), share * (smoothing - 1)).expand(*target.shape, 1)
    slope.scatter_add_(-1, target[..., None], right)
