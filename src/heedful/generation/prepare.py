"""A model made ready for generation: its matrices in the layout and precision asked for, its decoder taken apart."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from ..core import KVCache, MultiHeadAttention, VocabularyHead
from ..core.masks import Mask
from .captured import Program, Shape
from .lean import LeanDecoder, takes_apart
from .packed import Columns, Int8, int8_works
from .search import GenerationError

KEPT = 4  # programs


@dataclass(frozen=True, eq=False)
class Ready:
    """What generates: the module, and the quick way through one step of its decoder where there is one."""

    module: Any
    lean: LeanDecoder | None = None
    programs: dict[Shape, Program] = field(default_factory=dict)

    def program(self, shape: Shape, like: KVCache) -> Program:
        """The step captured for a shape; a few are kept, since capturing takes longer than many steps."""
        if self.lean is None:
            raise GenerationError("this decoder has parts that cannot be captured")
        if shape not in self.programs:
            if len(self.programs) == KEPT:
                self.programs.pop(next(iter(self.programs)))
            self.programs[shape] = Program(self.lean, shape, like)
        return self.programs[shape]


def prepare(module: Any, precision: str = "float32") -> Ready:
    """The model in this precision. Its weights are shared where they stay as they are.

    What was made is kept as long as the module lives and its weights do not change (changes through `.data` are
    not seen). Where someone watches the module (`record`), it runs as it is, so that they see everything.
    """
    if isinstance(module, Ready):
        return module
    if not isinstance(module, nn.Module) or _watched(module):
        return Ready(module)
    now = _fingerprint(module)
    made = _known.setdefault(module, {}).get(precision)
    if made is None or made[0] != now:
        made = _known[module][precision] = now, _make(module, precision)
    return made[1]


_known: WeakKeyDictionary[nn.Module, dict[str, tuple[object, Ready]]] = WeakKeyDictionary()


def _watched(module: nn.Module) -> bool:
    return any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())


def _fingerprint(module: nn.Module) -> object:
    tensors = [*module.parameters(), *module.buffers()]
    versions = tuple(0 if tensor.is_inference() else tensor._version for tensor in tensors)
    return versions, tuple((tensor.data_ptr(), tensor.dtype) for tensor in tensors)


def _make(module: nn.Module, precision: str) -> Ready:
    first = next(module.parameters(), None)
    if first is None:
        return Ready(module)
    on_cpu = first.device.type == "cpu"
    if precision == "int8" and not (on_cpu and int8_works()):
        raise GenerationError(
            f'precision "int8" is for CPUs whose torch has FBGEMM, and this model is on {first.device}; '
            'use "bf16" or "float32"'
        )
    # The copy shares every parameter, so that only what is laid out anew takes room.
    shared = {id(tensor): tensor for tensor in [*module.parameters(), *module.buffers()]}
    ready: Any = deepcopy(module, shared)
    lean = takes_apart(getattr(ready, "decoder", None))
    inward: list[Any] = [_joined(layer.attention.part) for layer in ready.decoder.layers] if lean else []
    if precision == "int8":
        _replace(ready, Int8)
        inward = [_pack(Int8, matrix, exact=True) for matrix in inward]
    elif precision == "bf16":
        ready, inward = deepcopy(ready).bfloat16(), [matrix.bfloat16() for matrix in inward]
    elif lean and on_cpu and first.dtype == torch.float32:
        _replace(ready.decoder, Columns)
        ready.head = _head(ready.head, Columns)
        inward = [_pack(Columns, matrix) for matrix in inward]
    ready.eval()
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


def _replace(root: nn.Module, kind: type[Columns] | type[Int8]) -> None:
    """Every linear map below, each by its packed form.

    Integers make a product exact whatever stands beside a row, but attention's sums depend on the padding in
    their last digit, and one digit can move an integer. So with integers around it attention runs in float64,
    where that digit is far below what float32 keeps.
    """
    for part in list(root.modules()):
        for name, child in list(part.named_children()):
            if isinstance(child, nn.Linear):
                exact = isinstance(part, MultiHeadAttention) and child is not part.out
                setattr(part, name, _pack(kind, child, exact=exact))
            elif isinstance(child, VocabularyHead):
                setattr(part, name, _head(child, kind))


def _pack(kind: type[Columns] | type[Int8], linear: nn.Linear, *, exact: bool = False) -> Columns | Int8:
    if kind is Int8:
        return Int8(linear.weight, linear.bias, dtype=torch.float64 if exact else torch.float32)
    return Columns(linear.weight, linear.bias)


def _head(head: nn.Module, kind: type[Columns] | type[Int8]) -> nn.Module:
    return PackedHead(head, kind(head.weight, head.bias)) if isinstance(head, VocabularyHead) else head


class PackedHead(nn.Module):
    """A vocabulary head whose matrix is packed."""

    def __init__(self, head: VocabularyHead, linear: nn.Module) -> None:
        super().__init__()
        self.transform, self.scale, self.linear = head.transform, head.scale, linear

    def forward(self, x: Tensor, keep: Mask | None = None) -> Tensor:
        x = self.transform(x)
        logits: Tensor = self.linear(x if self.scale == 1.0 else x * self.scale)
        return logits
