"""Texts in ids as batches of a few fixed shapes: for models that read.

Shapes: B rows, T tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .batch import moved
from .loader import Loader, LoaderConfig, Part
from .share import WHOLE, Share
from .store import TokenStore


@dataclass(frozen=True, eq=False)
class TextBatch:
    """Texts side by side, padded at the end. Rows beyond the real ones are all padding."""

    ids: Tensor  # (B, T)
    segments: Tensor  # (B, T) 1 where a second text stands
    keep: Tensor  # (B, T) True where real
    labels: Tensor  # (B,) the class; 0 where there is none
    real: Tensor  # (B,) True for real rows
    lengths: tuple[int, ...] | None  # B numbers, known to the host
    rows: tuple[int, ...]  # the real rows' indices in the store

    @classmethod
    def of(cls, store: TokenStore, rows: Sequence[int] | NDArray[np.intp], shape: tuple[int, int]) -> Self:
        """Rows of a store whose targets are a label and the place where the second text begins, or nothing."""
        numbers, (n_rows, width) = np.asarray(rows, dtype=np.intp), shape
        texts, targets = store.sides(numbers)
        ids = texts.laid_out(shape, 0)
        labels, second = targets.laid_out((n_rows, 2), 0).T
        lengths = texts.lengths_of(n_rows)
        keep = np.arange(width) < lengths[:, None]
        segments = keep & (np.arange(width) >= second[:, None])
        segments[: len(numbers)] &= targets.lengths[:, None] > 0
        return cls(
            ids=torch.from_numpy(ids),
            segments=torch.from_numpy(segments.astype(np.int64)),
            keep=torch.from_numpy(keep),
            labels=torch.from_numpy(labels.copy()),
            real=torch.from_numpy(np.arange(n_rows) < len(numbers)),
            lengths=tuple(lengths.tolist()),
            rows=tuple(numbers.tolist()),
        )

    def to(self, device: torch.device | str) -> Self:
        """The same on a device."""
        return moved(self, device)

    def fixed(self) -> Self:
        """The same without what the host knows of its values: as good for every batch of its shape."""
        return replace(self, lengths=None, rows=())


class TextLoader:
    """A store as batches, in an order that (seed, epoch) alone decides; every text comes once in an epoch."""

    def __init__(self, store: TokenStore, batch_tokens: int, seed: int = 0) -> None:
        self.store, self.seed = store, seed
        self._loader = Loader(store, LoaderConfig(batch_tokens=batch_tokens), seed=seed)
        self._longest = int(store.lengths[:, 0].max())

    @property
    def padding_share(self) -> float:
        """How much of what an epoch computes is padding: from 0 to 1."""
        return self._loader.padding_share

    def steps_per_epoch(self, epoch: int = 0) -> int:
        """How many batches an epoch has."""
        return self._loader.steps_per_epoch(epoch)

    def epoch(self, epoch: int, start: int = 0, share: Share = WHOLE) -> Iterator[TextBatch]:
        """The batches of an epoch in its own order, or a share of each, from the one numbered `start`."""
        return map(self._texts, self._loader.plan(epoch, start, share))

    def in_order(self) -> Iterator[TextBatch]:
        """Every batch once, from the shortest texts to the longest: for validation."""
        return map(self._texts, self._loader.plan_in_order())

    def _texts(self, part: Part) -> TextBatch:
        n_rows, places, _ = part.shape  # with a place for an end, which the texts have already
        return TextBatch.of(self.store, part.rows, (n_rows, min(places, self._longest)))
