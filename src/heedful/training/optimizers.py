"""Which weights are updated how, and how fast: AdamW, Muon, and the schedules of their learning rate.

AdamW decays matrices only. Muon is for the matrices inside the layers: momentum whose singular values are all made
about 1 before it is used. Every direction of a hidden matrix is thus learnt at the same pace, where Adam follows the
few that dominate. In both nothing is read by the host.

Shapes: N matrices of one shape, each R rows and C columns.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
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
STEPS = 5
QUINTIC = 3.4445, -4.7750, 2.0315  # a x + b x³ + c x⁵ brings what lies between 0 and 1 near 1, small values quickly

Schedule = Callable[[int], float]


class MaskedAdamW(torch.optim.AdamW):
    """It leaves everything as it is, the step count too, where `found_inf` is 1."""

    keeps = ("step", "exp_avg", "exp_avg_sq")  # of each weight
    found_inf: Tensor | None = None  # a float on the device; the kernel reads it there


class _Tables(NamedTuple):
    """Of a set of weights on the device: their pieces, the addresses of their step counts, their decays."""

    pieces: PointerTable
    steps: Tensor
    decays: Tensor


class QuickAdamW(MaskedAdamW):
    """Of weights in float32, in one launch, and one for their counts: torch's kernel takes a list of small weights in
    several, one after another."""

    add_param_group = unwrap(torch.optim.Optimizer.add_param_group)  # torch's wrapper imports its compiler: seconds
    factor: Tensor  # of the gradients, on the device
    tables: _Tables | None = None

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update every weight that has a gradient."""
        from ..backends.triton.foreach import adamw

        assert closure is None
        assert self.found_inf is not None
        given = [(weight, group["weight_decay"]) for group in self.param_groups for weight in group["params"]]
        given = [(weight, decay) for weight, decay in given if weight.grad is not None]
        if not given:
            return
        for weight, _ in given:
            if not self.state[weight]:
                zeros = (torch.zeros_like(weight) for _ in range(2))
                self.state[weight] = dict(zip(self.keeps, (weight.new_zeros(()), *zeros), strict=True))
        self.tables = self._tables(given)
        group = self.param_groups[0]  # they differ in their decay alone
        adamw(*self.tables, group["lr"], self.factor, self.found_inf, group["betas"], group["eps"])

    def _tables(self, given: list[tuple[nn.Parameter, float]]) -> _Tables:
        """Made anew when weights have moved, or others have gradients."""
        from ..backends.triton.foreach import PointerTable

        weights, states = [weight for weight, _ in given], [self.state[weight] for weight, _ in given]
        steps, means, squares = ([state[name] for state in states] for name in self.keeps)
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        old = self.tables
        pieces = PointerTable.of(weights, gradients, means, squares, old=None if old is None else old.pieces)
        if old is not None and pieces is old.pieces:  # the counts are made and moved with the means
            return old
        where = weights[0].device
        addresses = torch.tensor([step.data_ptr() for step in steps], device=where)
        return _Tables(pieces, addresses, torch.tensor([decay for _, decay in given], device=where))


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
        self, groups: Iterable[dict[str, Any]], lr: Tensor, *, momentum: float = 0.95, weight_decay: float = 0.0
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


Optimizer = MaskedAdamW | Muon


class ScheduledOptimizer:
    """An optimizer and its learning rate, a tensor on the device: `pace` times what the schedule says."""

    def __init__(self, optimizer: Optimizer, rate: Tensor, pace: float = 1.0) -> None:
        self.optimizer, self.rate, self.pace = optimizer, rate, pace

    @property
    def weights(self) -> list[nn.Parameter]:
        """What it updates."""
        return [weight for group in self.optimizer.param_groups for weight in group["params"]]

    def set_learning_rate(self, rate: float) -> None:
        """The schedule's rate for the next step."""
        self.rate.fill_(rate * self.pace)

    def step(self, found_inf: Tensor, factor: Tensor) -> None:
        """Update the weights by their gradients times a factor, unless `found_inf` is 1."""
        self.optimizer.found_inf = found_inf
        if isinstance(self.optimizer, QuickAdamW):
            self.optimizer.factor = factor.float()
        elif gradients := [weight.grad for weight in self.weights if weight.grad is not None]:
            torch._foreach_mul_(gradients, factor.to(gradients[0].dtype))  # of another dtype, it would be slow
        self.optimizer.step()


def undecayed(module: nn.Module) -> set[str]:
    """Biases and norms, which are vectors, and the tables of embeddings and positions: to shrink them helps nothing."""
    owners = (part for part in module.modules() if isinstance(part, TABLES))
    tables = {parameter for owner in owners for parameter in owner.parameters(recurse=False)}
    return {name for name, parameter in module.named_parameters() if parameter.dim() < 2 or parameter in tables}


def build_optimizers(held: ReplicatedModel, config: TrainingConfig) -> list[ScheduledOptimizer]:
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
        found.append(ScheduledOptimizer(muon, rate, config.muon_rate / config.learning_rate))
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
    return [*found, ScheduledOptimizer(adamw, rate)]


def state_of(optimizers: Sequence[ScheduledOptimizer], weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The optimizers' tensors by the names of the weights they belong to: exp_avg/encoder.norm.weight."""
    return {
        f"{key}/{name}": value
        for paced in optimizers
        for name, weight in weights.items()
        for key, value in paced.optimizer.state.get(weight, {}).items()
    }


def put_state(
    optimizers: Sequence[ScheduledOptimizer], weights: Mapping[str, Tensor], tensors: Mapping[str, Tensor]
) -> None:
    """Give optimizers the state that `state_of` took."""
    for paced in optimizers:
        paced.optimizer.state.clear()
    owner: dict[Tensor, Optimizer] = {weight: paced.optimizer for paced in optimizers for weight in paced.weights}
    for path, value in tensors.items():
        key, _, name = path.partition("/")
        weight = weights[name]
        if key in owner[weight].keeps:  # a run that was allowed to change its optimizer begins with an empty one
            owner[weight].state[weight][key] = value.to(weight.device, copy=True)


def inverse_sqrt(step: int, *, peak: float, warmup: int) -> float:
    """The paper's schedule: up in a straight line, then down with 1/√step.

    Its formula d_model^−½ · min(step^−½, step · warmup^−1.5) has the peak (d_model · warmup)^−½.
    """
    return peak * min(step / warmup, math.sqrt(warmup / step))


def cosine(step: int, *, peak: float, warmup: int, total: int, final_share: float) -> float:
    """Up in a straight line, then half a cosine down to a share of the peak at the last step."""
    if step < warmup:
        return peak * step / warmup
    done = min(1.0, (step - warmup) / max(1, total - warmup))
    return peak * (final_share + (1 - final_share) * (1 + math.cos(math.pi * done)) / 2)


def constant(step: int, *, peak: float, warmup: int) -> float:
    """Up in a straight line, then level."""
    return peak * min(1.0, step / max(1, warmup))


def schedule(config: TrainingConfig, total: int) -> Schedule:
    """The learning rate as a pure function of the step, over `total` steps, which count from 1 as the paper's do."""
    peak, warmup = config.learning_rate, config.warmup_steps
    if config.schedule == "cosine":
        return partial(cosine, peak=peak, warmup=warmup, total=total, final_share=config.final_share)
    return partial(inverse_sqrt if config.schedule == "inverse_sqrt" else constant, peak=peak, warmup=warmup)
