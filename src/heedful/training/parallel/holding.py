"""How a run's module is held: as the settings and the number of processes say."""

from __future__ import annotations

from torch import nn

from ...errors import ConfigError
from ..config import TrainingConfig
from .held import Replica, Rounded
from .world import Alone, Together


def hold(module: nn.Module, config: TrainingConfig, world: Alone) -> Replica:
    """Every process begins with the first one's weights."""
    world.spread([*module.parameters(), *module.buffers()])
    if config.parallel == "shard" and isinstance(world, Together):
        if config.optimiser == "muon":
            raise ConfigError("training.optimiser: muon needs whole matrices; for training.parallel=shard take adamw")
        if config.engine in ("graph", "compile"):
            raise ConfigError(
                f"training.engine: {config.engine} is for modules that are whole; for training.parallel=shard take auto"
            )
        from .shards import Shards  # here: it takes half a second to import

        return Shards(module, world, rounded=config.precision != "float32")
    return Rounded(module) if config.precision == "bf16-weights" else Replica(module)
