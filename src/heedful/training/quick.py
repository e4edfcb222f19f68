"""Parts of a module that compute the same in less time, for small models on a GPU.

Over many short rows, torch's attention and its sums for the gradients of biases, norms and token tables take longer
than the matrix products. A compiler fuses some of it by itself; where steps are only recorded, these stand in.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..core import DotProduct, LayerNorm, TokenEmbedding
from ..core.binding import Bound
from .kernels import available

SHORT, WIDEST_HEAD = 64, 128  # of what attention's kernel holds: tokens, and numbers in a head
WIDEST = 4096  # features of a norm or of a token, so that one program can hold them
LARGEST = 2**26  # numbers in a token table, whose gradient is added up in a float32 copy


def quicken(module: nn.Module) -> None:
    """Let a copy that only computes have them."""
    for part in module.modules():
        if type(part) is nn.Linear and part.bias is not None:
            part.__class__ = QuickLinear
        elif type(part) is LayerNorm and part.bias is not None and part.weight.shape[0] <= WIDEST:
            part.__class__ = QuickLayerNorm
        elif type(part) is TokenEmbedding and part.weight.shape[1] <= WIDEST and part.weight.numel() <= LARGEST:
            part.__class__ = QuickTokenEmbedding
        elif type(part) is DotProduct:
            part.__class__ = QuickDotProduct


def _pays(x: Tensor) -> bool:
    return torch.is_grad_enabled() and not torch.compiler.is_compiling() and available(x)


class QuickLinear(nn.Linear):
    """The gradient of its bias is added up by many programs."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002  # torch's name
        if not _pays(input) or input.dtype != self.weight.dtype:
            return super().forward(input)
        made: Any = _Mapped.apply
        out: Tensor = made(input.reshape(-1, self.in_features), self.weight, self.bias)
        return out.view(*input.shape[:-1], self.out_features)


class _Mapped(torch.autograd.Function):
    """x (N, D) by a weight (E, D) and a bias (E)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return F.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        from .kernels.sums import column_sums

        x, weight = ctx.saved_tensors
        slope = slopes[0]
        by_x = slope @ weight if ctx.needs_input_grad[0] else None
        return by_x, slope.mT @ x, column_sums(slope)


class QuickLayerNorm(LayerNorm):
    """Both directions in one kernel each."""

    def forward(self, x: Tensor) -> Tensor:
        if not _pays(x) or self.bias is None:
            return super().forward(x)
        from .kernels.layer_norm import LayerNormed

        made: Any = LayerNormed.apply
        rows = x.reshape(-1, x.shape[-1]).contiguous()  # the kernel knows no strides
        out: Tensor = made(rows, self.weight, self.bias, self.eps)
        return out.view(x.shape)


class QuickTokenEmbedding(TokenEmbedding):
    """The gradient of its table is added up without sorting the ids: in another order each time, by a rounding."""

    def look_up(self, ids: Tensor) -> Tensor:
        if not _pays(self.weight) or torch.are_deterministic_algorithms_enabled():
            return super().look_up(ids)
        from .kernels.embedding import LookedUp

        made: Any = LookedUp.apply
        out: Tensor = made(ids.flatten(), self.weight)
        return out.view(*ids.shape, self.weight.shape[1])


class QuickDotProduct(DotProduct):
    """Over rows as short as sentences, a kernel that holds a whole head."""

    def forward(self, query: Tensor, key: Tensor, value: Tensor, keep: Bound) -> Tensor:
        if not self._is_short(query, key, value, keep):
            return super().forward(query, key, value, keep)
        from .kernels.short_attention import ShortAttention

        keep.check(query, key)
        made: Any = ShortAttention.apply
        mask = query.new_zeros(1, 1, 1, 1) if keep.additive is None else keep.additive
        dead = query.new_zeros(1, 1, 1, 1, dtype=torch.bool) if keep.dead is None else keep.dead
        scale = 1 / math.sqrt(query.shape[-1]) if self.scale is None else self.scale
        out: Tensor = made(query, key, value, mask, dead, keep.is_causal, scale)
        return out

    def _is_short(self, query: Tensor, key: Tensor, value: Tensor, keep: Bound) -> bool:
        """Whether the kernel knows how; what is malformed is left to those who say what is wrong with it."""
        if not _pays(query) or query.dtype == torch.float32 or (self.training and self.dropout):
            return False
        if not (query.dim() == key.dim() == 4 and key.shape == value.shape and query.dtype == key.dtype == value.dtype):
            return False
        fits = max(query.shape[2], key.shape[2]) <= SHORT and query.shape[3] <= WIDEST_HEAD and key.shape[2] > 0
        known = query.shape[3] == key.shape[3] and query.shape[1] % key.shape[1] == 0 and _multiplies_bf16(query.device)
        learned = keep.additive is not None and keep.additive.requires_grad
        by_head = keep.dead is not None and keep.dead.shape[1] != 1
        return fits and known and not learned and not by_head and keep.order is None


def _multiplies_bf16(device: torch.device) -> bool:
    return torch.cuda.get_device_capability(device)[0] >= 8
