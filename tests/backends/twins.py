"""How near a kernel is to its twin in float64, and whether it was the kernel."""

from __future__ import annotations

import torch
from torch import Tensor

DTYPES = {torch.float32: 1e-5, torch.bfloat16: 1e-2}


def apart(found: Tensor, wanted: Tensor) -> float:
    """Relative to what is wanted."""
    found, wanted = found.detach().double(), wanted.detach().double()
    return float((found - wanted).norm() / wanted.norm().clamp(min=1e-9))


def made_by(x: Tensor) -> list[str]:
    """The last two steps that made it."""
    assert x.grad_fn is not None
    return [type(step).__name__ for step in (x.grad_fn, x.grad_fn.next_functions[0][0])]
