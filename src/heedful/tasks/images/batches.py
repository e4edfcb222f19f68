"""Stored images as batches of one shape, in an order that (seed, epoch) alone decides.

Shapes: B batch, H height, W width, C channels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...data.batch import moved
from ...data.image_sets.store import ImageStore
from ...data.loader import WHOLE, Shard
from ...errors import DataError


@dataclass(frozen=True, eq=False)
class ImageBatch:
    """Images as bytes, so that little travels to the device; a row that is not there has no place in `rows`."""

    pixels: Tensor  # (B, H, W, C), uint8
    labels: Tensor  # (B)
    keep: Tensor  # (B): which rows are images
    rows: tuple[int, ...]  # of the store

    def to(self, device: torch.device | str) -> Self:
        """The same on a device."""
        return moved(self, device)

    def fixed(self) -> Self:
        """The same without what the host knows of its values: as good for every batch of its shape."""
        return replace(self, rows=())


class ImageLoader:
    """Some rows of a store as batches of at most `batch_size`. Every image comes exactly once in an epoch.

    The images are spread over the batches as evenly as can be: a batch lacks one row at most.
    """

    def __init__(self, store: ImageStore, rows: NDArray[np.intp], batch_size: int, seed: int = 0) -> None:
        self.store, self.members, self.seed = store, rows, seed
        self.n_batches = -(-len(rows) // max(1, batch_size))
        self.batch_size = -(-len(rows) // max(1, self.n_batches))

    def steps_per_epoch(self, epoch: int = 0) -> int:
        """How many batches an epoch has; here the same for each."""
        return self.n_batches

    def epoch(self, epoch: int, start: int = 0, share: Shard = WHOLE) -> Iterator[ImageBatch]:
        """The batches of an epoch in its own order, or a share of each, from step `start` on; those before are not
        made."""
        if not 0 <= start <= self.n_batches:
            raise DataError(
                f"an epoch has {self.n_batches} steps and cannot start at step {start}; "
                "have the data or batch_tokens changed since the run began?"
            )
        return self._batches(np.random.default_rng([self.seed, epoch]).permutation(self.members), start, share)

    def in_order(self) -> Iterator[ImageBatch]:
        """Every image once, as stored: for validation."""
        return self._batches(self.members, 0, WHOLE)

    def _batches(self, order: NDArray[np.intp], start: int, share: Shard) -> Iterator[ImageBatch]:
        for step in range(start, self.n_batches):
            first, last = (len(order) * edge // self.n_batches for edge in (step, step + 1))
            yield self._batch(share.rows(order[first:last]), share.size(self.batch_size))

    def _batch(self, rows: NDArray[np.intp], size: int) -> ImageBatch:
        pixels = np.zeros((size, *self.store.pixels.shape[1:]), np.uint8)
        labels = np.zeros(size, np.int64)
        n = len(rows)
        pixels[:n], labels[:n] = self.store.pixels[rows], self.store.labels[rows]
        keep = torch.arange(size) < n
        return ImageBatch(torch.from_numpy(pixels), torch.from_numpy(labels), keep, tuple(rows.tolist()))
