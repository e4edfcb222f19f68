"""Tensors of several kinds in one piece of memory, so that a GPU fetches all of them in one copy."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

ALIGNED = 16  # bytes, at a multiple of which every tensor begins


def pinned_together(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Copies of tensors on the CPU, in one piece of memory that a GPU can read by itself."""
    parts = cut(_pinned(_places(tensors)[1]), tensors)
    for part, tensor in zip(parts, tensors, strict=True):
        part.copy_(tensor)
    return parts


def cut(whole: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """The tensors that lie in a piece of memory, which are shaped like these."""
    starts, _ = _places(like)
    bounds = zip(starts, like, strict=True)
    return [whole[start : start + part.nbytes].view(part.dtype).view(part.shape) for start, part in bounds]


def whole_of(tensors: Sequence[Tensor]) -> Tensor | None:
    """The piece of memory in which these tensors lie, as `cut` would find them; None where they do not."""
    if not tensors:
        return None
    memory, (starts, end) = tensors[0].untyped_storage(), _places(tensors)
    base = memory.data_ptr()
    places = zip(starts, tensors, strict=True)
    if memory.nbytes() != end or not all(_lies_at(tensor, base, start) for start, tensor in places):
        return None
    return torch.empty(0, dtype=torch.uint8, device=tensors[0].device).set_(memory)


def _pinned(size: int) -> Tensor:
    return torch.empty(size, dtype=torch.uint8, pin_memory=True)


def _lies_at(tensor: Tensor, base: int, start: int) -> bool:
    here = tensor.data_ptr() == base + start or not tensor.numel()  # what is empty has no address
    return here and tensor.untyped_storage().data_ptr() == base and tensor.is_contiguous()


def _places(tensors: Sequence[Tensor]) -> tuple[list[int], int]:
    """Where each begins, and where the last one ends."""
    starts, end = [], 0
    for tensor in tensors:
        starts.append(end)
        end += -(-tensor.nbytes // ALIGNED) * ALIGNED
    return starts, end
