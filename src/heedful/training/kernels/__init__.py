"""What torch does in several readings of the memory, in one or two: Triton kernels for a GPU.

Each stands for something that is written out in torch beside it, and is tested against that. Modules of kernels need
Triton, which torch brings along where there is CUDA: import them where `available` says so, and not before. Each
kernel takes a third of a second to compile, once for every kind of number it is specialised for; so numbers of rows,
which change from batch to batch, are not.
"""

from __future__ import annotations

from importlib.util import find_spec

import torch
from torch import Tensor

SIDES = 32, 64  # of a tile of short attention; a third size would take longer to compile than it saves
HAVE_TRITON = getattr(find_spec("triton"), "origin", None) is not None  # a folder of that name is none
DTYPES = (torch.bfloat16, torch.float16, torch.float32)


def available(tensor: Tensor) -> bool:
    """Whether a kernel can work on this tensor."""
    return tensor.is_cuda and tensor.dtype in DTYPES and HAVE_TRITON


def over_tables(weight: Tensor) -> bool:
    """Whether kernels over many tensors can work on it, which take plain numbers, one behind the other."""
    return weight.dtype == torch.float32 and weight.is_contiguous() and available(weight)


def block_of(n: int, most: int) -> int:
    """The power of two that holds n numbers, or the most that a program shall hold at once."""
    return 1 << (min(n, most) - 1).bit_length()
