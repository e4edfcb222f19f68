"""Encoder and decoder whose way in is one kernel. Shapes: B batch, T tokens, D d_model."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ...core import Decoder, Encoder, Positions, Sinusoidal, Stack
from ...core.masks import Grid
from ..kernels import block_of
from .parts import WIDEST, Quick, pays


class _QuickStack(Quick, Stack):
    """Where positions are computed from a formula, or do nothing to the input."""

    @classmethod
    def fits(cls, part: Stack) -> bool:
        plain = type(part.positions) is Sinusoidal or type(part.positions).embed is Positions.embed
        return plain and type(part.entry) is nn.Identity and part.dropout.p < 1

    def settle(self) -> None:
        self.encodings: dict[int, Tensor] = {}  # by how many; none is ever let go, since recorded steps read them

    def enter(self, x: Tensor, real: Tensor | None, grid: Grid) -> Tensor:
        if not pays(x) or x.shape[2] > WIDEST:
            return super().enter(x, real, grid)
        encodings = None
        if isinstance(self.positions, Sinusoidal):
            encodings = self._in_slots(grid, x, self.positions)
            if encodings is None:
                return super().enter(x, real, grid)
        from ..kernels.entry import Entered

        made: Any = Entered.apply
        out: Tensor = made(x, real, encodings, self.dropping(self.dropout))
        return out

    def _in_slots(self, grid: Grid, x: Tensor, positions: Sinusoidal) -> Tensor | None:
        """The encodings of tokens that stand in their slots, (at least T, D); None where they stand elsewhere."""
        if grid.query_positions is not None or not grid.square or x.shape[2] != positions.d_model:
            return None
        n = block_of(grid.n_queries, grid.n_queries)
        if n not in self.encodings and not torch.cuda.is_current_stream_capturing():
            self.encodings[n] = positions.table(n).to(x.device, torch.float32)
        return self.encodings.get(n)


class QuickEncoder(_QuickStack, Encoder):
    """An encoder that is entered in one kernel."""


class QuickDecoder(_QuickStack, Decoder):
    """The same of a decoder."""
