"""What a process holds of the module that is trained, as the settings and the number of processes say.

Whoever updates weights sees `weights`, plain tensors by name; whoever computes sees `module`.
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


SMALL = 1e-6  # beside a norm of zero


class StepStatus(NamedTuple):
    """Whether a step is to be taken, and how far, all of it on the device: of gradients that belong to a sum over n
    tokens."""

    values: Tensor  # (5,) the total, the plain one, n; the norm of the mean's gradient; whether all was finite
    skip: Tensor  # 1 where it was not: then nothing shall change; 0 where it was
    factor: Tensor  # of the gradients: one over n, or less where they are to be clipped


def step_status(norm: Tensor, sums: Tensor, clip: float) -> StepStatus:
    """From the norm of the gradients and the sums (total, plain, n); a clip of 0 is none."""
    total, _, n = sums
    norm = norm / n
    finite = norm.isfinite() & total.isfinite()
    shorten = (clip / (norm + SMALL)).clamp(max=1.0) if clip else torch.ones_like(norm)
    values = torch.cat([sums, torch.stack([norm, finite]).to(sums.dtype)])
    return StepStatus(values, (~finite).float(), shorten / n)


class ReplicatedModel:
    """All of it. `origin` is the module as the job has it; `module`, a copy that shares its tensors, computes."""

    divided = False

    def __init__(self, origin: nn.Module) -> None:
        self.origin = origin
        self.module = self._computing(origin).train()  # for good: what is judged is another
        self.weights: dict[str, nn.Parameter] = {
            name: parameter for name, parameter in origin.named_parameters() if parameter.requires_grad
        }
        self._spare: nn.Module | None = None
        self._gradient_table: PointerTable | None = None

    def _computing(self, origin: nn.Module) -> nn.Module:
        copy: nn.Module = shared_copy(origin)
        return copy

    def gradients(self, loss: Tensor) -> list[Tensor | None]:
        """Of `loss`, for every weight; None for what has no part in it."""
        return list(torch.autograd.grad(loss, list(self.weights.values()), allow_unused=True))

    def apart(self) -> list[Tensor]:
        """Gradients of which the other processes have their own, which are to be added up."""
        return [weight.grad for weight in self.weights.values() if weight.grad is not None]

    def refresh(self) -> None:
        """The weights have changed."""

    def step_status(self, sums: Tensor, clip: float) -> StepStatus:
        """On the gradients of all that the processes hold, which belong to these sums."""
        gradients = [weight.grad for weight in self.weights.values() if weight.grad is not None]
        if self.divided or not gradients or not all(map(over_tables, gradients)):
            return step_status(self.norm(gradients), sums, clip)
        from ...backends.triton.foreach import PointerTable, judged_over_table

        self._gradient_table = PointerTable.of(gradients, old=self._gradient_table)
        return StepStatus(*judged_over_table(self._gradient_table, sums, clip, SMALL))

    def norm(self, gradients: list[Tensor]) -> Tensor:
        """Of tensors that are shaped like the weights, over all that the processes hold."""
        return torch.nn.utils.get_total_norm(gradients)

    def whole(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """What is held, shaped like the weights or a single number, as a process without others would have it.

        Names may have something before them: exp_avg/encoder.norm.weight.
        """
        return dict(tensors)

    def part(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The other way round."""
        return dict(tensors)

    def state(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Every tensor of the whole module by its name: its buffers, and these weights."""
        return {**weights_of(self.origin), **self.whole(weights)}

    def put(self, state: Mapping[str, Tensor]) -> None:
        """Fill the module, or what is held of it."""
        put_weights(self.origin, state)
        self.refresh()

    def judged(self, weights: Mapping[str, Tensor] | None) -> nn.Module:
        """A whole module for the first process to judge: with these weights, or with those that are held."""
        if weights is None:
            return self.origin.eval()
        if self._spare is None:
            self._spare = deepcopy(self.origin).requires_grad_(False).eval()
        put_weights(self._spare, self.state(weights))
        return self._spare

    def final(self, state: Mapping[str, Tensor]) -> nn.Module:
        """The job's own module with the state it shall end with, for the first process to deliver."""
        self.put(state)
        return self.origin.eval()


class MasterWeightModel(ReplicatedModel):
    """All of it, which computes with copies of the weights in bf16; gradients come in bf16 too."""

    def __init__(self, origin: nn.Module) -> None:
        super().__init__(origin)
        self.copies: list[Tensor] = [
            parameter for name, parameter in self.module.named_parameters() if name in self.weights
        ]
        rounded = all(copy.dtype == torch.bfloat16 for copy in self.copies)  # a BatchNorm's are not
        self._over_tables = rounded and all(map(over_tables, self.weights.values()))
        self._table: PointerTable | None = None

    def _computing(self, origin: nn.Module) -> nn.Module:
        module = deepcopy(origin, {id(buffer): buffer for buffer in origin.buffers()})  # one set of running means
        for part in module.modules():
            if not isinstance(part, BatchNorm):  # whose kernel wants the dtype of its running means
                for parameter in part.parameters(recurse=False):
                    parameter.data = parameter.data.to(torch.bfloat16)
        return module

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


def hold(module: nn.Module, config: TrainingConfig, world: SingleProcess) -> ReplicatedModel:
    """The module as this run holds it; every process begins with the first one's weights."""
    world.broadcast([*module.parameters(), *module.buffers()])
    if config.parallel == "shard" and isinstance(world, ProcessGroup):
        if config.optimiser == "muon":
            raise ConfigError("training.optimiser: muon needs whole matrices; for training.parallel=shard take adamw")
        if config.engine in ("graph", "compile"):
            raise ConfigError(
                f"training.engine: {config.engine} is for modules that are whole; for training.parallel=shard take auto"
            )
        from .sharded_model import ShardedModel  # here: it takes half a second to import

        return ShardedModel(module, world, rounded=config.precision != "float32")
    return MasterWeightModel(module) if config.precision == "bf16-weights" else ReplicatedModel(module)
