"""AdamW, Muon, and the schedules of their learning rate.

AdamW decays matrices only. Muon is for the matrices inside the layers: it brings all singular values of the momentum
near 1. Every direction of a hidden matrix is thus learned at the same pace, where Adam follows the few that dominate.
Neither waits for the device.

Shapes: N matrices of one shape, each R rows and C columns.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import unwrap
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from ..backends.triton import over_tables
from ..core import GatedFeedForward, MultiHeadAttention, PatchEmbedding, Positions, Stack, TokenEmbedding
from ..errors import ConfigError
from .config import TrainingConfig
from .parallel import ReplicatedModel

if TYPE_CHECKING:
    from ..backends.triton.foreach import PointerTable

TABLES = (nn.Embedding, TokenEmbedding, PatchEmbedding, Positions)
NEWTON_SCHULZ_STEPS = 5
QUINTIC = 3.4445, -4.7750, 2.0315  # a x + b x³ + c x⁵ moves values between 0 and 1 near 1, small ones fast

Schedule = Callable[[int], float]


class MaskedAdamW(torch.optim.AdamW):
    """AdamW that changes nothing, not even its step count, if `found_inf` is 1."""

    state_names = ("step", "exp_avg", "exp_avg_sq")  # of each weight
    found_inf: Tensor | None = None  # a float on the device, which the kernel reads


class _Tables(NamedTuple):
    """Tables of a set of weights on the device: their pieces, the addresses of their step counts, their decays."""

    pieces: PointerTable
    steps: Tensor
    decays: Tensor


class FusedAdamW(MaskedAdamW):
    """AdamW for float32 weights in two launches, one of them for the step counts.

    Torch's kernel needs several launches, one after another, for a list of small weights.
    """

    add_param_group = unwrap(torch.optim.Optimizer.add_param_group)  # torch's wrapper imports its compiler: seconds
    factor: Tensor  # for the gradients, on the device
    tables: _Tables | None = None

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        from ..backends.triton.foreach import adamw

        assert closure is None
        assert self.found_inf is not None
        decays = [(weight, group["weight_decay"]) for group in self.param_groups for weight in group["params"]]
        decays = [(weight, decay) for weight, decay in decays if weight.grad is not None]
        if not decays:
            return
        for weight, _ in decays:
            if not self.state[weight]:
                zeros = (torch.zeros_like(weight) for _ in range(2))
                self.state[weight] = dict(zip(self.state_names, (weight.new_zeros(()), *zeros), strict=True))
        self.tables = self._tables(decays)
        group = self.param_groups[0]  # the groups differ only in their decay
        adamw(*self.tables, group["lr"], self.factor, self.found_inf, group["betas"], group["eps"])

    def _tables(self, weight_decays: list[tuple[nn.Parameter, float]]) -> _Tables:
        """Return the last tables, or new ones if weights have moved or others have gradients."""
        from ..backends.triton.foreach import PointerTable

        weights, decays = zip(*weight_decays, strict=True)
        steps, means, squares = ([self.state[weight][name] for weight in weights] for name in self.state_names)
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        old = self.tables
        pieces = PointerTable.of(weights, gradients, means, squares, old=None if old is None else old.pieces)
        if old is not None and pieces is old.pieces:  # the step counts are allocated and moved with the means
            return old
        device = weights[0].device
        addresses = torch.tensor([step.data_ptr() for step in steps], device=device)
        return _Tables(pieces, addresses, torch.tensor(decays, device=device))


def matrices_of(module: nn.Module) -> list[tuple[Tensor, int]]:
    """Return the weights for Muon, those of linear maps in the layers of stacks, and how many matrices each one packs.

    Embeddings, heads, norms, biases and positions do not map features to features.
    """
    layers = [layer for stack in module.modules() if isinstance(stack, Stack) for layer in stack.layers]
    parts = [part for layer in layers for part in layer.modules()]
    packed = {part.kv_proj: 2 for part in parts if isinstance(part, MultiHeadAttention)}
    packed |= {part.gate_up_proj: 2 for part in parts if isinstance(part, GatedFeedForward)}
    maps = dict.fromkeys(part for part in parts if isinstance(part, nn.Linear))  # shared ones once
    return [(part.weight, packed.get(part, 1)) for part in maps if part.weight.requires_grad]


class Muon(torch.optim.Optimizer):
    """Muon for parameters that may consist of several `pieces`, stacked along the rows (keys and values: 2).

    Pieces of one shape are updated together. `lr` and `found_inf` are tensors on the device, which the host does not
    read. If `found_inf` is 1, nothing changes, not even the momentum.
    """

    state_names = ("momentum",)  # of each weight
    add_param_group = unwrap(torch.optim.Optimizer.add_param_group)  # torch's wrapper imports its compiler: seconds
    found_inf: Tensor | None = None

    def __init__(
        self, groups: Iterable[dict[str, Any]], lr: Tensor, *, momentum: float = 0.95, weight_decay: float = 0.0
    ) -> None:
        super().__init__(groups, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "pieces": 1})
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.dim() != 2 or parameter.shape[0] % group["pieces"]:
                    raise ValueError(
                        f"Muon needs matrices, but {tuple(parameter.shape)} is not {group['pieces']} matrices stacked "
                        "along the rows"
                    )
                self._momentum(parameter)  # now: zeros made while a graph is captured would be zero at each replay

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        if closure is not None:
            raise ValueError("Muon takes one gradient per step; omit the closure")
        alike: defaultdict[tuple[Any, ...], list[tuple[Tensor, ...]]] = defaultdict(list)
        for group in self.param_groups:
            settings = [group[name] for name in ("lr", "momentum", "weight_decay")]
            for parameter in group["params"]:
                if parameter.grad is not None:
                    tensors = parameter, parameter.grad, self._momentum(parameter)
                    shape = parameter.shape[0] // group["pieces"], parameter.shape[1]
                    alike[shape, parameter.dtype, *settings].extend(
                        zip(*(tensor.chunk(group["pieces"]) for tensor in tensors), strict=True)
                    )
        for (_, _, *settings), pieces in alike.items():
            self._update(pieces, *settings)

    def _update(self, pieces: list[tuple[Tensor, ...]], rate: Tensor, keep: float, decay: float) -> None:
        """Update pieces of one shape: triples of weight, gradient and momentum."""
        weights, gradients, momenta = (list(tensors) for tensors in zip(*pieces, strict=True))
        gradient, before = torch.stack(gradients), torch.stack(momenta)  # (N, R, C)
        momentum = before.lerp(gradient, 1 - keep)
        rows, columns = gradient.shape[1:]
        change = orthogonal(gradient.lerp(momentum, keep)).to(gradient.dtype)  # one step ahead, as Nesterov does
        change = change.contiguous() * (-rate * max(1.0, rows / columns) ** 0.5)
        shrink = 1 - rate * decay
        if self.found_inf is not None:
            skip = self.found_inf.bool()
            momentum, shrink = torch.where(skip, before, momentum), torch.where(skip, 1.0, shrink)
            change = torch.where(skip, -0.0, change)  # adding -0.0 leaves every number as it is, negative zero too
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
    """Bring the singular values of matrices (N, R, C) near 1, by five steps of a quintic Newton–Schulz iteration."""
    wide = matrices if matrices.shape[1] <= matrices.shape[2] else matrices.mT
    x = wide.float()
    x = x / torch.linalg.vector_norm(x, dim=(1, 2), keepdim=True).clamp(min=1e-20)  # singular values are at most 1
    x = x.bfloat16() if x.is_cuda else x
    a, b, c = QUINTIC
    for _ in range(NEWTON_SCHULZ_STEPS):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x if wide is matrices else x.mT


Optimizer = MaskedAdamW | Muon


class ScheduledOptimizer:
    """An optimizer and its learning rate, a tensor on the device: `scale` times that of the schedule."""

    def __init__(self, optimizer: Optimizer, rate: Tensor, scale: float = 1.0) -> None:
        self.optimizer, self.rate, self.scale = optimizer, rate, scale

    @property
    def weights(self) -> list[nn.Parameter]:
        return [weight for group in self.optimizer.param_groups for weight in group["params"]]

    def set_learning_rate(self, rate: float) -> None:
        self.rate.fill_(rate * self.scale)

    def step(self, found_inf: Tensor, factor: Tensor) -> None:
        """Update the weights by their gradients times a factor, unless `found_inf` is 1."""
        self.optimizer.found_inf = found_inf
        if isinstance(self.optimizer, FusedAdamW):
            self.optimizer.factor = factor.float()
        elif gradients := [weight.grad for weight in self.weights if weight.grad is not None]:
            torch._foreach_mul_(gradients, factor.to(gradients[0].dtype))  # slow with a factor of another dtype
        self.optimizer.step()


def undecayed(module: nn.Module) -> set[str]:
    """Return the names of weights without weight decay: biases, norms, and tables of embeddings and positions."""
    owners = (part for part in module.modules() if isinstance(part, TABLES))
    tables = {parameter for owner in owners for parameter in owner.parameters(recurse=False)}
    return {name for name, parameter in module.named_parameters() if parameter.dim() < 2 or parameter in tables}


def build_optimizers(model: ReplicatedModel, config: TrainingConfig) -> list[ScheduledOptimizer]:
    """Return the optimizers for all weights of a model.

    Raises:
        ConfigError: if Muon is selected for a model without layers.
    """
    weights = model.weights
    device = next(iter(weights.values())).device
    optimizers = []
    if config.optimizer == "muon":
        pieces, rate = dict(matrices_of(model.origin)), torch.zeros((), device=device)
        matrices = {name: weight for name, weight in weights.items() if weight in pieces}
        if not matrices:
            raise ConfigError("training.optimizer: muon is for the matrices of a Transformer's layers; use adamw")
        groups = [{"params": [weight], "pieces": pieces[weight]} for weight in matrices.values()]
        muon = Muon(groups, lr=rate, weight_decay=config.weight_decay)
        optimizers.append(ScheduledOptimizer(muon, rate, config.muon_learning_rate / config.learning_rate))
        weights = {name: weight for name, weight in weights.items() if name not in matrices}
    no_decay, rate = undecayed(model.origin), torch.zeros((), device=device)
    groups = [
        {"params": [weights[name] for name in weights if name not in no_decay], "weight_decay": config.weight_decay},
        {"params": [weights[name] for name in weights if name in no_decay], "weight_decay": 0.0},
    ]
    kind = FusedAdamW if not model.divided and all(map(over_tables, weights.values())) else MaskedAdamW
    adamw = kind(
        [group for group in groups if group["params"]],
        lr=rate,
        betas=(config.betas[0], config.betas[1]),
        eps=config.epsilon,
        fused=True,
        capturable=device.type == "cuda",
    )
    return [*optimizers, ScheduledOptimizer(adamw, rate)]


def state_of(optimizers: Sequence[ScheduledOptimizer], weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the optimizers' tensors by the names of the weights they belong to: exp_avg/encoder.norm.weight."""
    return {
        f"{key}/{name}": value
        for scheduled in optimizers
        for name, weight in weights.items()
        for key, value in scheduled.optimizer.state.get(weight, {}).items()
    }


def load_state(
    optimizers: Sequence[ScheduledOptimizer], weights: Mapping[str, Tensor], tensors: Mapping[str, Tensor]
) -> None:
    """Load the state that `state_of` returned."""
    for scheduled in optimizers:
        scheduled.optimizer.state.clear()
    owner: dict[Tensor, Optimizer] = {
        weight: scheduled.optimizer for scheduled in optimizers for weight in scheduled.weights
    }
    for path, value in tensors.items():
        key, _, name = path.partition("/")
        weight = weights[name]
        if key in owner[weight].state_names:  # else the run has changed its optimizer, which starts without state
            owner[weight].state[weight][key] = value.to(weight.device, copy=True)


def schedule(config: TrainingConfig, total: int) -> Schedule:
    """Return the learning rate as a function of the step. The `total` steps count from 1, as in the paper.

    The rate rises linearly to its peak. Then it falls with 1/√step ("inverse_sqrt"), falls by half a cosine to a share
    of the peak at the last step ("cosine"), or stays ("constant"). The paper's d_model^−½ · min(step^−½,
    step · warmup^−1.5) is "inverse_sqrt" with the peak (d_model · warmup)^−½.
    """
    peak, warmup, final = config.learning_rate, config.warmup_steps, config.min_lr_ratio

    def rate(step: int) -> float:
        if step < warmup:
            return peak * (step / warmup)
        if config.schedule == "inverse_sqrt":
            return peak * math.sqrt(warmup / step)
        if config.schedule == "constant":
            return peak
        done = min(1.0, (step - warmup) / max(1, total - warmup))
        return peak * (final + (1 - final) * (1 + math.cos(math.pi * done)) / 2)

    return rate
