"""An answer that comes bit by bit."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Generic, TypeVar

Bit = TypeVar("Bit")
Whole = TypeVar("Whole")


class Stream(Iterator[Bit], Generic[Bit, Whole]):
    """Its bits, each as soon as it is certain, and once they have all come, `answer`: the whole."""

    def __init__(self, bits: Generator[Bit, None, Whole]) -> None:
        self._bits = bits
        self.answer: Whole | None = None

    def __next__(self) -> Bit:
        try:
            return next(self._bits)
        except StopIteration as end:
            self.answer = self.answer or end.value
            raise

    def close(self) -> None:
        """Write no more."""
        self._bits.close()
