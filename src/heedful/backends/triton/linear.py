"""Linear maps on a GPU whose small gradients are deferred to the end of a pass. Shapes: x (…, D) → (…, E)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from ..registry import apply
from .deferred import BackwardPass

MANY = 8  # outputs for every input, as of a vocabulary
ALIGNED = 8  # columns that are added to a matrix, so that its rows stay aligned


class Map(NamedTuple):
    """A weight (E, D), an optional bias (E), and the parameters that they consist of."""

    weight: Tensor
    bias: Tensor | None
    weights: tuple[Tensor, ...]
    biases: tuple[Tensor, ...] = ()

    @classmethod
    def of(cls, layer: nn.Linear, *, bias: bool = True) -> Map:
        """Return the map of a layer. Without its bias, if a later kernel adds that."""
        biases = (layer.bias,) if bias and layer.bias is not None else ()
        return cls(layer.weight, biases[0] if biases else None, (layer.weight,), biases)

    @classmethod
    def stacked(cls, *layers: nn.Linear) -> Map:
        """Return several layers as one map. This moves their weights and biases into contiguous memory."""
        weights, biases = tuple(layer.weight for layer in layers), tuple(layer.bias for layer in layers)
        return cls(_concatenated(weights), _concatenated(biases), weights, biases)

    def __call__(self, shared: BackwardPass, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the product, and x for a residual connection.

        The gradient of that x is modified in place: it must have no other use.
        """
        parameters = *self.weights, *self.biases
        args = shared.counting(*parameters), rows_of(x), self.weight.detach(), self.bias, len(self.weights)
        out, residual = apply(_LinearMap, *args, *parameters)
        return out.view(*x.shape[:-1], self.weight.shape[0]), residual.view(x.shape)


def rows_of(x: Tensor) -> Tensor:
    """Return x (…, D) as contiguous (N, D), as the kernels need it."""
    return x.reshape(-1, x.shape[-1]).contiguous()


def _concatenated(parameters: Sequence[Tensor]) -> Tensor:
    """Return the parameters as one tensor, sharing their memory; they are moved unless they are adjacent."""
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
    """The map of x (N, D), and x itself."""

    @staticmethod
    def forward(
        ctx: Any, shared: BackwardPass, x: Tensor, weight: Tensor, bias: Tensor | None, n: int, *parameters: Tensor
    ) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(x, weight)
        ctx.shared, ctx.n, ctx.parameters = shared, n, parameters
        ctx.set_materialize_grads(False)
        return F.linear(x, weight, bias), x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor | None, residual: Tensor | None) -> tuple[Tensor | None, ...]:
        if slope is None:
            return None, residual, None, None, None, *(None for _ in ctx.parameters)
        (x, weight), slope = ctx.saved_tensors, slope.contiguous()
        gradients: list[Tensor | None] = [None] * len(ctx.parameters)
        if any(ctx.needs_input_grad[5:]):
            gradients = _gradients(ctx.shared, x, slope, ctx.parameters[: ctx.n], ctx.parameters[ctx.n :])
        by_x = residual
        if ctx.needs_input_grad[1]:
            by_x = slope @ weight if residual is None else residual.addmm_(slope, weight)
        return None, by_x, None, None, None, *gradients


def _gradients(
    shared: BackwardPass, x: Tensor, slope: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor]
) -> list[Tensor | None]:
    """Return the gradients of the weights and then of the biases, if there are any."""
    d, e = x.shape[1], slope.shape[1]
    sizes = [len(weight) for weight in weights]
    if biases and e >= MANY * d and d % ALIGNED == 0:
        by_weight, by_bias = _by_ones(x, slope)
        return [*by_weight.split(sizes), *by_bias.split(sizes)]
    gradients: list[Tensor | None] = [*shared.product(weights, x, slope).split(sizes)]
    if biases:
        gradients += shared.sums(biases, slope).split(sizes)
    return gradients


def _by_ones(x: Tensor, slope: Tensor) -> tuple[Tensor, Tensor]:
    """Compute both gradients in one product, by an input that is always 1: the large slope is read only once."""
    wide = slope.mT @ F.pad(x, (0, ALIGNED), value=1.0)
    return wide[:, : x.shape[1]].contiguous(), wide[:, -1].contiguous()
