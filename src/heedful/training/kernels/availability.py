"""Whether kernels can be made here: torch brings Triton along where there is CUDA."""

from __future__ import annotations

from importlib.util import find_spec

import torch
from torch import Tensor

HAVE_TRITON = find_spec("triton") is not None
DTYPES = (torch.bfloat16, torch.float16, torch.float32)


def available(tensor: Tensor) -> bool:
    """Whether a kernel can work on this tensor."""
    return HAVE_TRITON and tensor.is_cuda and tensor.dtype in DTYPES


def block_of(n: int, most: int) -> int:
    """A power of two that holds n numbers, or the most that a program shall hold at once."""
    return min(most, 1 << (n - 1).bit_length())
