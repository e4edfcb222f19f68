"""The lab: break one part of a model, train or run it beside the intact one, and look at the difference."""

from . import broken_parts, measures, recurrence, trained
from .experiments import EXPERIMENTS, Arm, Experiment, Findings, Gap, run

__all__ = [
    "EXPERIMENTS",
    "Arm",
    "Experiment",
    "Findings",
    "Gap",
    "broken_parts",
    "measures",
    "recurrence",
    "run",
    "trained",
]
