"""A long row of ids cut into windows: drawn at random to learn from, or laid over all of it to score.

Shapes: B windows, T tokens in each; a window holds T + 1 ids, since each is predicted from those before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import DataError
from .batch import moved
from .share import WHOLE, Share

Row = NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class Windows:
    """A batch. Where `keep` is None, every target counts."""

    ids: Tensor  # (B, T + 1)
    keep: Tensor | None  # (B, T) which of the targets count
    starts: tuple[int, ...]  # where each window begins, known to the host

    @property
    def inputs(self) -> Tensor:
        """(B, T) what is read."""
        return self.ids[:, :-1]

    @property
    def targets(self) -> Tensor:
        """(B, T) what follows each."""
        return self.ids[:, 1:]

    def to(self, device: torch.device | str) -> Self:
        """The same on a device."""
        return moved(self, device)

    def fixed(self) -> Self:
        """The same without what the host knows of its values: as good for every batch of its shape."""
        return replace(self, starts=())


class RandomWindows:
    """For training: windows that begin anywhere, drawn from (seed, epoch, step) alone. All batches have one shape.

    An epoch is as many batches as hold about as many tokens as the text has.
    """

    def __init__(self, row: Row, *, context: int, batch: int, seed: int = 0) -> None:
        if len(row) < context + 1:
            raise DataError(
                f"the text has {len(row):,} tokens, too few for one window of {context:,} and the token after it; "
                f"give more text, or lower the context to {max(1, len(row) - 1):,} or less"
            )
        self.row, self.context, self.batch, self.seed = row, context, batch, seed

    def steps_per_epoch(self, epoch: int = 0) -> int:
        """How many batches an epoch has; the same for each."""
        return max(1, len(self.row) // (self.batch * self.context))

    def epoch(self, epoch: int, start: int = 0, share: Share = WHOLE) -> Iterator[Windows]:
        """The batches of an epoch, or a share of each, from the one numbered `start`."""
        size = share.size(self.batch)
        even = size * share.of == self.batch
        for step in range(start, self.steps_per_epoch(epoch)):
            random = np.random.default_rng([self.seed, epoch, step])
            starts = share.rows(random.integers(len(self.row) - self.context, size=self.batch))
            keep = None if even else _first_rows(len(starts), (size, self.context))
            ids = _taken(self.row, np.pad(starts, (0, size - len(starts))), self.context)
            yield Windows(ids, keep, tuple(starts.tolist()))


def every_window(row: Row, *, context: int, stride: int, batch: int) -> Iterator[Windows]:
    """Windows over a whole row, in which every id but the first is a target that counts exactly once.

    A window begins every `stride` ids. The first counts whole; of the others, what no earlier one has counted, which
    therefore has at least `context` − `stride` tokens before it. What is missing in the last window or in the last
    batch is filled up with ids that do not count: all batches have one shape.
    """
    if not 1 <= stride <= context:
        raise ValueError(f"a stride goes from 1 to the context, {context}, not {stride}")
    n_targets = len(row) - 1
    starts = np.arange(0, max(n_targets - context, 0) + stride, stride) if n_targets > 0 else np.empty(0, np.int64)
    for first in range(0, len(starts), batch):
        begin = starts[first : first + batch]
        places = begin[:, None] + np.arange(context)  # (B, T) of the inputs; a target is one further
        keep = places < n_targets
        keep[:, : context - stride] &= begin[:, None] == 0
        fill = batch - len(begin)
        keep = np.pad(keep, ((0, fill), (0, 0)))
        ids = _taken(row, np.pad(begin, (0, fill)), context)
        yield Windows(ids, torch.from_numpy(keep), tuple(begin.tolist()))


def _first_rows(n: int, shape: tuple[int, int]) -> Tensor:
    """(B, T) True in the first n rows."""
    return (torch.arange(shape[0]) < n)[:, None].repeat(1, shape[1])


def _taken(row: Row, starts: NDArray[np.int64], context: int) -> Tensor:
    """(B, T + 1); beyond the end of the row stands its last id."""
    places = np.minimum(starts[:, None] + np.arange(context + 1), len(row) - 1)
    return torch.from_numpy(row[places].astype(np.int64))
