"""Parts of a module that compute the same with a quicker backward pass, for small models on a GPU.

Over many short rows, torch's sums for the gradients of biases and norms take as long as the matrix products. A compiler
fuses them by itself; where steps are only recorded, these stand in.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..core import LayerNorm
from .kernels import available

WIDEST = 4096  # features of a norm, so that one program can hold them


def quicken(module: nn.Module) -> None:
    """Let a copy that only computes have them."""
    for part in module.modules():
        if type(part) is nn.Linear and part.bias is not None:
            part.__class__ = QuickLinear
        elif type(part) is LayerNorm and part.bias is not None and part.weight.shape[0] <= WIDEST:
            part.__class__ = QuickLayerNorm


def _pays() -> bool:
    return torch.is_grad_enabled() and not torch.compiler.is_compiling()


class QuickLinear(nn.Linear):
    """The gradient of its bias is a matrix product, with ones."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002  # torch's name
        if not (_pays() and input.is_cuda) or input.dtype != self.weight.dtype:
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
        x, weight = ctx.saved_tensors
        slope = slopes[0]
        by_x = slope @ weight if ctx.needs_input_grad[0] else None
        ones = slope.new_ones(1, slope.shape[0])
        return by_x, slope.mT @ x, (ones @ slope).squeeze(0)


class QuickLayerNorm(LayerNorm):
    """Both directions in one kernel each."""

    def forward(self, x: Tensor) -> Tensor:
        if not (_pays() and available(x)) or self.bias is None:
            return super().forward(x)
        from .kernels.layer_norm import LayerNormed

        made: Any = LayerNormed.apply
        rows = x.reshape(-1, x.shape[-1]).contiguous()  # the kernel knows no strides
        out: Tensor = made(rows, self.weight, self.bias, self.eps)
        return out.view(x.shape)
