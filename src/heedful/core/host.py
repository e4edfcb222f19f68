"""What the host may read without waiting."""

from __future__ import annotations

import torch
from torch import Tensor


def can_read(tensor: Tensor) -> bool:
    """Whether looking at the values costs nothing: on the CPU, and not while compiling."""
    return tensor.device.type == "cpu" and not torch.compiler.is_compiling()


def check_range(ids: Tensor, n: int, what: str) -> None:
    """Refuse ids outside 0 to n − 1, where the host can read them; a device checks by itself."""
    if not ids.numel() or not can_read(ids):
        return
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= n:
        raise ValueError(f"{what} go from 0 to {n - 1} here, but {low if low < 0 else high} was given")
