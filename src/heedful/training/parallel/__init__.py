"""Training one module in several processes, or in one."""

from .models import MasterWeightModel, ReplicatedModel, parallelize
from .process_group import ProcessGroup, SingleProcess, start, world

__all__ = ["MasterWeightModel", "ProcessGroup", "ReplicatedModel", "SingleProcess", "parallelize", "start", "world"]
