"""What the fused parts of a module share in one pass: the seed of its dropout, the gradients that are deferred to its
end, and the tables of addresses that kernels over many tensors read.

Gradients of weights and vectors are needed only when the whole backward pass is over, and each of them alone leaves
most of a large GPU idle: what is small is computed at the end, many in one launch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor

MOST = 2**30  # numbers that may be held until the end of a pass


class AddressTables:
    """Tables of numbers on the device, addresses most of all, of one pass after another, which are begun. A pass of
    some shapes has run as it comes before it is recorded.

    Nothing can be brought to the device while a step is recorded, and what is made then lies in the graph's own memory,
    which earlier parts of the step write into; so there is room for the tables before, and they are filled afterwards.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._used = self._most = 0  # numbers in the tables of this pass, and of the one that had most
        self._room: Tensor | None = None  # while a step is recorded
        self._promised: list[Tensor] = []

    def begin(self) -> None:
        """Before every pass."""
        self._used = 0

    @contextmanager
    def recorded(self) -> Iterator[Tensor]:
        """Around the recording of a step. What it gives is to be kept as long as the graph."""
        self.begin()
        self._room = room = torch.empty(self._most, dtype=torch.int64, device=self.device)
        try:
            yield room
            if self._promised:
                whole = torch.cat(self._promised)
                room[: len(whole)].copy_(whole.pin_memory(), non_blocking=True)
        finally:
            self._room, self._promised = None, []

    def put(self, rows: list[list[int]]) -> Tensor | None:
        """Rows of the same length; None where a step is recorded that needs more room than any that has run."""
        given = torch.tensor(rows)
        assert given.numel() % 2 == 0  # so that the next table begins at 16 bytes, too, for which kernels are compiled
        begin, end = self._used, self._used + given.numel()
        if not torch.cuda.is_current_stream_capturing():
            self._used, self._most = end, max(end, self._most)
            return given.pin_memory().to(self.device, non_blocking=True)
        if self._room is None or end > len(self._room):
            return None
        self._used = end
        self._promised.append(given.flatten())
        return self._room[begin:end].view(given.shape)


class DeferredGradients(NamedTuple):
    """Lists of what is to be read, with what is to be filled."""

    products: list[tuple[Tensor, Tensor, Tensor]]
    sums: list[tuple[Tensor, Tensor]]
    totals: list[tuple[Tensor, Tensor]]

    def do(self, tables: AddressTables) -> None:
        """All of it."""
        from .weight_gradients import column_sums, totals, weight_gradients

        weight_gradients(tables, self.products)
        totals(tables, [*self.totals, *column_sums(tables, self.sums)])


class BackwardPass:
    """Begin it before every pass."""

    def __init__(self, device: torch.device, tables: AddressTables) -> None:
        self.seed = torch.zeros(1, dtype=torch.int64, device=device)
        self.tables = tables
        self.begin()

    def begin(self) -> None:
        """Draw another seed, by torch's own generator, which alone has a state; nothing was used yet."""
        self.seed.random_()
        self.tables.begin()
        self.draws = 0
        self.uses: dict[int, int] = {}
        self._deferred, self._numbers = DeferredGradients([], [], []), 0  # numbers that are held until the end

    def draw(self) -> tuple[Tensor, int]:
        """The seed, and a number that nobody else has in this pass."""
        self.draws += 1
        return self.seed, self.draws

    def counting(self, *weights: Tensor) -> BackwardPass:
        """Itself, which knows now that these weights are used once more: the gradients of several uses are added up by
        autograd, which does not wait for the end."""
        for weight in weights:
            self.uses[id(weight)] = self.uses.get(id(weight), 0) + 1
        return self

    def product(self, weights: Sequence[Tensor], x: Tensor, slope: Tensor) -> Tensor:
        """In a backward pass, the gradient (E, D) of weights whose uses were counted, from what they were given (N, D)
        and the slope of what came of it (N, E). It is there at the end of the pass."""
        from .weight_gradients import suits

        out = slope.new_empty(slope.shape[1], x.shape[1])
        if suits(x, slope) and self._may_wait(weights, x, slope, out):
            self._deferred.products.append((x, slope, out))
        else:
            torch.mm(slope.mT, x, out=out)
        return out

    def sums(self, vectors: Sequence[Tensor], slope: Tensor) -> Tensor:
        """The gradient (E) of what was added to every row, from the slope of what came of it (N, E)."""
        out = slope.new_empty(slope.shape[1])
        if self._may_wait(vectors, slope, out):
            self._deferred.sums.append((slope, out))
        else:
            DeferredGradients([], [(slope, out)], []).do(self.tables)
        return out

    def totals(self, parts: Tensor, *vectors: Tensor) -> Sequence[Tensor]:
        """The gradients of vectors (D,), one each, of which every program has its sums: (M, P, D)."""
        out = vectors[0].new_empty(len(vectors), parts.shape[2])
        if self._may_wait(vectors, parts, out):
            self._deferred.totals.append((parts, out))
        else:
            DeferredGradients([], [], [(parts, out)]).do(self.tables)
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
        deferred, self._deferred, self._numbers = self._deferred, DeferredGradients([], [], []), 0
        deferred.do(self.tables)
