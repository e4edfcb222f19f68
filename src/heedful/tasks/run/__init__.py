"""What the runs of all tasks share: the folder, fingerprints of the data, training, the card and the report."""

from ...data.report import DataReport
from .config import Files, RunConfig
from .data import Refusals, TooLittleDataError, TrainingData
from .folder import read_run
from .reporting import write_report
from .task import AnyTask, Task
from .train import train

__all__ = [
    "AnyTask",
    "DataReport",
    "Files",
    "Refusals",
    "RunConfig",
    "Task",
    "TooLittleDataError",
    "TrainingData",
    "read_run",
    "train",
    "write_report",
]
