"""Batches made in a thread while the consumer is busy with earlier ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, cast

T = TypeVar("T")
_END = object()


def prefetched(batches: Iterator[T], n: int) -> Generator[T, None, None]:
    """The same in the same order, up to `n` of them made ahead. An error comes where its batch would have come.

    The thread begins with the first batch asked for, and ends with the last, with an error, or when the consumer closes
    or drops the iterator; no later batch is made then.
    """
    if n < 1:
        raise ValueError(f"at least one batch is made ahead, not {n}")
    return _made_ahead(batches, n)


def _made_ahead(batches: Iterator[T], n: int) -> Generator[T, None, None]:
    worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="prefetch")  # one thread: they come in order
    try:
        coming = deque(worker.submit(next, batches, _END) for _ in range(n))
        while (batch := coming.popleft().result()) is not _END:
            coming.append(worker.submit(next, batches, _END))
            yield cast("T", batch)
    finally:
        worker.shutdown(cancel_futures=True)
