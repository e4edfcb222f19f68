"""A model made ready for generation: its matrices in the layout and precision asked for, its decoder taken apart."""

from copy import deepcopy
from dataclasses import dataclass, field
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

from ..core import KVCache
from ..errors import GenerationError
from .cuda_graph import GraphProgram, GraphShape
from .int8 import Int8Linear, int8_works
from .native.library import library, unavailable_reason
from .native.model import NativeModel
from .registry import device_type, refusals, shared_copy, use_backend
from .single_step import SingleStepDecoder

MAX_IDLE = 4  # programs that are kept for the next batch


@dataclass(frozen=True, eq=False)
class RuntimeModel:
    """What generates: the layers in C; or the module, and a faster way through one step of its decoder, if any."""

    module: Any
    single_step: SingleStepDecoder | None = None
    native: NativeModel | None = None
    idle: list[GraphProgram] = field(default_factory=list)

    def program(self, shape: GraphShape, like: KVCache) -> GraphProgram:
        """The step captured for a shape, for the caller alone; capturing takes longer than many steps."""
        for program in self.idle:
            if program.shape == shape:
                self.idle.remove(program)
                return program
        if self.single_step is None:
            raise GenerationError("this decoder has parts that cannot be captured")
        return GraphProgram(self.single_step, shape, like)

    def give_back(self, program: GraphProgram) -> None:
        """For the next who asks; a few are kept."""
        self.idle.append(program)
        del self.idle[:-MAX_IDLE]


def prepare(module: Any, precision: str = "float32") -> RuntimeModel:
    """The model in this precision. Its weights are shared where they stay as they are.

    What was made is kept as long as the module lives and its weights do not change (changes through `.data` are
    not seen). Where someone watches the module (`record`), it runs as it is, so that they see everything.
    """
    if not isinstance(module, nn.Module) or not device_type(module) or _watched(module):
        return RuntimeModel(module)
    with _lock:  # several threads may ask for the first time
        now = _fingerprint(module)
        entry = _prepared.setdefault(module, {}).get(precision)
        if entry is None or entry[0] != now:
            entry = _prepared[module][precision] = now, _make(module, precision)
        return entry[1]


_lock = Lock()
_prepared: WeakKeyDictionary[nn.Module, dict[str, tuple[object, RuntimeModel]]] = WeakKeyDictionary()


def _watched(module: nn.Module) -> bool:
    return any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())


def _fingerprint(module: nn.Module) -> object:
    """What must stay the same: the parts, their masks and scales, and the weights. Inference tensors cannot say."""
    parts = tuple(
        (id(part), id(getattr(part, "masks", None) or getattr(part, "mask", None)), getattr(part, "scale", None))
        for part in module.modules()
    )
    tensors = [*module.parameters(), *module.buffers()]
    if any(tensor.is_inference() for tensor in tensors):
        return object()
    return parts, tuple((tensor.data_ptr(), tensor.dtype, tensor._version) for tensor in tensors)


def _make(module: nn.Module, precision: str) -> RuntimeModel:
    """On a CPU the layers in C where they are there and know the model; else torch's own, the decoder taken apart."""
    if precision == "int8" and device_type(module) != "cpu":
        raise GenerationError(
            f'precision "int8" is for CPUs, and this model is on a {device_type(module)} device; use "bf16" there'
        )
    compiled = library() if precision != "bf16" and not refusals(module, "native") else None
    if compiled is not None:
        return RuntimeModel(None, native=NativeModel(module, compiled, 8 if precision == "int8" else 32))
    if precision == "int8" and not int8_works():
        raise GenerationError(
            f"int8 needs the layers in C ({unavailable_reason()}), or a torch with FBGEMM; use float32"
        )
    stepwise = not refusals(module, "single_step")
    inward: list[Any] = SingleStepDecoder.joined_projections(module) if stepwise else []
    if precision == "int8":
        made = use_backend(module, "int8").eval()
        inward = [Int8Linear(linear.weight, linear.bias, dtype=torch.float64) for linear in inward]
    elif precision == "bf16":
        made, inward = deepcopy(module).eval().bfloat16(), [linear.bfloat16() for linear in inward]
    else:
        made = shared_copy(module).eval()
    return RuntimeModel(made, SingleStepDecoder(made, inward) if stepwise else None)
