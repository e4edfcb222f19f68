"""Adam with decoupled weight decay, for matrices only."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..core import PatchEmbedding, Positions, TokenEmbedding

TABLES = (nn.Embedding, TokenEmbedding, PatchEmbedding, Positions)


class MaskedAdamW(torch.optim.AdamW):
    """AdamW in one fused kernel, which leaves everything as it is, the step count too, where `found_inf` is 1."""

    found_inf: Tensor | None = None  # a float on the device; the kernel reads it there


def undecayed(module: nn.Module) -> set[nn.Parameter]:
    """Biases and norms, which are vectors, and the tables of embeddings and positions: to shrink them helps nothing."""
    vectors = {parameter for parameter in module.parameters() if parameter.dim() < 2}
    owners = (part for part in module.modules() if isinstance(part, TABLES))
    return vectors.union(*(owner.parameters(recurse=False) for owner in owners))


def adamw(
    module: nn.Module, rate: Tensor, *, weight_decay: float, betas: tuple[float, float], epsilon: float
) -> MaskedAdamW:
    """An optimiser over the module's parameters, shared ones once. `rate` is a tensor that the caller fills."""
    spared = undecayed(module)
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in parameters if p not in spared], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p in spared], "weight_decay": 0.0},
    ]
    return MaskedAdamW([group for group in groups if group["params"]], lr=rate, betas=betas, eps=epsilon, fused=True)


def state_of(optimiser: torch.optim.Optimizer, module: nn.Module) -> dict[str, Tensor]:
    """The optimiser's tensors by the names of the parameters they belong to."""
    return {
        f"{key}/{name}": value
        for name, parameter in module.named_parameters()
        for key, value in optimiser.state.get(parameter, {}).items()
    }


def put_state(optimiser: torch.optim.Optimizer, module: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Give an optimiser the state that `state_of` took."""
    parameters = dict(module.named_parameters())
    optimiser.state.clear()
    for path, value in tensors.items():
        key, _, name = path.partition("/")
        parameter = parameters[name]
        optimiser.state[parameter][key] = value.to(parameter.device, copy=True)
