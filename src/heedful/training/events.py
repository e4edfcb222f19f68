"""What a run tells those who watch it. An observer is any function of an event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from torch import nn

from .progress import Validation


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
