"""Which weights are updated how: by Adam, whose weight decay is for matrices only, or in the layers by Muon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from ..backends.triton import over_tables
from ..core import PatchEmbedding, Positions, TokenEmbedding
from ..errors import ConfigError
from .adamw import MaskedAdamW, QuickAdamW
from .config import TrainingConfig
from .muon import Muon, matrices_of
from .parallel import Replica

TABLES = (nn.Embedding, TokenEmbedding, PatchEmbedding, Positions)


Optimiser = MaskedAdamW | Muon


class Paced:
    """An optimiser and its learning rate, a tensor on the device: `pace` times what the schedule says."""

    def __init__(self, optimiser: Optimiser, rate: Tensor, pace: float = 1.0) -> None:
        self.optimiser, self.rate, self.pace = optimiser, rate, pace

    @property
    def weights(self) -> list[nn.Parameter]:
        """What it updates."""
        return [weight for group in self.optimiser.param_groups for weight in group["params"]]

    def go_at(self, rate: float) -> None:
        """The schedule's rate for the next step."""
        self.rate.fill_(rate * self.pace)

    def step(self, found_inf: Tensor, factor: Tensor) -> None:
        """Update the weights by their gradients times a factor, unless `found_inf` is 1."""
        self.optimiser.found_inf = found_inf
        if isinstance(self.optimiser, QuickAdamW):
            self.optimiser.factor = factor.float()
        elif gradients := [weight.grad for weight in self.weights if weight.grad is not None]:
            torch._foreach_mul_(gradients, factor.to(gradients[0].dtype))  # of another dtype, it would be slow
        self.optimiser.step()


def undecayed(module: nn.Module) -> set[str]:
    """Biases and norms, which are vectors, and the tables of embeddings and positions: to shrink them helps nothing."""
    owners = (part for part in module.modules() if isinstance(part, TABLES))
    tables = {parameter for owner in owners for parameter in owner.parameters(recurse=False)}
    return {name for name, parameter in module.named_parameters() if parameter.dim() < 2 or parameter in tables}


def optimisers(held: Replica, config: TrainingConfig) -> list[Paced]:
    """Over all weights, shared ones once."""
    weights = held.weights
    device = next(iter(weights.values())).device
    found = []
    if config.optimiser == "muon":
        pieces, rate = dict(matrices_of(held.origin)), torch.zeros((), device=device)
        matrices = {name: weight for name, weight in weights.items() if weight in pieces}
        if not matrices:
            raise ConfigError("training.optimiser: muon is for the matrices of a Transformer's layers; take adamw")
        groups = [{"params": [weight], "pieces": pieces[weight]} for weight in matrices.values()]
        muon = Muon(groups, lr=rate, weight_decay=config.weight_decay)
        found.append(Paced(muon, rate, config.muon_rate / config.learning_rate))
        weights = {name: weight for name, weight in weights.items() if name not in matrices}
    spared, rate = undecayed(held.origin), torch.zeros((), device=device)
    groups = [
        {"params": [weights[name] for name in weights if name not in spared], "weight_decay": config.weight_decay},
        {"params": [weights[name] for name in weights if name in spared], "weight_decay": 0.0},
    ]
    kind = QuickAdamW if not held.divided and all(map(over_tables, weights.values())) else MaskedAdamW
    adamw = kind(
        [group for group in groups if group["params"]],
        lr=rate,
        betas=(config.betas[0], config.betas[1]),
        eps=config.epsilon,
        fused=True,
        capturable=device.type == "cuda",
    )
    return [*found, Paced(adamw, rate)]


def state_of(optimisers: Sequence[Paced], weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The optimisers' tensors by the names of the weights they belong to: exp_avg/encoder.norm.weight."""
    return {
        f"{key}/{name}": value
        for paced in optimisers
        for name, weight in weights.items()
        for key, value in paced.optimiser.state.get(weight, {}).items()
    }


def put_state(optimisers: Sequence[Paced], weights: Mapping[str, Tensor], tensors: Mapping[str, Tensor]) -> None:
    """Give optimisers the state that `state_of` took."""
    for paced in optimisers:
        paced.optimiser.state.clear()
    owner = {
        weight: paced.optimiser
        for paced in optimisers
        for group in paced.optimiser.param_groups
        for weight in group["params"]
    }
    for path, value in tensors.items():
        key, _, name = path.partition("/")
        weight = weights[name]
        if key in owner[weight].keeps:  # a run that was allowed to change its optimiser begins with an empty one
            owner[weight].state[weight][key] = value.to(weight.device, copy=True)
