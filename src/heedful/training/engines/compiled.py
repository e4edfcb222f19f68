"""Steps whose loss is compiled for each shape of batch, and recorded as graphs on a GPU."""

from __future__ import annotations

from typing import Any

import torch

from ..loss import Loss
from .captured import Captured
from .engine import Engine


class _Compiling(Engine):
    """Forward and backward in few large kernels; shapes are fixed, since each has its own."""

    name = "compile"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._compiled = torch.compile(super().loss, dynamic=False)

    def loss(self, batch: Any) -> Loss:
        found: Loss = self._compiled(batch.fixed())
        return found


class CompiledOnCpu(_Compiling):
    """As the compiler made it."""


class Compiled(_Compiling, Captured):
    """And then recorded: what is left of launches is one."""
