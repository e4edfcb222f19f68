"""R-Drop: a batch goes through the model twice, each time with its own dropout, and the two answers must agree.

With p and q the two predictions for a token, and KL(p ‖ q) + KL(q ‖ p) = Σ (p − q) · (log p − log q):

    loss = ½ (cross-entropy of p + cross-entropy of q) + α/4 · (KL(p ‖ q) + KL(q ‖ p))

Shapes: B rows, T tokens, V vocabulary; N = B · T.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor

from ..backends.triton import available
from .config import TrainingConfig
from .loss import Loss, blocks, costs, cross_entropy, exact, subtract_target

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

D = TypeVar("D", bound="DataclassInstance")


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
            for half, slope in enumerate((_slope(p, q, apart, ctx.weight), _slope(q, p, -apart, ctx.weight))):
                subtract_target(slope, target[rows], smoothing=ctx.smoothing, share=0.5)
                into = whole[half, rows]
                torch.mul(slope, gradients[0][rows, None], out=into).masked_fill_(~keep[rows, None], 0.0)
        return whole, None, None, None, None


def _slope(own: Tensor, other: Tensor, apart: Tensor, weight: float) -> Tensor:
    """½ p + w · ((p − q) + p · (d − Σ p d)), with d = log p − log q and apart = w · d: by the logits of p."""
    mean = (own * apart).sum(dim=-1, keepdim=True)
    return (apart - (mean - 0.5 - weight)).mul_(own).sub_(other, alpha=weight)
