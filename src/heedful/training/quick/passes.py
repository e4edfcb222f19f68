"""What the quick parts of a module share in one pass: the seed of its dropout, and what is left for its end.

Gradients of weights and vectors are needed only when the whole backward pass is over, and each of them alone leaves
most of a large GPU idle: what is small is computed at the end, many in one launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ..tables import Tables

MOST = 2**30  # numbers that may be held until the end of a pass


class Left(NamedTuple):
    """Lists of what is to be read, with what is to be filled."""

    products: list[tuple[Tensor, Tensor, Tensor]]
    sums: list[tuple[Tensor, Tensor]]
    totals: list[tuple[Tensor, Tensor]]

    def do(self, tables: Tables) -> None:
        """All of it."""
        from ..kernels.products import weight_gradients
        from ..kernels.sums import column_sums, totals

        weight_gradients(tables, self.products)
        totals(tables, [*self.totals, *column_sums(tables, self.sums)])


class Pass:
    """Begin it before every pass."""

    def __init__(self, device: torch.device, tables: Tables) -> None:
        self.seed = torch.zeros(1, dtype=torch.int64, device=device)
        self.tables = tables
        self.begin()

    def begin(self) -> None:
        """Draw another seed, by torch's own generator, which alone has a state; nothing was used yet."""
        self.seed.random_()
        self.tables.begin()
        self.draws = 0
        self.uses: dict[int, int] = {}
        self._left, self._numbers = Left([], [], []), 0  # numbers that are held until the end

    def draw(self) -> tuple[Tensor, int]:
        """The seed, and a number that nobody else has in this pass."""
        self.draws += 1
        return self.seed, self.draws

    def counting(self, *weights: Tensor) -> Pass:
        """Itself, which knows now that these weights are used once more: the gradients of several uses are added up by
        autograd, which does not wait for the end."""
        for weight in weights:
            self.uses[id(weight)] = self.uses.get(id(weight), 0) + 1
        return self

    def product(self, weights: Sequence[Tensor], x: Tensor, slope: Tensor) -> Tensor:
        """In a backward pass, the gradient (E, D) of weights whose uses were counted, from what they were given (N, D)
        and the slope of what came of it (N, E). It is there at the end of the pass."""
        from ..kernels.products import suits

        out = slope.new_empty(slope.shape[1], x.shape[1])
        if suits(x, slope) and self._may_wait(weights, x, slope, out):
            self._left.products.append((x, slope, out))
        else:
            torch.mm(slope.mT, x, out=out)
        return out

    def sums(self, vectors: Sequence[Tensor], slope: Tensor) -> Tensor:
        """The gradient (E) of what was added to every row, from the slope of what came of it (N, E)."""
        out = slope.new_empty(slope.shape[1])
        if self._may_wait(vectors, slope, out):
            self._left.sums.append((slope, out))
        else:
            Left([], [(slope, out)], []).do(self.tables)
        return out

    def totals(self, parts: Tensor, *vectors: Tensor) -> Sequence[Tensor]:
        """The gradients of vectors (D,), one each, of which every program has its sums: (M, P, D)."""
        out = vectors[0].new_empty(len(vectors), parts.shape[2])
        if self._may_wait(vectors, parts, out):
            self._left.totals.append((parts, out))
        else:
            Left([], [], [(parts, out)]).do(self.tables)
        return out.unbind()

    def _may_wait(self, weights: Sequence[Tensor], *tensors: Tensor) -> bool:
        """Whether autograd does not need their gradient before the end, and there is room to hold this until then."""
        numbers = self._numbers + sum(tensor.numel() for tensor in tensors)
        if numbers > MOST or any(self.uses[id(weight)] > 1 for weight in weights):
            return False
        if not self._numbers:
            torch.autograd.Variable._execution_engine.queue_callback(self._end)
        self._numbers = numbers
        return True

    def _end(self) -> None:
        left, self._left, self._numbers = self._left, Left([], [], []), 0
        left.do(self.tables)
