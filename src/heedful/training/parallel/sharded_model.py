"""A model that FSDP2 shards over the processes: each has some rows of every weight.

A layer's weights are gathered just before it computes and freed afterwards; its gradients are reduced and scattered in
the backward pass. The optimizers see plain local tensors, which share their memory with FSDP's.
"""

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor

from ...core import BatchNorm, Stack
from ...families.weights import put_weights, weights_of
from .models import ReplicatedModel
from .process_group import ProcessGroup


class ShardedModel(ReplicatedModel):
    """A sharded module. `origin` stays whole, on the CPU: the first process loads it to evaluate and for the end."""

    divided = True

    def __init__(self, origin: nn.Module, world: ProcessGroup, *, rounded: bool = False) -> None:
        self.origin, self.world = origin, world
        self.device = next(origin.parameters()).device
        self.module = deepcopy(origin).train()
        self.origin.to("cpu")
        self._divide(rounded)
        self.shapes = {name: parameter.shape for name, parameter in origin.named_parameters()}
        self._divided = {name: weight for name, weight in self.module.named_parameters() if weight.requires_grad}
        self.weights = {name: nn.Parameter(_local(weight.detach())) for name, weight in self._divided.items()}

    def _divide(self, rounded: bool) -> None:
        # FSDP warns that outputs which are views, as in some models, must not be written to. Nothing here does that.
        warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view tensor", UserWarning)
        mesh = init_device_mesh(self.device.type, (self.world.size,))
        policy = MixedPrecisionPolicy(torch.bfloat16, torch.float32) if rounded else MixedPrecisionPolicy()
        frozen = {parameter for parameter in self.module.parameters() if not parameter.requires_grad}
        norms = [part for part in self.module.modules() if isinstance(part, BatchNorm)] if rounded else []
        for norm in norms:  # their kernel needs the dtype of their running means
            fully_shard(norm, mesh=mesh, ignored_params=frozen)
        for part in (*_layers(self.module), self.module):
            fully_shard(part, mesh=mesh, mp_policy=policy, ignored_params=frozen)
        for part in self.module.modules():
            if isinstance(part, FSDPModule):  # sums instead of means: the update divides by the number of tokens
                part.set_gradient_divide_factor(1.0)
                part.set_force_sum_reduction_for_comms(True)

    def gradients(self, loss: Tensor) -> list[Tensor | None]:
        torch.autograd.backward(loss)
        gradients = []
        for weight in self._divided.values():
            gradients.append(None if weight.grad is None else _local(weight.grad))
            weight.grad = None
        return gradients

    def unreduced_gradients(self) -> list[Tensor]:
        return []

    def norm(self, gradients: list[Tensor]) -> Tensor:
        square = torch.nn.utils.get_total_norm(gradients).square()
        self.world.all_reduce([square])
        return square.sqrt()

    def refresh(self) -> None:
        self.origin.to("cpu")  # it was on the device to be evaluated

    def gather(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        gathered = {name: self._gather(name, tensor) for name, tensor in tensors.items()}
        return gathered if self.world.rank == 0 else {}

    def shard(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {name: self._shard(name, tensor) for name, tensor in tensors.items()}

    def state(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        tensors = weights_of(self.origin)
        buffers = {name: buffer for name, buffer in self.module.named_buffers() if name in tensors}
        return {**tensors, **buffers, **self.gather(weights)}

    @torch.no_grad()
    def load(self, state: Mapping[str, Tensor]) -> None:
        put_weights(self.origin, state)
        tensors = weights_of(self.origin)
        for name, weight in self.weights.items():
            weight.copy_(self._shard(name, tensors[name]))
        for name, buffer in self.module.named_buffers():
            if name in tensors:
                buffer.copy_(tensors[name])

    def evaluation_module(self, weights: Mapping[str, Tensor] | None) -> nn.Module:
        return self.final_module(self.state(self.weights if weights is None else weights))

    def final_module(self, state: Mapping[str, Tensor]) -> nn.Module:
        if self.world.rank == 0:
            put_weights(self.origin, state)
            self.origin.to(self.device)
        return self.origin.eval()

    def _rows(self, name: str) -> int:
        """Return how many rows of a weight a process has. The last processes have fewer, or none."""
        return -(-self.shapes[_weight(name)][0] // self.world.size)

    def _gather(self, name: str, tensor: Tensor) -> Tensor:
        if not tensor.dim():  # an optimizer's count of steps
            return tensor
        padded = tensor.new_zeros(self._rows(name), *tensor.shape[1:])
        padded[: len(tensor)] = tensor.detach()
        parts = self.world.gather(padded)
        return torch.cat(parts)[: self.shapes[_weight(name)][0]].cpu() if parts else tensor

    def _shard(self, name: str, tensor: Tensor) -> Tensor:
        if not tensor.dim() or _weight(name) not in self.weights:
            return tensor
        rows = self._rows(name)
        return tensor[self.world.rank * rows : (self.world.rank + 1) * rows]


def _layers(module: nn.Module) -> Iterator[nn.Module]:
    """Iterate over the layers of all stacks, except those that run several times or share weights."""
    layers = [layer for stack in module.modules() if isinstance(stack, Stack) for layer in stack.layers]
    owners = Counter(weight for part in module.modules() for weight in part.parameters(recurse=False))
    for layer, times in Counter(layers).items():
        if times == 1 and all(owners[weight] == 1 for weight in layer.parameters()):
            yield layer


def _weight(name: str) -> str:
    """Return the name of the weight that a tensor belongs to: encoder.norm.weight of exp_avg/encoder.norm.weight."""
    return name.rpartition("/")[2]


def _local(tensor: Tensor) -> Tensor:
    assert isinstance(tensor, DTensor)
    return tensor.to_local()
