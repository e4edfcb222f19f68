"""Which engine runs the steps: the one that was asked for, or the one that ends the run first."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from statistics import median
from typing import Any, Protocol

import torch
from torch import Tensor

from ...errors import ConfigError
from ..config import TrainingConfig
from ..errors import EngineError
from ..update import Update
from .captured import Captured
from .compiled import Compiled, CompiledOnCpu
from .engine import Engine

PACED = 50  # steps over which a pace is taken
COMPILING = 30.0  # seconds that a shape may take to compile
SAVED = 0.2  # of a step's time, which compiling saves at the least where it pays


class Runs(Protocol):
    """What the loop needs of an engine."""

    @property
    def name(self) -> str: ...

    def step(self, step: int, batches: Sequence[Any]) -> Tensor: ...


class EngineWarning(UserWarning):
    """Steps are run in another way than was meant."""


def engine_for(config: TrainingConfig, device: torch.device, update: Update, *parts: Any) -> Runs:
    """The engine of a run, on a device; the rest is what every engine is made of."""
    on_gpu = device.type == "cuda"
    if config.engine == "graph" and not on_gpu:
        raise ConfigError(
            f"training.engine: graph records CUDA graphs, and this run is on the {device.type}; "
            "take auto, eager or compile"
        )
    if config.engine == "graph" and config.recompute:
        raise ConfigError(
            "training.engine: graph cannot record layers that draw their dropout a second time (training.recompute); "
            "take auto, eager or compile"
        )
    if config.engine == "auto" and on_gpu and not config.recompute and not update.held.divided:
        return Chosen(update, *parts)
    kinds = {"graph": Captured, "compile": Compiled if on_gpu else CompiledOnCpu}
    return kinds.get(config.engine, Engine)(update, *parts)


class Chosen:
    """Graphs at first: recording costs next to nothing. Compiling costs up to half a minute a shape, so it is tried
    only where it would save more of what is left of the run, and given up where its steps are not faster."""

    def __init__(self, update: Update, *parts: Any) -> None:
        self.parts = (update, *parts)
        self.total_steps = update.total_steps
        self.engine: Engine = Captured(*self.parts)
        self.to_beat: float | None = None  # the pace of graphs, while compiling is tried
        self.settled = False
        self.begun: list[float] = []  # when steps began

    @property
    def name(self) -> str:
        return self.engine.name

    def step(self, step: int, batches: Sequence[Any]) -> Tensor:
        if not self.settled:
            self._look(self.total_steps - step)
        try:
            return self.engine.step(step, batches)
        except EngineError as error:
            simpler = Captured if isinstance(self.engine, Compiled) else Engine
            warnings.warn(f"{error}. The run goes on with {simpler.name}", EngineWarning, stacklevel=2)
            self._settle(simpler)
            return self.engine.step(step, batches)

    def _look(self, left: int) -> None:
        """At the pace; the host runs a few steps ahead of the device at most, so its steps take as long."""
        self.begun.append(time.monotonic())
        if len(self.begun) <= 2 * PACED:  # the first half records, and makes what all steps use
            return
        gaps = [after - before for before, after in zip(self.begun[PACED:], self.begun[PACED + 1 :], strict=False)]
        pace, self.begun = median(gaps), []
        if self.to_beat is None and pace * left * SAVED > COMPILING * self._shapes:
            self.to_beat, self.engine = pace, Compiled(*self.parts)  # the graphs are let go, and their memory
        elif self.to_beat is not None and pace >= self.to_beat:
            self._settle(Captured)
        else:
            self.settled = True

    @property
    def _shapes(self) -> int:
        return self.engine.shapes if isinstance(self.engine, Captured) else 1

    def _settle(self, kind: type[Engine]) -> None:
        self.engine, self.settled = kind(*self.parts), True
