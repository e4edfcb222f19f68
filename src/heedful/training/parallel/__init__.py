"""Several processes that train one module together, or one that does it alone."""

from .models import MasterWeightModel, ReplicatedModel, hold
from .process_group import ProcessGroup, SingleProcess, start, world

__all__ = ["MasterWeightModel", "ProcessGroup", "ReplicatedModel", "SingleProcess", "hold", "start", "world"]
