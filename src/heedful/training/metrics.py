"""What a run tells of its steps: values that come back from the device later, events for observers, and its log.

An observer is any function of an event; the log, one JSON row a line, and TensorBoard are two of them.
"""

import json
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import MissingDependencyError
from ..files import replacing
from .errors import FolderError


@dataclass(frozen=True)
class StepValues:
    """Of one step: its loss sums, how many they are over, the norm of the gradient, and the batches it came from."""

    step: int
    epoch: int
    batches: Iterable[Any]
    total: float
    plain: float
    n: float
    norm: float
    finite: bool


class AsyncMetrics:
    """What the host learns of a step, a few steps later and without waiting for the device.

    A ring of steps whose values are on their way to the host. It knows their batches, to name the input.
    """

    def __init__(self, room: int = 8) -> None:
        self.room = room
        self._coming: deque[tuple[int, int, Iterable[Any], Tensor, torch.cuda.Event | None]] = deque()

    def put(self, step: int, epoch: int, batches: Iterable[Any], values: Tensor) -> None:
        """Send a step's values (total, plain, n, norm, finite) on their way."""
        copy = values.to("cpu", non_blocking=True, copy=True)  # from a GPU: into pinned memory
        arrived = torch.cuda.Event() if values.is_cuda else None
        if arrived is not None:
            arrived.record()
        self._coming.append((step, epoch, batches, copy, arrived))

    def take(self, *, wait: bool = False) -> Iterator[StepValues]:
        """The steps that have arrived, in order; all of them with `wait`. More than `room` never stay behind."""
        while self._coming:
            step, epoch, batches, copy, arrived = self._coming[0]
            if arrived is not None and not arrived.query():
                if not wait and len(self._coming) <= self.room:
                    return
                arrived.synchronize()
            self._coming.popleft()
            total, plain, n, norm, finite = copy.tolist()
            yield StepValues(step, epoch, batches, total, plain, n, norm, bool(finite))


@dataclass
class Meter:
    """Sums since the last row of the log, and what the last step was like."""

    step: int = 0
    epoch: int = 0
    norm: float = 0.0
    total: float = 0.0
    plain: float = 0.0
    n: float = 0.0

    def add(self, values: StepValues) -> None:
        """Count a step in."""
        self.step, self.epoch, self.norm = values.step, values.epoch, values.norm
        self.total += values.total
        self.plain += values.plain
        self.n += values.n


@dataclass(frozen=True)
class Validation:
    """The scores at a step."""

    step: int
    scores: dict[str, float]


@dataclass(frozen=True)
class Outcome:
    """How a run ended. `module` holds the final weights; `weights` says which those are."""

    module: nn.Module = field(repr=False)
    why: str
    step: int
    seconds: float
    weights: str
    scores: dict[str, float]
    validations: tuple[Validation, ...]


@dataclass(frozen=True)
class Trained:
    """Steps since the last event of this kind: means per token, and how it goes."""

    step: int
    total_steps: int
    epoch: int
    loss: float
    nll: float  # without label smoothing
    learning_rate: float
    grad_norm: float  # of this step, before clipping
    tokens_per_second: float
    seconds: float
    seconds_left: float


@dataclass(frozen=True)
class Validated:
    """A validation, and whether none before was better."""

    step: int
    scores: dict[str, float]
    is_best: bool


@dataclass(frozen=True)
class Saved:
    """A checkpoint is whole on the disk."""

    step: int
    path: Path


@dataclass(frozen=True)
class Finished:
    """The run is over."""

    outcome: Outcome


Event = Trained | Validated | Saved | Finished
Observer = Callable[[Event], None]


class Log:
    """Rows of kind "train" and "valid". A resumed run keeps the first `rows`, so that no step stands there twice."""

    def __init__(self, path: Path, rows: int = 0) -> None:
        self.path = path
        with self._writing():
            kept = path.read_bytes().splitlines(keepends=True)[:rows] if path.exists() else []
            with replacing(path) as shorter:
                shorter.write_bytes(b"".join(kept))
            self._stream = path.open("a", encoding="utf-8")
        self.rows = len(kept)

    def __call__(self, event: Event) -> None:
        row = row_of(event)
        if row is None:
            return
        with self._writing():
            self._stream.write(json.dumps(row) + "\n")
            self._stream.flush()
        self.rows += 1

    def close(self) -> None:
        """No more rows."""
        with self._writing():
            self._stream.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise FolderError(f"the log {self.path} cannot be written: {error.strerror}") from None


def row_of(event: Event) -> dict[str, Any] | None:
    """The event as a row of the log, where it has one. What is no number is null: JSON knows no NaN."""
    row: dict[str, Any]
    match event:
        case Trained():
            row = {
                "kind": "train",
                "step": event.step,
                "epoch": event.epoch,
                "loss": event.loss,
                "nll": event.nll,
                "lr": event.learning_rate,
                "grad_norm": event.grad_norm,
                "tokens_per_second": round(event.tokens_per_second, 1),
            }
        case Validated():
            row = {"kind": "valid", "step": event.step, **event.scores}
        case _:
            return None
    row["time"] = round(time.time(), 3)
    return {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in row.items()}


class TensorBoard:
    """The rows of the log as curves. What lies beyond `step`, where a run goes on, is hidden."""

    def __init__(self, folder: Path, step: int = 0) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise MissingDependencyError(
                "training.tensorboard needs TensorBoard: pip install tensorboard, or set it to false"
            ) from None
        self._writer = SummaryWriter(str(folder), purge_step=step + 1)

    def __call__(self, event: Event) -> None:
        row = row_of(event) or {}
        for name in row.keys() - {"kind", "step", "time"}:
            if row[name] is not None:
                self._writer.add_scalar(f"{row['kind']}/{name}", row[name], row["step"])

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()
