"""Which part of every batch a process takes, where several train one model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeVar


class Sliceable(Protocol):
    """A list, a tuple, an array, a tensor."""

    def __getitem__(self, key: slice, /) -> Any: ...


R = TypeVar("R", bound=Sliceable)


@dataclass(frozen=True)
class Share:
    """Process `index` of `of` takes every `of`-th row. All of them together have every row once, and each makes room
    for as many as any: a batch has one shape on all."""

    index: int = 0
    of: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.of:
            raise ValueError(f"of {self.of} shares, one has a number from 0 to {self.of - 1}, not {self.index}")

    def rows(self, rows: R) -> R:
        """This process's rows of all."""
        part: R = rows[self.index :: self.of]
        return part

    def size(self, n: int) -> int:
        """How many rows of n the largest share has."""
        return -(-n // self.of)


WHOLE = Share()
