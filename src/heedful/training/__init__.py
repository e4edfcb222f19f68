"""One training loop for every task. A run can be killed at any moment and resumed as if it had not been."""

from .checkpoint import RunFolder
from .config import TrainingConfig
from .errors import (
    CheckpointError,
    CheckpointWarning,
    FolderError,
    Interrupted,
    NonFiniteError,
    ResumeError,
    ResumeWarning,
)
from .loss import Loss, cross_entropy
from .metrics import Event, Finished, Observer, Outcome, Saved, Trained, Validated
from .objective import Batches, Monitor, Objective
from .trainer import Trainer, fit
from .update import Ema, mean_of

__all__ = [
    "Batches",
    "CheckpointError",
    "CheckpointWarning",
    "Ema",
    "Event",
    "Finished",
    "FolderError",
    "Interrupted",
    "Loss",
    "Monitor",
    "NonFiniteError",
    "Objective",
    "Observer",
    "Outcome",
    "ResumeError",
    "ResumeWarning",
    "RunFolder",
    "Saved",
    "Trained",
    "Trainer",
    "TrainingConfig",
    "Validated",
    "cross_entropy",
    "fit",
    "mean_of",
]
