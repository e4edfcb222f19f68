"""The exercises of the course: `start` lays out files to complete, `check` compares them with the real parts."""

from .checking import ExerciseResult, check
from .layout import NAMES, start, title

__all__ = ["NAMES", "ExerciseResult", "check", "start", "title"]
