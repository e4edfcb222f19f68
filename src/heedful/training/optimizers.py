"""AdamW, Muon, the schedules of their learning rate, and the update of all weights and of their average.

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


class DeviceOptimizer(torch.optim.Optimizer):
    """An optimizer whose learning rate and `found_inf` are tensors on the device, which the host does not read.

    If `found_inf` is 1, a step changes nothing, neither momentum nor step counts.
    """

    state_names: tuple[str, ...]  # of each weight
    add_param_group = unwrap(torch.optim.Optimizer.add_param_group)  # torch's wrapper imports its compiler: seconds
    found_inf: Tensor | None = None
    scale = 1.0  # of the learning rate, relative to that of the schedule

    @property
    def weights(self) -> list[nn.Parameter]:
        return [weight for group in self.param_groups for weight in group["params"]]

    def set_learning_rate(self, rate: float) -> None:
        self.param_groups[0]["lr"].fill_(rate * self.scale)  # all groups share the tensor

    def update(self, found_inf: Tensor, factor: Tensor) -> None:
        """Update the weights by their gradients times a factor, unless `found_inf` is 1."""
        if gradients := [weight.grad for weight in self.weights if weight.grad is not None]:
            torch._foreach_mul_(gradients, factor.to(gradients[0].dtype))  # slow with a factor of another dtype
        self.found_inf = found_inf
        self.step()


class MaskedAdamW(DeviceOptimizer, torch.optim.AdamW):
    """AdamW by torch's fused kernel, which reads `found_inf`."""

    state_names = ("step", "exp_avg", "exp_avg_sq")


class _Tables(NamedTuple):
    """Tables of a set of weights on the device: their pieces, the addresses of their step counts, their decays."""

    pieces: PointerTable
    steps: Tensor
    decays: Tensor


class FusedAdamW(MaskedAdamW):
    """AdamW for float32 weights in two launches, one of them for the step counts.

    Torch's kernel needs several launches, one after another, for a list of small weights.
    """

    factor: Tensor  # for the gradients, on the device
    tables: _Tables | None = None

    def update(self, found_inf: Tensor, factor: Tensor) -> None:
        self.found_inf, self.factor = found_inf, factor.float()
        self.step()

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


class Muon(DeviceOptimizer):
    """Muon for parameters that may consist of several `pieces`, stacked along the rows (keys and values: 2).

    Pieces of one shape are updated together.
    """

    state_names = ("momentum",)

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


def undecayed(module: nn.Module) -> set[str]:
    """Return the names of weights without weight decay: biases, norms, and tables of embeddings and positions."""
    owners = (part for part in module.modules() if isinstance(part, TABLES))
    tables = {parameter for owner in owners for parameter in owner.parameters(recurse=False)}
    return {name for name, parameter in module.named_parameters() if parameter.dim() < 2 or parameter in tables}


def build_optimizers(model: ReplicatedModel, config: TrainingConfig) -> list[DeviceOptimizer]:
    """Return the optimizers for all weights of a model.

    Raises:
        ConfigError: if Muon is selected for a model without layers.
    """
    weights = model.weights
    device = next(iter(weights.values())).device
    optimizers: list[DeviceOptimizer] = []
    if config.optimizer == "muon":
        pieces = dict(matrices_of(model.origin))
        matrices = {name: weight for name, weight in weights.items() if weight in pieces}
        if not matrices:
            raise ConfigError("training.optimizer: muon is for the matrices of a Transformer's layers; use adamw")
        groups = [{"params": [weight], "pieces": pieces[weight]} for weight in matrices.values()]
        muon = Muon(groups, lr=torch.zeros((), device=device), weight_decay=config.weight_decay)
        muon.scale = config.muon_learning_rate / config.learning_rate
        optimizers.append(muon)
        weights = {name: weight for name, weight in weights.items() if name not in matrices}
    no_decay = undecayed(model.origin)
    groups = [
        {"params": [weights[name] for name in weights if name not in no_decay], "weight_decay": config.weight_decay},
        {"params": [weights[name] for name in weights if name in no_decay], "weight_decay": 0.0},
    ]
    kind = FusedAdamW if not model.divided and all(map(over_tables, weights.values())) else MaskedAdamW
    adamw = kind(
        [group for group in groups if group["params"]],
        lr=torch.zeros((), device=device),
        betas=(config.betas[0], config.betas[1]),
        eps=config.epsilon,
        fused=True,
        capturable=device.type == "cuda",
    )
    return [*optimizers, adamw]


def state_of(optimizers: Sequence[DeviceOptimizer], weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the optimizers' tensors by the names of the weights they belong to: exp_avg/encoder.norm.weight."""
    return {
        f"{key}/{name}": value
        for optimizer in optimizers
        for name, weight in weights.items()
        for key, value in optimizer.state.get(weight, {}).items()
    }


def load_state(
    optimizers: Sequence[DeviceOptimizer], weights: Mapping[str, Tensor], tensors: Mapping[str, Tensor]
) -> None:
    """Load the state that `state_of` returned."""
    for optimizer in optimizers:
        optimizer.state.clear()
    owner: dict[Tensor, DeviceOptimizer] = {
        weight: optimizer for optimizer in optimizers for weight in optimizer.weights
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


# ---- the update of the weights and of their average, without waiting for the device ----


class Update:
    """Scales, clips, optimizes and averages. A loss or gradient that is not finite changes nothing.

    The same holds for a loss above `max_loss`, a scalar on the device.
    """

    def __init__(self, model: ReplicatedModel, config: TrainingConfig, total: int) -> None:
        self.model, self.config = model, config
        self.plan(total)
        self.ema_weight = torch.zeros((), device=next(iter(model.weights.values())).device)
        self.max_loss = torch.full_like(self.ema_weight, torch.inf)
        self.optimizers = build_optimizers(model, config)
        self.ema = Ema(model.weights) if config.ema_decay else None

    def plan(self, total: int) -> None:
        """Fit the schedule to the number of updates of the run; a warm-up takes at most a quarter of them."""
        self.total_steps = total
        warmup = min(self.config.warmup_steps, max(1, total // 4))
        self.schedule = schedule(self.config.changed(warmup_steps=warmup), total)

    def prepare(self, step: int) -> None:
        """Copy the values that depend on the step to the device."""
        for optimizer in self.optimizers:
            optimizer.set_learning_rate(self.schedule(step))
        if self.ema is not None:
            self.ema_weight.fill_(ema_weight(step, self.config.ema_decay))

    @torch.no_grad()
    def __call__(self, sums: Tensor) -> Tensor:
        """Update the weights by their gradients. Return the values (total, plain, n, norm, finite) of the step."""
        status = self.model.step_status(sums, self.config.max_grad_norm)
        skip = torch.maximum(status.skip, (sums[0] / sums[2] > self.max_loss).to(status.skip.dtype))
        for optimizer in self.optimizers:
            optimizer.update(skip, status.factor)
        if self.ema is not None:
            self.ema.update(self.ema_weight * (1 - skip))
        self.model.refresh()
        return status.values


def ema_weight(step: int, decay: float) -> float:
    """Return the share of the new weights in the average: large at first, so that the initial ones are forgotten."""
    return 1.0 - min(decay, (1 + step) / (10 + step))


class Ema:
    """The exponential moving average of weights, by their names."""

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        self.means = {name: weight.detach().clone() for name, weight in weights.items()}
        self._weights = list(weights.values())

    @torch.no_grad()
    def update(self, weight: Tensor) -> None:
        """Move the average towards the weights by `weight`, a scalar on the device. 0 changes nothing."""
        means = list(self.means.values())
        changes = torch._foreach_sub(self._weights, means)
        torch._foreach_mul_(changes, weight)
        torch._foreach_add_(means, changes)


def mean_of(snapshots: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Return the mean of several sets of weights, summed in float64. Integers are taken from the last set.

    Raises:
        ValueError: if there are no sets.
    """
    if not snapshots:
        raise ValueError("there are no weights to average")
    mean = dict(snapshots[-1])
    for name, value in mean.items():
        if value.is_floating_point():
            total = torch.zeros_like(value, dtype=torch.float64)
            for snapshot in snapshots:
                total += snapshot[name]
            mean[name] = (total / len(snapshots)).to(value.dtype)
    return mean
