"""Texts in ids as batches of one fixed shape: whole texts for models that read, windows of a long row for models that
continue.

Shapes: B rows or windows, T tokens in each; a window holds T + 1 ids, since each is predicted from those before it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import DataError
from .batch import Sequences, TensorBatch
from .loader import WHOLE, BucketedLoader, LoaderConfig, Shard
from .store import TokenStore

Row = NDArray[np.integer[Any]]
Labels = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TextBatch(TensorBatch):
    """Texts side by side, padded at the end. Rows beyond the real ones are all padding."""

    host_fields: ClassVar[dict[str, Any]] = {"lengths": None, "rows": ()}

    ids: Tensor  # (B, T)
    segments: Tensor  # (B, T) 1 where a second text stands
    keep: Tensor  # (B, T) True where real
    labels: Tensor  # (B,) the class; 0 where there is none. Subclasses have other labels
    real: Tensor  # (B,) True for real rows
    lengths: tuple[int, ...] | None  # B numbers, known to the host
    rows: tuple[int, ...]  # the real rows' indices in the store

    @classmethod
    def of(cls, store: TokenStore, rows: Sequence[int] | NDArray[np.intp], shape: tuple[int, int]) -> Self:
        """Rows of a store whose targets are a label and the place where the second text begins, or nothing."""
        numbers, (n_rows, width) = np.asarray(rows, dtype=np.intp), shape
        texts, targets = store.sides(numbers)
        ids = texts.laid_out(shape, 0)
        labels, second = cls._read_targets(targets, shape)
        lengths = texts.lengths_of(n_rows)
        keep = np.arange(width) < lengths[:, None]
        segments = keep & (np.arange(width) >= second[:, None])
        segments[: len(numbers)] &= targets.lengths[:, None] > 0
        return cls(
            ids=torch.from_numpy(ids),
            segments=torch.from_numpy(segments.astype(np.int64)),
            keep=torch.from_numpy(keep),
            labels=torch.from_numpy(np.ascontiguousarray(labels)),
            real=torch.from_numpy(np.arange(n_rows) < len(numbers)),
            lengths=tuple(lengths.tolist()),
            rows=tuple(numbers.tolist()),
        )

    @classmethod
    def _read_targets(cls, targets: Sequences, shape: tuple[int, int]) -> tuple[Labels, Labels]:
        """Return the labels of every row, and where its second text begins."""
        labels, second = targets.laid_out((shape[0], 2), 0).T
        return labels, second


class SpanBatch(TextBatch):
    """Texts whose labels are a span: (B, 2), its first and its last token."""

    @classmethod
    def _read_targets(cls, targets: Sequences, shape: tuple[int, int]) -> tuple[Labels, Labels]:
        values = targets.laid_out((shape[0], 3), 0)
        return values[:, :2], values[:, 2]


class TagBatch(TextBatch):
    """Texts with a label for each token: (B, T), -1 where there is none. Rows of the store hold labels from 1 on."""

    @classmethod
    def _read_targets(cls, targets: Sequences, shape: tuple[int, int]) -> tuple[Labels, Labels]:
        return targets.laid_out(shape, 0) - 1, np.full(shape[0], shape[1])


class TextLoader(BucketedLoader[TextBatch]):
    """A store of texts as batches of a class, in an order that (seed, epoch) alone decides."""

    def __init__(
        self, store: TokenStore, batch_tokens: int, seed: int = 0, *, batch_class: type[TextBatch] = TextBatch
    ) -> None:
        super().__init__(store, LoaderConfig(batch_tokens=batch_tokens), seed)
        self._longest = int(store.lengths[:, 0].max())
        self._batch_class = batch_class

    def _batch(self, rows: NDArray[np.intp], shape: tuple[int, int, int]) -> TextBatch:
        n_rows, places, _ = shape  # with a place for an end, which the texts have already
        return self._batch_class.of(self.store, rows, (n_rows, min(places, self._longest)))


@dataclass(frozen=True, eq=False)
class TokenWindows(TensorBatch):
    """A batch of windows. Where `keep` is None, every target counts."""

    host_fields: ClassVar[dict[str, Any]] = {"starts": ()}

    ids: Tensor  # (B, T + 1)
    keep: Tensor | None  # (B, T) which of the targets count
    starts: tuple[int, ...]  # where each window begins, known to the host

    @property
    def inputs(self) -> Tensor:
        return self.ids[:, :-1]

    @property
    def targets(self) -> Tensor:
        return self.ids[:, 1:]


class RandomWindows:
    """Random windows for training, determined by (seed, epoch, step). All batches have one shape.

    An epoch has as many batches as contain about as many tokens as the text.
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

    def epoch(self, epoch: int, start: int = 0, shard: Shard = WHOLE) -> Iterator[TokenWindows]:
        """The batches of an epoch, or a shard of each, from the one numbered `start`."""
        size = shard.size(self.batch)
        even = size * shard.of == self.batch
        for step in range(start, self.steps_per_epoch(epoch)):
            random = np.random.default_rng([self.seed, epoch, step])
            starts = shard.rows(random.integers(len(self.row) - self.context, size=self.batch))
            keep = None if even else (torch.arange(size) < len(starts))[:, None].repeat(1, self.context)
            ids = _taken(self.row, np.pad(starts, (0, size - len(starts))), self.context)
            yield TokenWindows(ids, keep, tuple(starts.tolist()))


def every_window(row: Row, *, context: int, stride: int, batch: int) -> Iterator[TokenWindows]:
    """Yield windows over a whole row, in which every id but the first is a target exactly once.

    A window begins every `stride` ids. In the first all targets count, in others those that no earlier one had, so each
    has at least `context` − `stride` tokens before it. The last window and batch are filled up with ids that do not
    count: all batches have one shape.
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
        yield TokenWindows(ids, torch.from_numpy(keep), tuple(begin.tolist()))


def _taken(row: Row, starts: NDArray[np.int64], context: int) -> Tensor:
    """Return (B, T + 1) ids; beyond the end of the row its last id repeats."""
    places = np.minimum(starts[:, None] + np.arange(context + 1), len(row) - 1)
    return torch.from_numpy(row[places].astype(np.int64))
