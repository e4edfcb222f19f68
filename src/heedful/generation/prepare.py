"""A model made ready for generation: its matrices in the layout and precision asked for, its decoder taken apart."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

from ..core import KVCache, MultiHeadAttention
from ..errors import GenerationError
from .captured import Program, Shape
from .int8 import in_int8, int8_works, packed
from .known import runs_natively, takes_apart
from .lean import LeanDecoder
from .native.build import library, why_not
from .native.model import NativeModel

KEPT = 4  # programs


@dataclass(frozen=True, eq=False)
class Ready:
    """What generates: the layers in C; or the module, and the quick way through one step of its decoder, if any."""

    module: Any
    lean: LeanDecoder | None = None
    native: NativeModel | None = None
    idle: list[Program] = field(default_factory=list)

    def program(self, shape: Shape, like: KVCache) -> Program:
        """The step captured for a shape, for the caller alone; capturing takes longer than many steps."""
        for program in self.idle:
            if program.shape == shape:
                self.idle.remove(program)
                return program
        if self.lean is None:
            raise GenerationError("this decoder has parts that cannot be captured")
        return Program(self.lean, shape, like)

    def give_back(self, program: Program) -> None:
        """For the next who asks; a few are kept."""
        self.idle.append(program)
        del self.idle[:-KEPT]


def prepare(module: Any, precision: str = "float32") -> Ready:
    """The model in this precision. Its weights are shared where they stay as they are.

    What was made is kept as long as the module lives and its weights do not change (changes through `.data` are
    not seen). Where someone watches the module (`record`), it runs as it is, so that they see everything.
    """
    if not isinstance(module, nn.Module) or not _device(module) or _watched(module):
        return Ready(module)
    with _lock:  # several threads may ask for the first time
        now = _fingerprint(module)
        made = _known.setdefault(module, {}).get(precision)
        if made is None or made[0] != now:
            made = _known[module][precision] = now, _make(module, precision)
        return made[1]


_lock = Lock()
_known: WeakKeyDictionary[nn.Module, dict[str, tuple[object, Ready]]] = WeakKeyDictionary()


def _watched(module: nn.Module) -> bool:
    return any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())


def _fingerprint(module: nn.Module) -> object:
    """What must stay the same: the parts, their masks and scales, and the weights. Inference tensors cannot say."""
    parts = tuple(
        (id(part), id(getattr(part, "mask", None)), getattr(part, "scale", None)) for part in module.modules()
    )
    tensors = [*module.parameters(), *module.buffers()]
    if any(tensor.is_inference() for tensor in tensors):
        return object()
    return parts, tuple((tensor.data_ptr(), tensor.dtype, tensor._version) for tensor in tensors)


def _device(module: nn.Module) -> str | None:
    return next((tensor.device.type for tensor in module.parameters()), None)


def _make(module: nn.Module, precision: str) -> Ready:
    """On a CPU the layers in C where they are there and know the model; else torch's own, the decoder taken apart."""
    if precision == "int8" and _device(module) != "cpu":
        raise GenerationError(
            f'precision "int8" is for CPUs, and this model is on a {_device(module)} device; use "bf16" there'
        )
    compiled = library() if precision != "bf16" and runs_natively(module) else None
    if compiled is not None:
        return Ready(None, native=NativeModel(module, compiled, 8 if precision == "int8" else 32))
    if precision == "int8" and not int8_works():
        raise GenerationError(f"int8 needs the layers in C ({why_not()}), or a torch with FBGEMM; use float32")
    # The copy shares every parameter, so that only what is made anew takes room.
    shared = {id(tensor): tensor for tensor in [*module.parameters(), *module.buffers()]}
    ready: Any = deepcopy(module, shared).eval()
    lean = takes_apart(ready)
    inward: list[Any] = [_joined(layer.attention.part) for layer in ready.decoder.layers] if lean else []
    if precision == "int8":
        in_int8(ready)
        inward = [packed(matrix, exact=True) for matrix in inward]
    elif precision == "bf16":
        ready, inward = deepcopy(ready).bfloat16(), [matrix.bfloat16() for matrix in inward]
    if not lean:
        return Ready(ready)
    embedding = ready.target_embedding if hasattr(ready, "target_embedding") else ready.embedding
    return Ready(ready, LeanDecoder(embedding, ready.decoder, ready.head, inward))


def _joined(part: MultiHeadAttention) -> nn.Linear:
    """Queries, keys and values as one matrix."""
    both = part.query, part.key_value
    weight = torch.cat([linear.weight.detach() for linear in both])
    joined = nn.Linear(weight.shape[1], weight.shape[0], bias=part.query.bias is not None, device="meta")
    joined.weight = nn.Parameter(weight, requires_grad=False)
    if part.query.bias is not None:
        joined.bias = nn.Parameter(torch.cat([linear.bias.detach() for linear in both]), requires_grad=False)
    return joined
