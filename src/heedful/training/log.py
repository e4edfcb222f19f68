"""The run's log, one JSON row a line, and TensorBoard where it is asked for. Both are observers."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

from ..errors import MissingDependencyError
from ..files import replacing
from .errors import FolderError
from .events import Event, Trained, Validated


class Log:
    """Rows of kind "train" and "valid". A resumed run keeps the first `rows`, so that no step stands there twice."""

    def __init__(self, path: Path, rows: int = 0) -> None:
        self.path = path
        try:
            kept = path.read_bytes().splitlines(keepends=True)[:rows] if path.exists() else []
            with replacing(path) as shorter:
                shorter.write_bytes(b"".join(kept))
            self._stream = path.open("a", encoding="utf-8")
        except OSError as error:
            raise self._unwritable(error) from None
        self.rows = len(kept)

    def __call__(self, event: Event) -> None:
        row = row_of(event)
        if row is None:
            return
        try:
            self._stream.write(json.dumps(row) + "\n")
            self._stream.flush()
        except OSError as error:
            raise self._unwritable(error) from None
        self.rows += 1

    def close(self) -> None:
        """No more rows."""
        try:
            self._stream.close()
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> FolderError:
        return FolderError(f"the log {self.path} cannot be written: {error.strerror}")


class NoLog(Log):
    """Of a process that leaves it to the first to keep one."""

    def __init__(self) -> None:
        self.rows = 0

    def __call__(self, event: Event) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """There was nothing."""


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
