"""Preparing a model for generation: its weights in the right layout and precision, and the fastest decoder for them."""

from copy import deepcopy
from dataclasses import dataclass, field
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

from ..core import KVCache
from ..errors import GenerationError
from .int8 import Int8Linear, int8_works
from .native.library import library, unavailable_reason
from .native.model import NativeModel
from .registry import device_type, refusals, shared_copy, use_backend
from .single_step import GraphProgram, GraphShape, SingleStepDecoder

MAX_IDLE = 4  # captured programs that are kept for later batches


@dataclass(frozen=True, eq=False)
class RuntimeModel:
    """A model prepared for generation: either `native`, the layers in C, or a module with an optional `single_step`."""

    module: Any
    single_step: SingleStepDecoder | None = None
    native: NativeModel | None = None
    idle: list[GraphProgram] = field(default_factory=list)

    def program(self, shape: GraphShape, like: KVCache) -> GraphProgram:
        """Return a captured step for a shape, for the caller's exclusive use; an idle one if there is one."""
        for program in self.idle:
            if program.shape == shape:
                self.idle.remove(program)
                return program
        if self.single_step is None:
            raise GenerationError("this decoder has parts that cannot be captured as a CUDA graph")
        return GraphProgram(self.single_step, shape, like)

    def release_program(self, program: GraphProgram) -> None:
        """Keep a program for the next batch of its shape; only a few are kept."""
        self.idle.append(program)
        del self.idle[:-MAX_IDLE]


def prepare(module: Any, precision: str = "float32") -> RuntimeModel:
    """Return the model prepared for generation in a precision. Unconverted weights are shared.

    The result is cached until the module is deleted or its weights change (changes through `.data` are not noticed).
    A module with hooks (as `lens.record` sets) runs as it is, so that the hooks see everything.

    Raises:
        GenerationError: if int8 is not possible on this machine.
    """
    if not isinstance(module, nn.Module) or not device_type(module):
        return RuntimeModel(module)
    if any(part._forward_hooks or part._forward_pre_hooks for part in module.modules()):
        return RuntimeModel(module)
    with _lock:
        fingerprint = _fingerprint(module)
        entry = _prepared.setdefault(module, {}).get(precision)
        if entry is None or entry[0] != fingerprint:
            entry = _prepared[module][precision] = fingerprint, _prepare(module, precision)
        return entry[1]


_lock = Lock()
_prepared: WeakKeyDictionary[nn.Module, dict[str, tuple[object, RuntimeModel]]] = WeakKeyDictionary()


def _fingerprint(module: nn.Module) -> object:
    """Identify the parts, their masks and scales, and the weights. Inference tensors never match."""
    parts = [(id(part), id(getattr(part, "masks", None)), getattr(part, "scale", None)) for part in module.modules()]
    tensors = [*module.parameters(), *module.buffers()]
    if any(tensor.is_inference() for tensor in tensors):
        return object()
    return parts, [(tensor.data_ptr(), tensor.dtype, tensor._version) for tensor in tensors]


def _prepare(module: nn.Module, precision: str) -> RuntimeModel:
    """Use the layers in C if they are available and support the model; else torch, with single steps if possible."""
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
    qkv: list[Any] = SingleStepDecoder.joined_projections(module) if stepwise else []
    if precision == "int8":
        prepared = use_backend(module, "int8").eval()
        qkv = [Int8Linear(linear.weight, linear.bias, dtype=torch.float64) for linear in qkv]
    elif precision == "bf16":
        prepared, qkv = deepcopy(module).eval().bfloat16(), [linear.bfloat16() for linear in qkv]
    else:
        prepared = shared_copy(module).eval()
    return RuntimeModel(prepared, SingleStepDecoder(prepared, qkv) if stepwise else None)
