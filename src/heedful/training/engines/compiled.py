"""Steps whose loss is compiled for each shape of batch, and recorded as graphs on a GPU."""

from __future__ import annotations

from typing import Any

import torch

from ..errors import EngineError
from ..loss import Loss
from .captured import MOST, Captured
from .engine import Engine


class _Compiling(Engine):
    """Forward and backward in few large kernels; shapes are fixed, since each has its own."""

    name = "compile"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._compiled = torch.compile(super().loss, dynamic=False)

    def loss(self, batch: Any) -> Loss:
        from torch._inductor.exc import InductorError  # here: it takes a second to import

        try:
            with torch._dynamo.config.patch(recompile_limit=MOST):  # beyond it, nothing would be compiled, silently
                found: Loss = self._compiled(batch.fixed())
        except (torch._dynamo.exc.TorchDynamoException, InductorError) as error:
            raise EngineError("a step cannot be compiled", error) from error
        return found


class CompiledOnCpu(_Compiling):
    """As the compiler made it."""


class Compiled(_Compiling, Captured):
    """And then recorded: what is left of launches is one."""
