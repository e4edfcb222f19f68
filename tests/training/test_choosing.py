"""Which engine runs: what cannot be is refused, what is tried must cost less than it saves. The clock is of straw."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch
from copying import Copying, config

from heedful.errors import ConfigError
from heedful.training import engines
from heedful.training.engines import (
    COMPILING,
    PACED,
    SAVED,
    AutoEngine,
    CpuCompiledEngine,
    Engine,
    EngineWarning,
    engine_for,
)
from heedful.training.errors import EngineError
from heedful.training.parallel import ReplicatedModel, SingleProcess
from heedful.training.update import Update

GRAPH = 0.1  # seconds that a recorded step takes here


class Straw:
    """An engine whose steps take a time that is said, on a clock that nobody waits for."""

    name: ClassVar[str]

    def __init__(self, seconds: float, clock: list[float], *, fails: bool = False) -> None:
        self.seconds, self.clock, self.fails = seconds, clock, fails
        self.shapes = 2

    def step(self, step: int, batches: Any) -> str:
        if self.fails:
            raise EngineError("a step cannot be compiled", RuntimeError("no compiler\nin many words"))
        self.clock[0] += self.seconds
        return self.name


def names(
    monkeypatch: pytest.MonkeyPatch, total: int, steps: int, *, compiled: float, fails: bool = False
) -> list[str]:
    """Who ran each step."""
    clock = [0.0]

    class CudaGraphEngine(Straw):
        name = "graph"

        def __init__(self, *_: Any) -> None:
            super().__init__(GRAPH, clock)

    class CompiledEngine(Straw):
        name = "compile"

        def __init__(self, *_: Any) -> None:
            super().__init__(compiled, clock, fails=fails)

    monkeypatch.setattr(engines, "CudaGraphEngine", CudaGraphEngine)
    monkeypatch.setattr(engines, "CompiledEngine", CompiledEngine)
    monkeypatch.setattr("heedful.training.engines.time.monotonic", lambda: clock[0])
    chosen = AutoEngine(SimpleNamespace(total_steps=total))  # type: ignore[arg-type]
    return [str(chosen.step(step, [])) for step in range(1, steps + 1)]


WORTH = int(2 * COMPILING / (GRAPH * SAVED))  # so many steps left make up for compiling two graphs


def test_a_short_run_is_never_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(names(monkeypatch, WORTH, WORTH, compiled=0.01)) == {"graph"}


def test_a_long_run_is_compiled_once_its_pace_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = names(monkeypatch, WORTH + 1000, 1000, compiled=0.05)
    assert ran == ["graph"] * (2 * PACED) + ["compile"] * (1000 - 2 * PACED)


def test_what_is_not_faster_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = names(monkeypatch, WORTH + 1000, 1000, compiled=0.2)
    assert ran.count("compile") == 2 * PACED + 1  # when the last of them has ended, its time is known
    assert ran[-1] == "graph"


def test_where_compiling_fails_the_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.warns(EngineWarning, match=r"compiled: no compiler; take.* goes on with graph"):
        assert set(names(monkeypatch, WORTH + 1000, 1000, compiled=0.05, fails=True)) == {"graph"}


@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")  # torch's own, when it compiles
@pytest.mark.parametrize(
    ("changes", "kind"), [({}, Engine), ({"engine": "eager"}, Engine), ({"engine": "compile"}, CpuCompiledEngine)]
)
def test_on_a_cpu(changes: dict[str, Any], kind: type[Engine]) -> None:
    assert type(made(changes)) is kind


@pytest.mark.parametrize("changes", [{}, {"recompute": True}])
def test_what_cannot_be_recorded_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"training.engine: graph.*take auto, eager or compile"):
        made({"engine": "graph", **changes})


def made(changes: dict[str, Any]) -> Any:
    job, settings = Copying(), config(**changes)
    held = ReplicatedModel(job.module)
    return engine_for(settings, torch.device("cpu"), Update(held, settings, 10), job, held, settings, SingleProcess())
