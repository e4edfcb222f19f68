"""What every run shares, whatever its task: the folder, the data's fingerprints, training, the card, the page."""

from .config import Files, RunConfig
from .folder import asked
from .reporting import write_report
from .task import Readings, Task, TaskJob, TooLittleDataError
from .train import train

__all__ = [
    "Files",
    "Readings",
    "RunConfig",
    "Task",
    "TaskJob",
    "TooLittleDataError",
    "asked",
    "train",
    "write_report",
]
