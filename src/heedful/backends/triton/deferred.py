"""The state that the fused parts of a module share in one pass: the seed of its dropout, the gradients deferred to its
end, and the address tables that kernels over many tensors read.

Gradients of weights and vectors are needed only after the backward pass, and each one alone leaves most of a large GPU
idle. So the small ones are computed at the end, many in one launch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor

MOST = 2**30  # numbers that may be kept until the end of a pass


class AddressTables:
    """Tables of integers on the device, mostly addresses. `begin` is called before every pass.

    Nothing can be copied to the device while a step is recorded, and memory allocated then belongs to the graph, which
    earlier parts of the step overwrite. So the memory for tables is allocated before and filled afterwards. An eager
    pass of the same shapes, which comes first, shows how much is needed.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._used = self._most = 0  # numbers in the tables of this pass, and in those of the largest one
        self._memory: Tensor | None = None  # while a step is recorded
        self._pending: list[Tensor] = []

    def begin(self) -> None:
        self._used = 0

    @contextmanager
    def recording(self) -> Iterator[Tensor]:
        """Record a step inside. The tensor must live as long as the graph."""
        self.begin()
        self._memory = memory = torch.empty(self._most, dtype=torch.int64, device=self.device)
        try:
            yield memory
            if self._pending:
                whole = torch.cat(self._pending)
                memory[: len(whole)].copy_(whole.pin_memory(), non_blocking=True)
        finally:
            self._memory, self._pending = None, []

    def put(self, rows: list[list[int]]) -> Tensor | None:
        """Return a table of rows of equal length; None if a recorded step needs more memory than any eager one."""
        table = torch.tensor(rows)
        assert table.numel() % 2 == 0  # kernels are compiled for tables at multiples of 16 bytes
        begin, end = self._used, self._used + table.numel()
        if not torch.cuda.is_current_stream_capturing():
            self._used, self._most = end, max(end, self._most)
            return table.pin_memory().to(self.device, non_blocking=True)
        if self._memory is None or end > len(self._memory):
            return None
        self._used = end
        self._pending.append(table.flatten())
        return self._memory[begin:end].view(table.shape)


class DeferredGradients(NamedTuple):
    """Lists of inputs and the gradients to fill from them."""

    products: list[tuple[Tensor, Tensor, Tensor]]
    sums: list[tuple[Tensor, Tensor]]
    totals: list[tuple[Tensor, Tensor]]

    def compute(self, tables: AddressTables) -> None:
        from .weight_gradients import column_sums, totals, weight_gradients

        weight_gradients(tables, self.products)
        totals(tables, [*self.totals, *column_sums(tables, self.sums)])


class BackwardPass:
    """The state of one forward and backward pass. `begin` must be called before every pass."""

    def __init__(self, device: torch.device, tables: AddressTables) -> None:
        self.seed = torch.zeros(1, dtype=torch.int64, device=device)
        self.tables = tables
        self.begin()

    def begin(self) -> None:
        """Draw a new seed from torch's generator, and clear the uses and deferred gradients."""
        self.seed.random_()
        self.tables.begin()
        self.draws = 0
        self.uses: dict[int, int] = {}
        self._deferred, self._numbers = DeferredGradients([], [], []), 0  # numbers that are kept until the end

    def draw(self) -> tuple[Tensor, int]:
        """Return the seed, and a number that is unique in this pass."""
        self.draws += 1
        return self.seed, self.draws

    def counting(self, *weights: Tensor) -> BackwardPass:
        """Count one more use of these weights, and return self.

        Autograd adds the gradients of several uses, so they cannot be deferred to the end.
        """
        for weight in weights:
            self.uses[id(weight)] = self.uses.get(id(weight), 0) + 1
        return self

    def product(self, weights: Sequence[Tensor], x: Tensor, slope: Tensor) -> Tensor:
        """Return the gradient (E, D) of weights from their input (N, D) and the output's gradient (N, E).

        It is filled by the end of the backward pass. The uses of the weights must have been counted.
        """
        from .weight_gradients import suits

        out = slope.new_empty(slope.shape[1], x.shape[1])
        if suits(x, slope) and self._may_wait(weights, x, slope, out):
            self._deferred.products.append((x, slope, out))
        else:
            torch.mm(slope.mT, x, out=out)
        return out

    def sums(self, vectors: Sequence[Tensor], slope: Tensor) -> Tensor:
        """Return the gradient (E) of vectors that were added to every row, from the output's gradient (N, E)."""
        out = slope.new_empty(slope.shape[1])
        if self._may_wait(vectors, slope, out):
            self._deferred.sums.append((slope, out))
        else:
            DeferredGradients([], [(slope, out)], []).compute(self.tables)
        return out

    def totals(self, parts: Tensor, *vectors: Tensor) -> Sequence[Tensor]:
        """Return the gradients of M vectors (D,) from the partial sums of P programs (M, P, D)."""
        out = vectors[0].new_empty(len(vectors), parts.shape[2])
        if self._may_wait(vectors, parts, out):
            self._deferred.totals.append((parts, out))
        else:
            DeferredGradients([], [], [(parts, out)]).compute(self.tables)
        return out.unbind()

    def _may_wait(self, weights: Sequence[Tensor], *tensors: Tensor) -> bool:
        """Return True if autograd does not need the gradient before the end, and the tensors may be kept until then."""
        numbers = self._numbers + sum(tensor.numel() for tensor in tensors)
        if numbers > MOST or any(self.uses[id(weight)] > 1 for weight in weights):
            return False
        if not self._numbers:
            torch.autograd.Variable._execution_engine.queue_callback(self._end)
        self._numbers = numbers
        return True

    def _end(self) -> None:
        deferred, self._deferred, self._numbers = self._deferred, DeferredGradients([], [], []), 0
        deferred.compute(self.tables)
