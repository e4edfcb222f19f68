"""Linear maps on a GPU, whose gradients wait for the end of a pass where they are small. Shapes: x (…, D) → (…, E)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from .deferred import BackwardPass

MANY = 8  # outputs for every input: a vocabulary's
ALIGNED = 8  # numbers that a matrix is widened by, so that its rows still begin where products are fast


class Map(NamedTuple):
    """A weight (E, D) and a bias (E) or none, and the parameters they are made of: one behind the other."""

    weight: Tensor
    bias: Tensor | None
    weights: tuple[Tensor, ...]
    biases: tuple[Tensor, ...] = ()

    @classmethod
    def of(cls, layer: nn.Linear, *, bias: bool = True) -> Map:
        """A layer's own; or without its bias, which somebody else adds."""
        biases = (layer.bias,) if bias and layer.bias is not None else ()
        return cls(layer.weight, biases[0] if biases else None, (layer.weight,), biases)

    @classmethod
    def stacked(cls, *layers: nn.Linear) -> Map:
        """Several layers as one map: from now on, their weights and biases lie in one piece of memory."""
        weights, biases = tuple(layer.weight for layer in layers), tuple(layer.bias for layer in layers)
        return cls(_laid_together(weights), _laid_together(biases), weights, biases)

    def __call__(self, shared: BackwardPass, x: Tensor) -> tuple[Tensor, Tensor]:
        """The product; and x itself, for whoever adds it to something later: what comes back for it is added to its
        gradient in place, so that nobody else may have it."""
        own, made = (*self.weights, *self.biases), _LinearMap.apply
        given = shared.counting(*own), rows_of(x), self.weight.detach(), self.bias, len(self.weights)
        out, kept = made(*given, *own)  # type: ignore[no-untyped-call]
        return out.view(*x.shape[:-1], self.weight.shape[0]), kept.view(x.shape)


def rows_of(x: Tensor) -> Tensor:
    """(…, D) → (N, D): kernels know no strides."""
    return x.reshape(-1, x.shape[-1]).contiguous()


def _laid_together(parameters: Sequence[Tensor]) -> Tensor:
    """The parameters one behind the other in one piece of memory. Where they lie so already, they stay."""
    first, end = parameters[0].data, parameters[0].storage_offset()
    adjacent = True
    for parameter in parameters:
        same = parameter.untyped_storage().data_ptr() == first.untyped_storage().data_ptr()
        adjacent = adjacent and same and parameter.is_contiguous() and parameter.storage_offset() == end
        end += parameter.numel()
    if adjacent:
        return first.as_strided((sum(map(len, parameters)), *first.shape[1:]), first.stride())
    whole = torch.cat([parameter.data for parameter in parameters])
    pieces = whole.split([len(parameter) for parameter in parameters])
    for parameter, piece in zip(parameters, pieces, strict=True):
        parameter.data = piece
    return whole


class _LinearMap(torch.autograd.Function):
    """Of x (N, D)."""

    @staticmethod
    def forward(
        ctx: Any, shared: BackwardPass, x: Tensor, weight: Tensor, bias: Tensor | None, n: int, *own: Tensor
    ) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(x, weight)
        ctx.shared, ctx.n, ctx.own = shared, n, own
        ctx.set_materialize_grads(False)
        return F.linear(x, weight, bias), x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor | None, kept: Tensor | None) -> tuple[Tensor | None, ...]:
        if slope is None:
            return None, kept, None, None, None, *(None for _ in ctx.own)
        (x, weight), given = ctx.saved_tensors, slope.contiguous()
        found: list[Tensor | None] = [None] * len(ctx.own)
        if any(ctx.needs_input_grad[5:]):
            found = _gradients(ctx.shared, x, given, ctx.own, ctx.n)
        by_x = kept
        if ctx.needs_input_grad[1]:
            by_x = given @ weight if kept is None else kept.addmm_(given, weight)
        return None, by_x, None, None, None, *found


def _gradients(shared: BackwardPass, x: Tensor, slope: Tensor, own: Sequence[Tensor], n: int) -> list[Tensor | None]:
    """Of weights, and of biases where there are any; all of one kind in one piece."""
    weights, biases, d, e = own[:n], own[n:], x.shape[1], slope.shape[1]
    sizes = [len(weight) for weight in weights]
    if biases and e >= MANY * d and d % ALIGNED == 0:
        by_weight, by_bias = _by_ones(x, slope)
        return [*by_weight.split(sizes), *by_bias.split(sizes)]
    found: list[Tensor | None] = [*shared.product(weights, x, slope).split(sizes)]
    if biases:
        found += shared.sums(biases, slope).split(sizes)
    return found


def _by_ones(x: Tensor, slope: Tensor) -> tuple[Tensor, Tensor]:
    """A bias is the weight of an input that is always 1. So the slope, which is large, is read once for both."""
    wide = slope.mT @ F.pad(x, (0, ALIGNED), value=1.0)
    return wide[:, : x.shape[1]].contiguous(), wide[:, -1].contiguous()
