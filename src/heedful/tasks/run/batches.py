"""Batches of one size, for examples that need no padding: images, windows of series."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from ...data.loader import WHOLE, Shard
from ...errors import DataError
from ...training.objective import B


class EvenBatches(ABC, Generic[B]):
    """Divides rows into batches of at most `batch_size`, in an order that depends only on (seed, epoch).

    Every row comes exactly once in an epoch. The sizes of two batches differ by at most one row.
    """

    def __init__(self, rows: NDArray[Any], batch_size: int, seed: int = 0) -> None:
        self.rows, self.seed = rows, seed
        self.n_batches = -(-len(rows) // max(1, batch_size))
        self.batch_size = -(-len(rows) // max(1, self.n_batches))

    @abstractmethod
    def batch(self, rows: NDArray[Any], size: int) -> B:
        """Return a batch of `size` rows that holds these rows, which may be fewer."""

    def steps_per_epoch(self, epoch: int = 0) -> int:
        """Return the number of batches of an epoch, the same for each."""
        return self.n_batches

    def epoch(self, epoch: int, start: int = 0, shard: Shard = WHOLE) -> Iterator[B]:
        """Yield the batches of an epoch from step `start` on, or a shard of each."""
        if not 0 <= start <= self.n_batches:
            raise DataError(
                f"an epoch has {self.n_batches} steps and cannot start at step {start}; "
                "have the data or batch_tokens changed since the run began?"
            )
        return self._batches(np.random.default_rng([self.seed, epoch]).permutation(self.rows), start, shard)

    def in_order(self) -> Iterator[B]:
        """Yield every row once, in the order of the store, for validation."""
        return self._batches(self.rows, 0, WHOLE)

    def _batches(self, order: NDArray[Any], start: int, shard: Shard) -> Iterator[B]:
        for step in range(start, self.n_batches):
            first, last = (len(order) * edge // self.n_batches for edge in (step, step + 1))
            yield self.batch(shard.rows(order[first:last]), shard.size(self.batch_size))
