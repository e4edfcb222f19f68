"""Which engine runs: unsupported ones are refused, and compiling must save more time than it takes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch
from copying import Copying, config

from heedful.errors import ConfigError
from heedful.training import engines
from heedful.training.engines import (
    COMPILE_GAIN,
    COMPILE_SECONDS,
    PACE_STEPS,
    AutoEngine,
    CompiledEngine,
    Engine,
    engine_for,
)
from heedful.training.errors import EngineError, EngineWarning
from heedful.training.optimizers import Update
from heedful.training.parallel import ReplicatedModel, SingleProcess

GRAPH = 0.1  # seconds that a recorded step takes here


class FakeEngine:
    """An engine whose steps take a fixed time on a fake clock."""

    name: ClassVar[str]

    def __init__(self, seconds: float, clock: list[float], *, fails: bool = False) -> None:
        self.seconds, self.clock, self.fails = seconds, clock, fails
        self.n_shapes = 2

    def step(self, step: int, batches: Any) -> str:
        if self.fails:
            raise EngineError("a step cannot be compiled", RuntimeError("no compiler\nin many words"))
        self.clock[0] += self.seconds
        return self.name


def names(
    monkeypatch: pytest.MonkeyPatch, total: int, steps: int, *, compiled: float, fails: bool = False
) -> list[str]:
    """Return the name of the engine that ran each step."""
    clock = [0.0]

    class CudaGraphEngine(FakeEngine):
        name = "graph"

        def __init__(self, *_: Any) -> None:
            super().__init__(GRAPH, clock)

    class CompiledGraphEngine(FakeEngine):
        name = "compile"

        def __init__(self, *_: Any) -> None:
            super().__init__(compiled, clock, fails=fails)

    monkeypatch.setattr(engines, "CudaGraphEngine", CudaGraphEngine)
    for name in ("CompiledEngine", "CompiledGraphEngine"):
        monkeypatch.setattr(engines, name, CompiledGraphEngine)
    monkeypatch.setattr("heedful.training.engines.time.monotonic", lambda: clock[0])
    chosen = AutoEngine(SimpleNamespace(total_steps=total))  # type: ignore[arg-type]
    return [str(chosen.step(step, [])) for step in range(1, steps + 1)]


WORTH = int(2 * COMPILE_SECONDS / (GRAPH * COMPILE_GAIN))  # with more steps left, compiling two shapes pays


def test_a_short_run_is_never_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(names(monkeypatch, WORTH, WORTH, compiled=0.01)) == {"graph"}


def test_a_long_run_is_compiled_once_its_pace_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = names(monkeypatch, WORTH + 1000, 1000, compiled=0.05)
    assert ran == ["graph"] * (2 * PACE_STEPS) + ["compile"] * (1000 - 2 * PACE_STEPS)


def test_compiling_that_is_not_faster_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = names(monkeypatch, WORTH + 1000, 1000, compiled=0.2)
    assert ran.count("compile") == 2 * PACE_STEPS + 1  # when the last of them has ended, its time is known
    assert ran[-1] == "graph"


def test_run_continues_if_compiling_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.warns(EngineWarning, match=r"compiled: no compiler; take.* continues with graph"):
        assert set(names(monkeypatch, WORTH + 1000, 1000, compiled=0.05, fails=True)) == {"graph"}


@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")  # torch's own, when it compiles
@pytest.mark.parametrize(
    ("changes", "kind"), [({}, Engine), ({"engine": "eager"}, Engine), ({"engine": "compile"}, CompiledEngine)]
)
def test_engine_on_a_cpu(changes: dict[str, Any], kind: type[Engine]) -> None:
    assert type(engine(changes)) is kind


@pytest.mark.parametrize("changes", [{}, {"activation_checkpointing": True}])
def test_engine_graph_is_refused_on_a_cpu(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"training.engine: graph.*use auto, eager or compile"):
        engine({"engine": "graph", **changes})


def engine(changes: dict[str, Any]) -> Any:
    job, settings = Copying(), config(**changes)
    model = ReplicatedModel(job.module)
    update = Update(model, settings, 10)
    return engine_for(settings, torch.device("cpu"), update, job, model, settings, SingleProcess())
