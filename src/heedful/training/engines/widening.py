"""Gradients in bf16, brought to where the weights keep them in float32: in one launch, where a step is recorded."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..kernels import over_tables
from ..tables import Tables


class Widening:
    """Of gradients of the same weights in every step."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._aligned: bool | None = None  # the table for which the kernel was loaded

    def __call__(self, given: Sequence[Tensor], have: Sequence[Tensor]) -> bool:
        """Copy what is given, if that can be done in this way: once as it comes, since no kernel can be loaded while a
        step is recorded; from then on only there, since it takes long to make a table."""
        recording = torch.cuda.is_current_stream_capturing()
        if not given or recording != (self._aligned is not None):
            return False
        if not all(map(_is_plain, given)) or not all(map(over_tables, have)):
            return False
        from ..kernels.many import Table, widen_to_float32

        table = Table.put(self.tables, given, have)
        if table is None or (recording and table.aligned != self._aligned):
            return False
        self._aligned = table.aligned
        widen_to_float32(table)
        return True


def _is_plain(gradient: Tensor) -> bool:
    return gradient.dtype == torch.bfloat16 and gradient.is_contiguous()
