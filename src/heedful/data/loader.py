"""Batches of a few fixed shapes, in an order that depends only on (seed, epoch). Each process takes a shard of them.

A batch's size is counted in padded tokens of its longer side: rows × max(S, T) ≤ batch_tokens, with one row at least.
The shapes are chosen once, from the lengths, so that an epoch computes as little padding as it can.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ..config import Config
from ..errors import DataError
from .batch import DEFAULT_TOKENS, Batch, SpecialTokens
from .store import TokenStore

_STEP = 4  # lengths are rounded up to a multiple of this
_CANDIDATES = 256  # lengths that are tried as the upper end of a bucket, at most
_END = object()

Array = NDArray[np.int64]
T = TypeVar("T")


class Sliceable(Protocol):
    """A list, tuple, array or tensor: whatever can be sliced."""

    def __getitem__(self, key: slice, /) -> Any: ...


R = TypeVar("R", bound=Sliceable)


@dataclass(frozen=True)
class Shard:
    """The rows of every batch that one process takes: every `of`-th row, from row `index` on.

    All shards of a batch have one shape; together they hold every row once.
    """

    index: int = 0
    of: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.of:
            raise ValueError(f"the index of one of {self.of} shards is from 0 to {self.of - 1}, not {self.index}")

    def rows(self, rows: R) -> R:
        part: R = rows[self.index :: self.of]
        return part

    def size(self, n: int) -> int:
        """Return how many rows of n the largest shard has."""
        return -(-n // self.of)


WHOLE = Shard()


@dataclass(frozen=True, kw_only=True)
class LoaderConfig(Config):
    """`batch_tokens`: the most padded tokens on a batch's longer side; `n_shapes`: the most shapes there may be."""

    title: ClassVar[str] = "loader"

    batch_tokens: int = 4096
    n_shapes: int = 8

    def check(self) -> None:
        self.require_positive("batch_tokens", "n_shapes")


@dataclass(frozen=True)
class Bucket:
    """Rows of similar length, which share a shape (B, S, T).

    They are spread evenly: the sizes of two batches differ by one row at most.
    """

    members: NDArray[np.intp]
    shape: tuple[int, int, int]
    n_batches: int

    def part(self, order: NDArray[np.intp], batch: int) -> NDArray[np.intp]:
        """Return the rows of one batch, with the members in this order."""
        start, stop = (len(self.members) * index // self.n_batches for index in (batch, batch + 1))
        return self.members[order[start:stop]]


class BucketedLoader(ABC, Generic[T]):
    """Makes batches of a store. Every row comes exactly once in an epoch."""

    def __init__(self, store: TokenStore, config: LoaderConfig, seed: int = 0) -> None:
        self.store, self.config, self.seed = store, config, seed
        lengths = np.asarray(store.lengths, dtype=np.int64) + 1  # the end
        self._buckets = [_bucket(members, lengths, config.batch_tokens) for members in _divide(lengths, config)]
        owner = [np.full(bucket.n_batches, index) for index, bucket in enumerate(self._buckets)]
        number = [np.arange(bucket.n_batches) for bucket in self._buckets]
        self._steps = np.stack([np.concatenate(owner), np.concatenate(number)], axis=1)  # (steps, 2): bucket, batch

    @property
    def shapes(self) -> list[tuple[int, int, int]]:
        """The shapes (B, S, T) that occur, the shortest first."""
        return [bucket.shape for bucket in self._buckets]

    @property
    def padding_share(self) -> float:
        """The share of padding in what an epoch computes, source and target together: from 0 to 1."""
        places = sum(bucket.n_batches * b * (s + t) for bucket in self._buckets for b, s, t in [bucket.shape])
        return 1 - (int(self.store.lengths.sum(dtype=np.int64)) + 2 * len(self.store)) / places

    def steps_per_epoch(self, epoch: int = 0) -> int:
        """Return how many batches an epoch has; here the same for each."""
        return len(self._steps)

    def epoch(self, epoch: int, start: int = 0, shard: Shard = WHOLE) -> Iterator[T]:
        """Yield the batches of an epoch, or a shard of each, from batch `start` on; earlier ones are not computed."""
        if not 0 <= start <= len(self._steps):
            raise DataError(
                f"an epoch has {len(self._steps)} steps and cannot start at step {start}; "
                "have the data or batch_tokens changed since the run began?"
            )
        random = np.random.default_rng([self.seed, epoch])
        orders = [random.permutation(len(bucket.members)) for bucket in self._buckets]
        steps = random.permutation(self._steps)
        return self._batches(orders, steps[start:], shard)

    def in_order(self) -> Iterator[T]:
        """Yield every batch once, from the shortest rows to the longest: for validation."""
        orders = [np.arange(len(bucket.members)) for bucket in self._buckets]
        return self._batches(orders, self._steps, WHOLE)

    def _batches(self, orders: list[NDArray[np.intp]], steps: NDArray[Any], shard: Shard) -> Iterator[T]:
        for owner, number in steps:
            bucket = self._buckets[owner]
            n_rows, n_source, n_target = bucket.shape
            rows = shard.rows(bucket.part(orders[owner], number))
            yield self._batch(rows, (shard.size(n_rows), n_source, n_target))

    @abstractmethod
    def _batch(self, rows: NDArray[np.intp], shape: tuple[int, int, int]) -> T:
        """Return a batch of these rows of the store in this shape (B, S, T)."""


class Loader(BucketedLoader[Batch]):
    """Makes batches of a store of pairs."""

    def __init__(
        self, store: TokenStore, config: LoaderConfig, seed: int = 0, special: SpecialTokens = DEFAULT_TOKENS
    ) -> None:
        super().__init__(store, config, seed)
        self.special = special

    def _batch(self, rows: NDArray[np.intp], shape: tuple[int, int, int]) -> Batch:
        return Batch.laid_out(*self.store.sides(rows), shape, rows.tolist(), self.special)


def _bucket(members: NDArray[np.intp], lengths: Array, batch_tokens: int) -> Bucket:
    source, target = (_rounded(lengths[members].max(axis=0))).tolist()
    n_batches = -(-len(members) // max(1, batch_tokens // max(source, target)))
    return Bucket(members, (-(-len(members) // n_batches), source, target), n_batches)


def _divide(lengths: Array, config: LoaderConfig) -> list[NDArray[np.intp]]:
    """Sort the rows by the longer side and cut them into the buckets with the least cost of an epoch.

    cost[k][j] is the least for the first j groups in k buckets, by dynamic programming: the last bucket begins
    at some group i, and what precedes it is a smaller case of the same kind.
    """
    widths = lengths.max(axis=1)
    by_width = np.argsort(widths, kind="stable")
    rounded = _rounded(widths[by_width])
    ends = np.append(np.flatnonzero(np.diff(rounded)) + 1, len(rounded))  # a bucket may end behind each rounded length
    if len(ends) > _CANDIDATES:
        ends = ends[np.linspace(0, len(ends) - 1, _CANDIDATES).round().astype(np.intp)]
    n_groups, n_buckets = len(ends), min(config.n_shapes, len(ends))
    price = _prices(lengths[by_width], ends, config.batch_tokens)
    cost = np.full((n_buckets + 1, n_groups + 1), np.inf)
    begin = np.zeros((n_buckets + 1, n_groups + 1), dtype=np.intp)
    cost[0, 0] = 0
    for k in range(1, n_buckets + 1):
        total = cost[k - 1, :-1, None] + price  # (i, j): the bucket k holds the groups i to j
        begin[k, 1:], cost[k, 1:] = total.argmin(axis=0), total.min(axis=0)
    k, j, parts = int(cost[:, -1].argmin()), n_groups, []
    while j:
        i = begin[k, j]
        parts.append(by_width[ends[i - 1] if i else 0 : ends[j - 1]])
        k, j = k - 1, i
    return parts[::-1]


def _prices(lengths: Array, ends: NDArray[np.intp], batch_tokens: int) -> NDArray[np.float64]:
    """Return (i, j): the tokens, with padding, that a bucket of the groups i to j computes in an epoch."""
    begins = np.concatenate([[0], ends[:-1]])
    longest = _rounded(np.maximum.reduceat(lengths, begins, axis=0))  # (groups, 2)
    price = np.full((len(ends), len(ends)), np.inf)
    for i, begin in enumerate(begins):
        shape = np.maximum.accumulate(longest[i:], axis=0)
        rows = np.maximum(1, batch_tokens // shape.max(axis=1))
        price[i, i:] = -(-(ends[i:] - begin) // rows) * rows * shape.sum(axis=1)
    return price


def _rounded(lengths: Array) -> Array:
    return -(-lengths // _STEP) * _STEP


def prefetched(batches: Iterator[T], n: int) -> Generator[T, None, None]:
    """Yield the same items in the same order, with up to `n` computed ahead by a thread. Errors are raised in order.

    The thread starts with the first item requested, and ends with the last, with an error, or when the consumer closes
    or drops the iterator.
    """
    if n < 1:
        raise ValueError(f"at least one batch is made ahead, not {n}")
    return _made_ahead(batches, n)


def _made_ahead(batches: Iterator[T], n: int) -> Generator[T, None, None]:
    worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="prefetch")  # one thread keeps the order
    try:
        coming = deque(worker.submit(next, batches, _END) for _ in range(n))
        while (batch := coming.popleft().result()) is not _END:
            coming.append(worker.submit(next, batches, _END))
            yield cast("T", batch)
    finally:
        worker.shutdown(cancel_futures=True)
