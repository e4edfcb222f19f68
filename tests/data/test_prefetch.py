"""Batches made ahead: the same in the same order, no more than asked, and no thread is left."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from heedful.data.loader import prefetched


class Counting:
    """Numbers up to a last one; what was made, and when `wanted` of them are."""

    def __init__(self, n: int, wanted: int) -> None:
        self.n, self.wanted = n, wanted
        self.threads: list[threading.Thread] = []
        self.reached = threading.Event()

    def __iter__(self) -> Iterator[int]:
        for number in range(self.n):
            self.threads.append(threading.current_thread())
            if number + 1 == self.wanted:
                self.reached.set()
            yield number


@pytest.mark.parametrize("n", [1, 2, 5, 50])
def test_they_come_in_order_from_another_thread(n: int) -> None:
    numbers = Counting(20, 20)
    assert list(prefetched(iter(numbers), n)) == list(range(20))
    (thread,) = set(numbers.threads)
    assert thread is not threading.current_thread()
    assert not thread.is_alive()


def test_so_many_are_made_ahead_and_no_more() -> None:
    numbers = Counting(20, 4)
    coming = prefetched(iter(numbers), 3)
    assert not numbers.threads  # nothing begins before the first is asked for
    assert next(coming) == 0
    assert numbers.reached.wait(10)  # the one that was taken, and three more
    coming.close()
    assert len(numbers.threads) == 4
    assert not numbers.threads[0].is_alive()


def test_a_consumer_that_breaks_off_leaves_no_thread() -> None:
    numbers = Counting(10**9, 1)
    for number in prefetched(iter(numbers), 2):
        if number == 5:
            break
    assert not numbers.threads[0].is_alive()
    assert len(numbers.threads) <= 8


def test_an_error_comes_where_its_batch_would_have() -> None:
    def failing() -> Iterator[int]:
        yield 1
        yield 2
        raise OSError("the disk is gone")

    coming = prefetched(failing(), 4)
    assert [next(coming), next(coming)] == [1, 2]
    with pytest.raises(OSError, match="the disk is gone"):
        next(coming)
    assert list(coming) == []
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("prefetch")]


def test_none_ahead_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one batch is made ahead, not 0"):
        prefetched(iter(()), 0)
