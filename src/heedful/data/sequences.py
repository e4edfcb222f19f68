"""Sequences of ids that lie in one flat array, laid out below each other without a loop over them.

Shapes: N sequences, B rows, T places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError

Ids: TypeAlias = Sequence[int] | NDArray[np.integer[Any]]


class Sequences(NamedTuple):
    """Where in the flat array each begins, and how long it is."""

    flat: NDArray[np.integer[Any]]
    starts: NDArray[np.int64]  # (N,)
    lengths: NDArray[np.int64]  # (N,)

    @classmethod
    def of(cls, several: Sequence[Ids]) -> Sequences:
        """These, put into one array."""
        lengths = np.array([len(ids) for ids in several], dtype=np.int64)
        flat = np.concatenate([(), *several], dtype=np.int64, casting="unsafe")  # an empty list counts as floats
        return cls(flat, lengths.cumsum() - lengths, lengths)

    def laid_out(self, shape: tuple[int, int], fill: int) -> NDArray[np.int64]:
        """(B, T): one in each row and `fill` behind it; rows beyond the last sequence hold nothing else."""
        needed = (len(self.lengths), int(self.lengths.max(initial=0)))
        if any(have < need for have, need in zip(shape, needed, strict=True)):
            raise DataError(f"rows of the shape {shape} cannot hold sequences that need {needed}; nothing is cut off")
        ids = np.full(shape, fill, dtype=np.int64)
        places = np.arange(shape[1])
        real = places < self.lengths[:, None]
        ids[: len(self.lengths)][real] = self.flat[(self.starts[:, None] + places)[real]]
        return ids

    def lengths_of(self, n_rows: int) -> NDArray[np.int64]:
        """(B,): 0 for rows beyond the last sequence."""
        lengths = np.zeros(n_rows, dtype=np.int64)
        lengths[: len(self.lengths)] = self.lengths
        return lengths
