"""Texts in ids as batches of a few fixed shapes: for models that read.

Shapes: B rows, T tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from .batch import Batch, moved
from .loader import Loader, LoaderConfig
from .store import TokenStore


@dataclass(frozen=True, eq=False)
class TextBatch:
    """Texts side by side, padded at the end. Rows beyond the real ones are all padding."""

    ids: Tensor  # (B, T)
    segments: Tensor  # (B, T) 1 where a second text stands
    keep: Tensor  # (B, T) True where real
    labels: Tensor  # (B,) the class; 0 where there is none
    real: Tensor  # (B,) True for real rows
    lengths: tuple[int, ...]  # B numbers, known to the host
    rows: tuple[int, ...]  # the real rows' indices in the store

    @staticmethod
    def of(store: TokenStore, rows: Sequence[int], shape: tuple[int, int]) -> TextBatch:
        """Rows of a store whose targets are a label and the place where the second text begins, or nothing."""
        ids, segments, labels = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape[0], np.int64)
        lengths = [0] * shape[0]
        for place, row in enumerate(rows):
            tokens, target = store[row]
            lengths[place] = len(tokens)
            ids[place, : len(tokens)] = tokens
            if len(target):
                labels[place] = target[0]
                segments[place, target[1] : len(tokens)] = 1
        keep = np.arange(shape[1]) < np.array(lengths)[:, None]
        real = np.arange(shape[0]) < len(rows)
        return TextBatch(
            ids=torch.from_numpy(ids),
            segments=torch.from_numpy(segments),
            keep=torch.from_numpy(keep),
            labels=torch.from_numpy(labels),
            real=torch.from_numpy(real),
            lengths=tuple(lengths),
            rows=tuple(rows),
        )

    def to(self, device: torch.device | str) -> Self:
        """The same on a device."""
        return moved(self, device)


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

    def epoch(self, epoch: int, start: int = 0) -> Iterator[TextBatch]:
        """The batches of an epoch in its own order, from the one numbered `start`."""
        return map(self._texts, self._loader.epoch(epoch, start))

    def in_order(self) -> Iterator[TextBatch]:
        """Every batch once, from the shortest texts to the longest: for validation."""
        return map(self._texts, self._loader.in_order())

    def _texts(self, batch: Batch) -> TextBatch:
        rows, places, _ = batch.shape  # with a place for an end, which the texts have already
        return TextBatch.of(self.store, batch.rows, (rows, min(places, self._longest)))
