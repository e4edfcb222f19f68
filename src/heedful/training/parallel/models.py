"""The part of the trained module that a process has in memory: all of it, also in bf16, or a shard.

The optimizers use `weights`, plain tensors by name; forward and backward use `module`.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

from ...backends.registry import shared_copy
from ...backends.triton import over_tables
from ...core import BatchNorm
from ...errors import ConfigError
from ...families.weights import put_weights, weights_of
from ..config import TrainingConfig
from .process_group import ProcessGroup, SingleProcess

if TYPE_CHECKING:
    from ...backends.triton.foreach import PointerTable


EPSILON = 1e-6  # added to a norm before dividing by it


class StepStatus(NamedTuple):
    """Whether a step is valid, and the factor for its gradients. All values are on the device."""

    values: Tensor  # (5,) total, plain, n, the norm of the mean's gradient, and whether all of it is finite
    skip: Tensor  # 1 if something is not finite, so that the step must change nothing; else 0
    factor: Tensor  # for the gradients: 1 / n, or less where they are clipped


def step_status(norm: Tensor, sums: Tensor, max_norm: float) -> StepStatus:
    """Compute the status from the gradients' norm and the sums (total, plain, n). A `max_norm` of 0 clips nothing."""
    total, _, n = sums
    norm = norm / n
    finite = norm.isfinite() & total.isfinite()
    clipping = (max_norm / (norm + EPSILON)).clamp(max=1.0) if max_norm else torch.ones_like(norm)
    values = torch.cat([sums, torch.stack([norm, finite]).to(sums.dtype)])
    return StepStatus(values, (~finite).float(), clipping / n)


class ReplicatedModel:
    """The whole module. `origin` is the objective's module; `module` is a copy that shares its tensors and computes."""

    divided = False

    def __init__(self, origin: nn.Module, module: nn.Module | None = None) -> None:
        self.origin = origin
        self.module: nn.Module = shared_copy(origin) if module is None else module
        self.module.train()  # always in training mode: another one is evaluated
        self.weights: dict[str, nn.Parameter] = {
            name: parameter for name, parameter in origin.named_parameters() if parameter.requires_grad
        }
        self._evaluation_copy: nn.Module | None = None
        self._gradient_table: PointerTable | None = None

    def gradients(self, loss: Tensor) -> list[Tensor | None]:
        """Return the gradient of `loss` for every weight; None for a weight that it does not depend on."""
        return list(torch.autograd.grad(loss, list(self.weights.values()), allow_unused=True))

    def unreduced_gradients(self) -> list[Tensor]:
        """Return the gradients that must be summed over the processes."""
        return [weight.grad for weight in self.weights.values() if weight.grad is not None]

    def refresh(self) -> None:
        """Called after the weights have changed."""

    def step_status(self, sums: Tensor, max_norm: float) -> StepStatus:
        """Return the status of a step from the gradients in all processes and the loss sums."""
        gradients = [weight.grad for weight in self.weights.values() if weight.grad is not None]
        if not self.divided and gradients and all(map(over_tables, gradients)):
            from ...backends.triton.foreach import PointerTable, fused_step_status

            self._gradient_table = PointerTable.of(gradients, old=self._gradient_table)
            return StepStatus(*fused_step_status(self._gradient_table, sums, max_norm, EPSILON))
        return step_status(self.norm(gradients), sums, max_norm)

    def norm(self, gradients: list[Tensor]) -> Tensor:
        """Return the norm of the gradients over all processes."""
        return torch.nn.utils.get_total_norm(gradients)

    def gather(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return whole tensors from those of all processes, for the first process.

        They have the shapes of the weights or are scalars. A name may have a prefix: exp_avg/encoder.norm.weight.
        """
        return dict(tensors)

    def shard(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return this process's part of whole tensors."""
        return dict(tensors)

    def state(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return every tensor of the whole module by its name: its buffers, and these weights."""
        return {**weights_of(self.origin), **self.gather(weights)}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Load the state of the whole module into this process's part."""
        put_weights(self.origin, state)
        self.refresh()

    def evaluation_module(self, weights: Mapping[str, Tensor] | None) -> nn.Module:
        """Return a whole module for the first process to evaluate, with these weights or, if None, the trained ones."""
        if weights is None:
            return self.origin.eval()
        if self._evaluation_copy is None:
            self._evaluation_copy = deepcopy(self.origin).requires_grad_(False).eval()
        put_weights(self._evaluation_copy, self.state(weights))
        return self._evaluation_copy

    def final_module(self, state: Mapping[str, Tensor]) -> nn.Module:
        """Return the objective's module with its final state, for the first process."""
        self.load(state)
        return self.origin.eval()


class MasterWeightModel(ReplicatedModel):
    """The whole module with float32 weights, which computes with bf16 copies of them and gets bf16 gradients."""

    def __init__(self, origin: nn.Module) -> None:
        module = deepcopy(origin, {id(buffer): buffer for buffer in origin.buffers()})  # shares the running means
        for part in module.modules():
            if not isinstance(part, BatchNorm):  # its kernel needs the dtype of its running means
                for parameter in part.parameters(recurse=False):
                    parameter.data = parameter.data.to(torch.bfloat16)
        super().__init__(origin, module)
        self.copies: list[Tensor] = [
            parameter for name, parameter in self.module.named_parameters() if name in self.weights
        ]
        is_bf16 = all(copy.dtype == torch.bfloat16 for copy in self.copies)  # not those of a BatchNorm
        self._over_tables = is_bf16 and all(map(over_tables, self.weights.values()))
        self._table: PointerTable | None = None

    def gradients(self, loss: Tensor) -> list[Tensor | None]:
        return list(torch.autograd.grad(loss, self.copies, allow_unused=True))

    @torch.no_grad()
    def refresh(self) -> None:
        exact: list[Tensor] = list(self.weights.values())
        if not self._over_tables:
            torch._foreach_copy_(self.copies, exact)
            return
        from ...backends.triton.foreach import PointerTable, round_to_bf16

        self._table = PointerTable.of(exact, self.copies, old=self._table)
        round_to_bf16(self._table)


def parallelize(module: nn.Module, config: TrainingConfig, world: SingleProcess) -> ReplicatedModel:
    """Return the module as the config distributes it; every process starts with the weights of the first one.

    Raises:
        ConfigError: for settings that a sharded model does not support.
    """
    world.broadcast([*module.parameters(), *module.buffers()])
    if config.parallel == "shard" and isinstance(world, ProcessGroup):
        if config.optimizer == "muon":
            raise ConfigError("training.optimizer: muon needs whole matrices; with training.parallel=shard use adamw")
        if config.engine in ("graph", "compile"):
            raise ConfigError(
                f"training.engine: {config.engine} needs a whole module; with training.parallel=shard use auto"
            )
        from .sharded_model import ShardedModel  # here: it takes half a second to import

        return ShardedModel(module, world, rounded=config.precision != "float32")
    return MasterWeightModel(module) if config.precision == "bf16-weights" else ReplicatedModel(module)
