"""What the trainer needs to know of a task: its module, its batches, its loss and the score that is monitored."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, Self, TypeVar

import torch
from torch import nn

from ..data.loader import WHOLE, Shard
from ..errors import DataError
from .loss import Loss


class Movable(Protocol):
    """A batch, a dataclass of tensors and of what the host knows about them."""

    def to(self, device: torch.device) -> Self:
        """The same on a device."""

    def fixed(self) -> Self:
        """The same without what the host knows of its values, so that a graph of it serves all of its shape."""


B = TypeVar("B", bound=Movable)
B_co = TypeVar("B_co", bound=Movable, covariant=True)


@dataclass(frozen=True)
class Monitor:
    """The validation score that chooses the best checkpoint, one of those `validate` gives, and its direction."""

    name: str
    higher_is_better: bool

    def key(self, scores: dict[str, float]) -> float:
        """To sort by, the best first."""
        return -scores[self.name] if self.higher_is_better else scores[self.name]


class Batches(Protocol[B_co]):
    """The training data: what an epoch holds depends on its number and nothing else."""

    def epoch(self, epoch: int, start: int = 0, share: Shard = WHOLE) -> Iterator[B_co]:
        """The batches of an epoch, from the one numbered `start`; of each, the rows of one process."""

    def steps_per_epoch(self, epoch: int) -> int:
        """How many batches an epoch has."""


class Objective(Protocol[B]):
    """A module, its data, its loss and the score to monitor. Where chance is needed, it is drawn from torch."""

    @property
    def module(self) -> nn.Module: ...

    @property
    def batches(self) -> Batches[B]: ...

    @property
    def monitor(self) -> Monitor: ...

    def loss(self, module: nn.Module, batch: B) -> Loss:
        """Sums over a batch. No value may be read here: on a GPU, that would wait for it."""

    def validate(self, module: nn.Module) -> dict[str, float]:
        """Scores of a module in evaluation mode; no gradients are kept."""

    def describe(self, batch: B) -> Sequence[str]:
        """The places of a batch's input, to find a bad line by."""

    def identity(self) -> dict[str, str]:
        """Fingerprints of what must not change between a run and its resumption: data, model, tokeniser."""


@dataclass(frozen=True)
class Group:
    """The batches of one update, and where the data stands after it."""

    batches: Sequence[Any]
    epoch: int
    start: int  # the number of the first in its epoch
    after: tuple[int, int]  # the epoch and the batch that come next


def groups(batches: Batches[Any], epoch: int, start: int, size: int, share: Shard = WHOLE) -> Generator[Group]:
    """Groups of `size` batches without end. The last of an epoch may be smaller: no update spans two epochs."""
    while True:
        n = batches.steps_per_epoch(epoch)
        if n < 1:
            raise DataError(f"epoch {epoch} of the training data has no batch; is the data empty?")
        start = min(start, n)  # data that was allowed to change may be less: then this epoch is over
        coming = batches.epoch(epoch, start, share)
        for first in range(start, n, size):
            end = min(first + size, n)
            taken = list(islice(coming, end - first))
            if len(taken) < end - first:
                raise DataError("the training data ended before its epoch did; steps_per_epoch promised more batches")
            yield Group(taken, epoch, first, (epoch, end) if end < n else (epoch + 1, 0))
        epoch, start = epoch + 1, 0


def whole(group: Group, batches: Batches[Any]) -> Iterator[Any]:
    """A group's batches with the rows of all processes; made when they are looked at, which is seldom."""
    yield from islice(batches.epoch(group.epoch, group.start), len(group.batches))
