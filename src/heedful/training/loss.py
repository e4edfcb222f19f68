"""Cross-entropy with label smoothing, summed over the real tokens.

With V classes and a smoothing of ε, the target class has the probability 1 − ε + ε/V and every other class ε/V:

    loss = (1 − ε) · (lse − logit of the target) + ε · (lse − mean of the logits),   lse = log Σ exp(logits)

R-Drop runs the model twice on a batch, with different dropout, and penalizes the divergence of the two predictions p
and q for a token. With KL(p ‖ q) + KL(q ‖ p) = Σ (p − q) · (log p − log q):

    loss = ½ (cross-entropy of p + cross-entropy of q) + α/4 · (KL(p ‖ q) + KL(q ‖ p))

Shapes: B batch, T tokens, V vocabulary, P passes; any leading dimensions are allowed, and N is their product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from ..backends.cpu import PendingLogits
from ..backends.triton import available
from .config import TrainingConfig

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

D = TypeVar("D", bound="DataclassInstance")

BLOCK = 2**26  # logits processed at once: a quarter of a gigabyte in float32
CACHED = 2**20  # the same on a CPU, so that they fit its caches


class Loss(NamedTuple):
    """Sums over tokens, so that batches of different sizes add up to the gradient of one large batch."""

    total: Tensor  # what is minimized
    plain: Tensor  # the same without smoothing and without a gradient, for logs and perplexity
    n: Tensor  # how many tokens, or examples, the two are sums over


def cross_entropy(
    logits: Tensor, target: Tensor, keep: Tensor | None = None, *, smoothing: float = 0.0, r_drop: float | None = None
) -> Loss:
    """Return the cross-entropy of logits (B, T, V) and target ids (B, T).

    `keep` (B, T) says which tokens count; None means all. The logits of the others may be NaN. With the α of `r_drop`,
    the logits (2B, T, V) are those of a doubled batch: `total` is the loss of R-Drop, and `plain` the mean
    cross-entropy of the two passes, without the divergence.
    """
    passes, weight = (1, 0.0) if r_drop is None else (2, r_drop / 4)
    if logits.shape[:-1] != (target.shape if r_drop is None else (2 * target.shape[0], *target.shape[1:])):
        wanted = "a target" if r_drop is None else "two passes over a target"
        raise ValueError(f"logits of shape {tuple(logits.shape)} do not fit {wanted} of shape {tuple(target.shape)}")
    real = torch.ones_like(target, dtype=torch.bool) if keep is None else keep
    if isinstance(logits, PendingLogits) and r_drop is None:
        return Loss(*logits.cross_entropy(target, real, smoothing), real.sum())
    logits, target, real = logits.reshape(passes, -1, logits.shape[-1]), target.reshape(-1), real.reshape(-1)
    if not available(logits):
        apply: Any = _CrossEntropy.apply
        total, plain = apply(logits, target, real, smoothing, weight)
    elif passes == 1:
        from ..backends.triton.cross_entropy import costs as fused_cross_entropy

        total, plain = fused_cross_entropy(logits.flatten(0, 1), target, real, smoothing)
    else:
        from ..backends.triton.r_drop import costs as fused_r_drop

        total, plain = fused_r_drop(logits, target, real, smoothing, weight)
    return Loss(total.sum(), plain.sum(), real.sum())


class _CrossEntropy(torch.autograd.Function):
    """The loss of each token for logits (P, N, V), and its gradient, computed in float32 for one block after another.

    Autograd would keep one tensor as large as the logits, and add up three.
    """

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, target: Tensor, keep: Tensor, smoothing: float, weight: float
    ) -> tuple[Tensor, Tensor]:
        parts = [_block_loss(logits[:, rows], target[rows], smoothing, weight) for rows in blocks(logits)]
        total, plain = (torch.cat(pieces).masked_fill(~keep, 0.0) for pieces in zip(*parts, strict=True))
        ctx.save_for_backward(logits, target, keep)
        ctx.smoothing, ctx.weight = smoothing, weight
        ctx.mark_non_differentiable(plain)
        return total, plain

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None, None]:
        logits, target, keep = ctx.saved_tensors
        by_logits = torch.empty_like(logits)
        for rows in blocks(logits):
            factor = gradients[0][rows, None]
            _write_slopes(logits[:, rows], target[rows], ctx.smoothing, ctx.weight, factor, by_logits[:, rows])
            by_logits[:, rows].masked_fill_(~keep[rows, None], 0.0)
        return by_logits, None, None, None, None


def _block_loss(logits: Tensor, target: Tensor, smoothing: float, weight: float) -> tuple[Tensor, Tensor]:
    """Return the losses (n,) of logits (P, n, V), with smoothing and divergence and without."""
    logs = exact(logits).log_softmax(dim=-1)
    smoothed, plain = (cost.mean(dim=0) for cost in costs(logs, target.expand(len(logs), -1), smoothing))
    if len(logs) == 2:
        difference = logs[0] - logs[1]
        p, q = logs.exp_()
        smoothed = smoothed + weight * p.sub_(q).mul_(difference).sum(dim=-1)
    return smoothed, plain


def _write_slopes(logits: Tensor, target: Tensor, smoothing: float, weight: float, factor: Tensor, out: Tensor) -> None:
    """Write the gradient by the logits (P, n, V) of their losses, times a factor (n, 1)."""
    slopes: tuple[Tensor, ...]
    if len(logits) == 1:
        block = exact(logits[0])
        slopes = (torch.softmax(block, dim=-1, out=out[0] if out.dtype == block.dtype else None),)
    else:
        logs = exact(logits).log_softmax(dim=-1)
        difference = (logs[0] - logs[1]).mul_(weight)
        p, q = logs.exp_()
        slopes = _r_drop_slope(p, q, difference, weight), _r_drop_slope(q, p, -difference, weight)
    for slope, by_logits in zip(slopes, out, strict=True):
        subtract_target(slope, target, smoothing=smoothing, share=1 / len(slopes))
        torch.mul(slope, factor, out=by_logits)


def _r_drop_slope(p: Tensor, q: Tensor, difference: Tensor, weight: float) -> Tensor:
    """Return ½ p + w · ((p − q) + p · (d − Σ p d)), where d = log p − log q and `difference` = w · d."""
    mean = (p * difference).sum(dim=-1, keepdim=True)
    return (difference - (mean - 0.5 - weight)).mul_(p).sub_(q, alpha=weight)


def blocks(logits: Tensor) -> list[slice]:
    """Return the rows of (…, N, V) to process at once. A compiler makes no large temporaries, so it gets one block."""
    if torch.compiler.is_compiling():
        return [slice(None)]
    n = max(1, logits.shape[-2])
    most = min(BLOCK, CACHED) if logits.device.type == "cpu" else BLOCK
    size = max(1, most * n // max(1, logits.numel()))
    return [slice(start, start + size) for start in range(0, n, size)]


def exact(logits: Tensor) -> Tensor:
    """Convert 16-bit logits to float32: they have too few digits for a sum over a vocabulary."""
    return logits if logits.dtype in (torch.float32, torch.float64) else logits.float()


def costs(logs: Tensor, target: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """Return the cross-entropies (…) of log-probabilities (…, V) and targets (…), with smoothing and without."""
    plain = -logs.gather(-1, target[..., None]).squeeze(-1)
    return torch.lerp(plain, -logs.mean(dim=-1), smoothing) if smoothing else plain, plain


def subtract_target(slope: Tensor, target: Tensor, *, smoothing: float, share: float = 1.0) -> None:
    """Subtract `share` times the smoothed target's probabilities from (…, V), in place."""
    if smoothing:
        slope -= share * smoothing / slope.shape[-1]
    at_target = slope.new_full((), share * (smoothing - 1)).expand(*target.shape, 1)
    slope.scatter_add_(-1, target[..., None], at_target)


def loss_of(
    forward: Callable[[D], Tensor], batch: D, target: Tensor, keep: Tensor, config: TrainingConfig, *, training: bool
) -> Loss:
    """Return the loss that a config specifies. R-Drop applies only in `training`, when two passes differ."""
    r_drop = config.r_drop if config.r_drop and training else None
    logits = forward(batch if r_drop is None else doubled(batch))
    return cross_entropy(logits, target, keep, smoothing=config.label_smoothing, r_drop=r_drop)


def doubled(batch: D) -> D:
    """Repeat the rows of a batch, first all and then all again. `rows` still names each row once."""

    def twice(value: Any) -> Any:
        return torch.cat([value, value]) if isinstance(value, Tensor) else value + value

    values = {field.name: getattr(batch, field.name) for field in fields(batch) if field.name != "rows"}
    return replace(batch, **{name: twice(value) for name, value in values.items() if value is not None})
