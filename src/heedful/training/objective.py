"""What the trainer needs from a task: its module, its batches, its loss and the score to monitor."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, TypeVar

from torch import nn

from ..data.batch import TensorBatch
from ..data.loader import WHOLE, Shard
from ..errors import DataError
from .loss import Loss

B = TypeVar("B", bound=TensorBatch)
B_co = TypeVar("B_co", bound=TensorBatch, covariant=True)


@dataclass(frozen=True)
class Monitor:
    """The validation score that selects the best checkpoint, and whether higher is better."""

    name: str
    higher_is_better: bool

    def key(self, scores: dict[str, float]) -> float:
        """Return a sort key, the lowest for the best scores."""
        return -scores[self.name] if self.higher_is_better else scores[self.name]

    def progress_key(self, scores: dict[str, float]) -> tuple[float, float]:
        """Return a sort key that compares losses as long as nothing is right, as before the first exact answer."""
        return self.key(scores), 0.0 if scores[self.name] else scores.get("loss", 0.0)


class Batches(Protocol[B_co]):
    """The training data. The batches of an epoch depend on its number alone, so that a run can resume in it."""

    def epoch(self, epoch: int, start: int = 0, shard: Shard = WHOLE) -> Iterator[B_co]:
        """Iterate over the batches of an epoch from the one numbered `start`, each with the rows of one process."""

    def steps_per_epoch(self, epoch: int) -> int:
        """Return how many batches an epoch has."""


class Objective(Protocol[B]):
    """A module, its data, its loss and the score to monitor. Randomness must come from torch's generators."""

    @property
    def module(self) -> nn.Module: ...

    @property
    def batches(self) -> Batches[B]: ...

    @property
    def monitor(self) -> Monitor: ...

    def loss(self, module: nn.Module, batch: B) -> Loss:
        """Return the sums over a batch. It must not read values on the host, which would wait for the GPU."""

    def validate(self, module: nn.Module) -> dict[str, float]:
        """Return the scores of a module in evaluation mode. It is called without gradients."""

    def describe(self, batch: B) -> Sequence[str]:
        """Return where a batch's rows come from, such as file and line, for error messages."""

    def identity(self) -> dict[str, str]:
        """Return fingerprints of what must not change when a run is resumed: data, model, tokenizer."""


@dataclass(frozen=True)
class Group:
    """The batches of one update, and the position in the data after it."""

    batches: Sequence[Any]
    epoch: int
    start: int  # the number of the first batch in its epoch
    next_position: tuple[int, int]  # the epoch and the batch that come next


def groups(batches: Batches[Any], epoch: int, start: int, size: int, shard: Shard = WHOLE) -> Generator[Group]:
    """Iterate over groups of `size` batches without end. The last of an epoch may be smaller: none spans two epochs."""
    while True:
        n = batches.steps_per_epoch(epoch)
        if n < 1:
            raise DataError(f"epoch {epoch} of the training data has no batch; is the data empty?")
        start = min(start, n)  # if the data has changed and is smaller now, this epoch is over
        loaded = batches.epoch(epoch, start, shard)
        for first in range(start, n, size):
            end = min(first + size, n)
            group = list(islice(loaded, end - first))
            if len(group) < end - first:
                raise DataError(f"epoch {epoch} of the training data has fewer batches than steps_per_epoch returned")
            yield Group(group, epoch, first, (epoch, end) if end < n else (epoch + 1, 0))
        epoch, start = epoch + 1, 0


def unsharded(group: Group, batches: Batches[Any]) -> Iterator[Any]:
    """Iterate over a group's batches with the rows of all processes. They are loaded again, for error messages."""
    yield from islice(batches.epoch(group.epoch, group.start), len(group.batches))
