"""One training loop for every task: it can be killed at any moment and goes on as if it had not been."""

from .averaging import Ema, mean_of
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
from .events import Event, Finished, Observer, Outcome, Saved, Trained, Validated
from .folder import RunFolder
from .loop import fit
from .loss import Loss, cross_entropy
from .objective import Batches, Monitor, Objective

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
    "TrainingConfig",
    "Validated",
    "cross_entropy",
    "fit",
    "mean_of",
]
