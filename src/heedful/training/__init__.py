"""One training loop for every task: it can be killed at any moment and goes on as if it had not been."""

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
from .job import Batches, Goal, Job
from .loss import Loss, cross_entropy
from .metrics import Event, Finished, Observer, Outcome, Saved, Trained, Validated
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
    "Goal",
    "Interrupted",
    "Job",
    "Loss",
    "NonFiniteError",
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
