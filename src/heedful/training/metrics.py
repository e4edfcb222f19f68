"""The metrics of a run: values that arrive from the device later, events for observers, and the log.

An observer is any function of an event. The log (JSON lines) and TensorBoard are observers.
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
    """The values of one step: its loss sums, the number of tokens, the gradient's norm, and its batches."""

    step: int
    epoch: int
    batches: Iterable[Any]
    total: float
    plain: float
    n: float
    norm: float
    finite: bool


class AsyncMetrics:
    """Copies the values of steps to the host, where they arrive a few steps later without waiting for the device.

    It keeps the batches of these steps, so that an error can name the input.
    """

    def __init__(self, max_pending: int = 8) -> None:
        self.max_pending = max_pending
        self._pending: deque[tuple[int, int, Iterable[Any], Tensor, torch.cuda.Event | None]] = deque()

    def put(self, step: int, epoch: int, batches: Iterable[Any], values: Tensor) -> None:
        """Start to copy a step's values (total, plain, n, norm, finite)."""
        copy = values.to("cpu", non_blocking=True, copy=True)  # from a GPU: into pinned memory
        event = torch.cuda.Event() if values.is_cuda else None
        if event is not None:
            event.record()
        self._pending.append((step, epoch, batches, copy, event))

    def take(self, *, wait: bool = False) -> Iterator[StepValues]:
        """Iterate over the steps that have arrived, in order, or over all with `wait`. At most `max_pending` remain."""
        while self._pending:
            step, epoch, batches, copy, event = self._pending[0]
            if event is not None and not event.query():
                if not wait and len(self._pending) <= self.max_pending:
                    return
                event.synchronize()
            self._pending.popleft()
            total, plain, n, norm, finite = copy.tolist()
            yield StepValues(step, epoch, batches, total, plain, n, norm, bool(finite))


@dataclass
class Meter:
    """Sums since the last row of the log, and the norm of the last step."""

    step: int = 0
    epoch: int = 0
    norm: float = 0.0
    total: float = 0.0
    plain: float = 0.0
    n: float = 0.0

    def add(self, values: StepValues) -> None:
        self.step, self.epoch, self.norm = values.step, values.epoch, values.norm
        self.total += values.total
        self.plain += values.plain
        self.n += values.n


@dataclass(frozen=True)
class Validation:
    """The scores of a validation and its step."""

    step: int
    scores: dict[str, float]


@dataclass(frozen=True)
class Outcome:
    """The result of a run. `module` has the final weights, which `weights` describes; `why` is why the run ended."""

    module: nn.Module = field(repr=False)
    why: str
    step: int
    seconds: float
    weights: str
    scores: dict[str, float]
    validations: tuple[Validation, ...]


@dataclass(frozen=True)
class Planned:
    """What the pace of the first steps allows: how many steps, how many of the epochs, and how long they take."""

    steps: int
    epochs: float
    seconds: float
    steps_per_second: float
    limited: bool  # by the time, so that the schedule ends before the last step of the settings


@dataclass(frozen=True)
class Trained:
    """Progress since the last event of this kind: mean losses per item (a token, a text, an image), and speed."""

    step: int
    total_steps: int
    epoch: int
    loss: float
    nll: float  # without label smoothing
    learning_rate: float
    grad_norm: float  # of this step, before clipping
    items_per_second: float
    seconds: float
    seconds_left: float


@dataclass(frozen=True)
class Spiked:
    """The loss of a step was far above the earlier ones; `places` are of its input."""

    step: int
    loss: float
    mean: float  # of the earlier ones
    deviations: float  # how far above the mean, in standard deviations
    skipped: bool
    places: tuple[str, ...]


@dataclass(frozen=True)
class Validated:
    """A validation. `is_best` is True if no earlier one was better."""

    step: int
    scores: dict[str, float]
    is_best: bool


@dataclass(frozen=True)
class Saved:
    """A checkpoint was written to the disk."""

    step: int
    path: Path


@dataclass(frozen=True)
class Finished:
    """The run has ended, with its outcome."""

    outcome: Outcome


Event = Planned | Trained | Spiked | Validated | Saved | Finished
Observer = Callable[[Event], None]


class Log:
    """A log with rows of kind "train" and "valid". A resumed run keeps the first `rows`, so no step occurs twice."""

    def __init__(self, path: Path, rows: int = 0) -> None:
        self.path = path
        with self._writing():
            content = path.read_bytes() if path.exists() else b""
            # The last line may have been cut while it was written.
            lines = [line for line in content.splitlines(keepends=True)[:rows] if line.endswith(b"\n")]
            with replacing(path) as shorter:
                shorter.write_bytes(b"".join(lines))
            self._stream = path.open("a", encoding="utf-8")
        self.rows = len(lines)

    def __call__(self, event: Event) -> None:
        row = row_of(event)
        if row is None:
            return
        with self._writing():
            self._stream.write(json.dumps(row) + "\n")
            self._stream.flush()
        self.rows += 1

    def close(self) -> None:
        with self._writing():
            self._stream.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise FolderError(f"the log {self.path} cannot be written: {error.strerror}") from None


def row_of(event: Event) -> dict[str, Any] | None:
    """Return the row of an event for the log, or None. NaN and infinity become null, as JSON needs."""
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
                "tokens_per_second": round(event.items_per_second, 1),
            }
        case Spiked():
            row = {"kind": "spike", "step": event.step, "loss": event.loss, "mean": event.mean}
        case Validated():
            row = {"kind": "valid", "step": event.step, **event.scores}
        case _:
            return None
    row["time"] = round(time.time(), 3)
    return {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in row.items()}


class TensorBoard:
    """The rows of the log as TensorBoard curves. Earlier values beyond `step`, where the run resumes, are hidden."""

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
        self._writer.close()
