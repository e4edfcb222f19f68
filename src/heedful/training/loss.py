"""Cross-entropy with label smoothing, as sums over the real tokens.

With V classes and a smoothing of ε the right class has the probability 1 − ε + ε/V and every other ε/V:

    loss = (1 − ε) · (lse − logit of the target) + ε · (lse − mean of the logits),   lse = log Σ exp(logits)

R-Drop sends a batch through the model twice, each time with its own dropout, and the two answers must agree. With p and
q the two predictions for a token, and KL(p ‖ q) + KL(q ‖ p) = Σ (p − q) · (log p − log q):

    loss = ½ (cross-entropy of p + cross-entropy of q) + α/4 · (KL(p ‖ q) + KL(q ‖ p))

Shapes: B batch, T tokens, V vocabulary; any leading dimensions will do, and N is their product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from ..backends.pending_logits import PendingLogits
from ..backends.triton import available
from .config import TrainingConfig

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

D = TypeVar("D", bound="DataclassInstance")

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


def loss_of(
    forward: Callable[[D], Tensor], batch: D, target: Tensor, keep: Tensor, config: TrainingConfig, *, drops: bool
) -> Loss:
    """The loss that a config asks for; `drops`: the module is in training, and two passes differ."""
    if config.r_drop and drops:
        logits = forward(doubled(batch))
        return agreeing_cross_entropy(logits, target, keep, smoothing=config.label_smoothing, alpha=config.r_drop)
    return cross_entropy(forward(batch), target, keep, smoothing=config.label_smoothing)


def doubled(batch: D) -> D:
    """Every row of a batch twice, first all and then all again; `rows` still names each once."""

    def twice(value: Any) -> Any:
        return torch.cat([value, value]) if isinstance(value, Tensor) else value + value

    values = {field.name: getattr(batch, field.name) for field in fields(batch) if field.name != "rows"}
    return replace(batch, **{name: twice(value) for name, value in values.items() if value is not None})


def agreeing_cross_entropy(
    logits: Tensor, target: Tensor, keep: Tensor | None = None, *, smoothing: float = 0.0, alpha: float
) -> Loss:
    """Logits (2B, T, V) of a doubled batch, target ids (B, T) and which of them count (B, T).

    `plain` is the mean of the two, without smoothing and without what their disagreement costs.
    """
    if logits.shape[:-1] != (2 * target.shape[0], *target.shape[1:]):
        raise ValueError(
            f"logits of shape {tuple(logits.shape)} do not fit two passes over a target of shape {tuple(target.shape)}"
        )
    real = torch.ones_like(target, dtype=torch.bool) if keep is None else keep
    each: Any = _Agreeing.apply
    if available(logits):
        from ..backends.triton.r_drop import costs as each
    pair = logits.reshape(2, -1, logits.shape[-1])
    total, plain = each(pair, target.reshape(-1), real.reshape(-1), smoothing, alpha / 4)
    return Loss(total.sum(), plain.sum(), real.sum())


class _Agreeing(torch.autograd.Function):
    """Of logits (2, N, V), a block at a time, as in the plain cross-entropy."""

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, target: Tensor, keep: Tensor, smoothing: float, weight: float
    ) -> tuple[Tensor, Tensor]:
        found = []
        for rows in blocks(logits):
            logs = exact(logits[:, rows]).log_softmax(dim=-1)
            smoothed, plain = costs(logs, target[rows].expand(2, -1), smoothing)  # (2, N)
            apart = logs[0] - logs[1]
            p, q = logs.exp_()
            disagreement = p.sub_(q).mul_(apart).sum(dim=-1)
            found.append((smoothed.mean(dim=0) + weight * disagreement, plain.mean(dim=0)))
        total, plain = (torch.cat(parts).masked_fill(~keep, 0.0) for parts in zip(*found, strict=True))
        ctx.save_for_backward(logits, target, keep)
        ctx.smoothing, ctx.weight = smoothing, weight
        ctx.mark_non_differentiable(plain)
        return total, plain

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None, None]:
        logits, target, keep = ctx.saved_tensors
        whole = torch.empty_like(logits)
        for rows in blocks(logits):
            logs = exact(logits[:, rows]).log_softmax(dim=-1)
            apart = (logs[0] - logs[1]).mul_(ctx.weight)
            p, q = logs.exp_()
            for half, slope in enumerate(
                (_agreeing_slope(p, q, apart, ctx.weight), _agreeing_slope(q, p, -apart, ctx.weight))
            ):
                subtract_target(slope, target[rows], smoothing=ctx.smoothing, share=0.5)
                into = whole[half, rows]
                torch.mul(slope, gradients[0][rows, None], out=into).masked_fill_(~keep[rows, None], 0.0)
        return whole, None, None, None, None


def _agreeing_slope(own: Tensor, other: Tensor, apart: Tensor, weight: float) -> Tensor:
    """½ p + w · ((p − q) + p · (d − Σ p d)), with d = log p − log q and apart = w · d: by the logits of p."""
    mean = (own * apart).sum(dim=-1, keepdim=True)
    return (apart - (mean - 0.5 - weight)).mul_(own).sub_(other, alpha=weight)
