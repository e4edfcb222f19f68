"""The exercises of the course: `start` lays out files to complete, `check` compares them with the real parts."""

from .layout import NAMES as NAMES
from .layout import start as start
from .layout import title as title
from .result import ExerciseResult as ExerciseResult
from .running import check as check
