"""How a step is run: as it comes, recorded as CUDA graphs, or compiled."""

from .choosing import EngineWarning, Runs, engine_for
from .engine import Engine

__all__ = ["Engine", "EngineWarning", "Runs", "engine_for"]
