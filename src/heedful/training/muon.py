"""Muon: for a matrix, momentum whose singular values are all made about 1 before it is used.

Every direction of a hidden matrix is thus learnt at the same pace, where Adam follows the few that dominate.

Shapes: N matrices of one shape, each R rows and C columns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from inspect import unwrap
from typing import Any

import torch
from torch import Tensor, nn

from ..core import GatedFeedForward, MultiHeadAttention, Stack

STEPS = 5
QUINTIC = 3.4445, -4.7750, 2.0315  # a x + b x³ + c x⁵ brings what lies between 0 and 1 near 1, small values quickly


def matrices_of(module: nn.Module) -> list[tuple[Tensor, int]]:
    """What Muon is for, and how many matrices each parameter packs: the linear maps inside the layers of stacks.

    Not embeddings, heads, norms, biases and positions: these are no maps from features to features.
    """
    layers = [layer for stack in module.modules() if isinstance(stack, Stack) for layer in stack.layers]
    parts = [part for layer in layers for part in layer.modules()]
    packed = {part.key_value: 2 for part in parts if isinstance(part, MultiHeadAttention)}
    packed |= {part.gate_up: 2 for part in parts if isinstance(part, GatedFeedForward)}
    maps = dict.fromkeys(part for part in parts if isinstance(part, nn.Linear))  # layers that share one name it once
    return [(part.weight, packed.get(part, 1)) for part in maps if part.weight.requires_grad]


class Muon(torch.optim.Optimizer):
    """Groups may say of how many `pieces`, stacked along the rows, their parameters are made (keys and values: 2).

    Pieces of one shape are worked on together. Nothing is read by the host: `lr` is a tensor on the device, and so
    is `found_inf`; where that is 1, everything stays as it is, the momentum too.
    """

    keeps = ("momentum",)  # of each weight
    add_param_group = unwrap(torch.optim.Optimizer.add_param_group)  # torch's wrapper imports its compiler: seconds
    found_inf: Tensor | None = None

    def __init__(
        self,
        groups: Iterable[dict[str, Any]],
        lr: Tensor,
        *,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(groups, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "pieces": 1})
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.dim() != 2 or parameter.shape[0] % group["pieces"]:
                    raise ValueError(
                        f"Muon is for matrices; {tuple(parameter.shape)} is not {group['pieces']} of them, one above "
                        "the other"
                    )
                self._momentum(parameter)  # now: what is made while a graph is captured is made anew at each replay

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update every parameter that has a gradient."""
        if closure is not None:
            raise ValueError("Muon takes one gradient a step; leave out the closure")
        alike: defaultdict[tuple[Any, ...], list[tuple[Tensor, ...]]] = defaultdict(list)
        for group in self.param_groups:
            settings = [group[name] for name in ("lr", "momentum", "weight_decay")]
            for parameter in group["params"]:
                if parameter.grad is not None:
                    own = parameter, parameter.grad, self._momentum(parameter)
                    shape = parameter.shape[0] // group["pieces"], parameter.shape[1]
                    alike[shape, parameter.dtype, *settings].extend(
                        zip(*(tensor.chunk(group["pieces"]) for tensor in own), strict=True)
                    )
        for (_, _, *settings), pieces in alike.items():
            self._update(pieces, *settings)

    def _update(self, pieces: list[tuple[Tensor, ...]], rate: Tensor, keep: float, decay: float) -> None:
        """Of pieces of one shape: weights, their gradients and their momenta."""
        weights, gradients, momenta = (list(tensors) for tensors in zip(*pieces, strict=True))
        gradient, held = torch.stack(gradients), torch.stack(momenta)  # (N, R, C)
        momentum = held.lerp(gradient, 1 - keep)
        rows, columns = gradient.shape[1:]
        change = orthogonal(gradient.lerp(momentum, keep)).to(gradient.dtype)  # one step ahead, as Nesterov does
        change = change.contiguous() * (-rate * max(1.0, rows / columns) ** 0.5)
        shrink = 1 - rate * decay
        if self.found_inf is not None:
            skip = self.found_inf.bool()
            momentum, shrink = torch.where(skip, held, momentum), torch.where(skip, 1.0, shrink)
            change = torch.where(skip, -0.0, change)  # what a sum leaves as it is to the bit, a negative zero too
        torch._foreach_copy_(momenta, momentum.unbind())
        if decay:
            torch._foreach_mul_(weights, shrink)
        torch._foreach_add_(weights, change.unbind())

    def _momentum(self, parameter: Tensor) -> Tensor:
        state: dict[str, Tensor] = self.state[parameter]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(parameter)
        return state["momentum"]


def orthogonal(matrices: Tensor) -> Tensor:
    """(N, R, C), each with its singular values brought near 1, by five steps of a quintic Newton–Schulz iteration."""
    wide = matrices if matrices.shape[1] <= matrices.shape[2] else matrices.mT
    x = wide.float()
    x = x / torch.linalg.vector_norm(x, dim=(1, 2), keepdim=True).clamp(min=1e-20)  # no singular value is above 1
    x = x.bfloat16() if x.is_cuda else x
    a, b, c = QUINTIC
    for _ in range(STEPS):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x if wide is matrices else x.mT
