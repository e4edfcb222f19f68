"""What was read for training and for validation, together: the content of a run's reading.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar


class SplitReport(Protocol):
    """What was read, kept and dropped of one split."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a JSON file."""


R = TypeVar("R", bound=SplitReport)


@dataclass
class DataReport(Generic[R]):
    """What was read for training and for validation.

    Where `valid` is None, `held_out` examples of `train` serve. Where `held_out` is None, one series of steps is
    divided by time, and there is nothing to say but of `train`. `extra` is what a task adds to the part of `train`.
    """

    train: R
    valid: R | None = None
    held_out: int | None = 0
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The content of reading.json."""
        train = {**self.train.to_dict(), **self.extra}
        if self.held_out is None:
            return {"train": train}
        return {
            "train": train,
            "valid": None if self.valid is None else self.valid.to_dict(),
            "held_out": self.held_out,
        }
