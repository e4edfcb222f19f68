"""Recorded and compiled steps on a GPU do what eager ones do, and stay random where those are."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from copying import Copying, Data, Numbers, config, tiny
from torch import nn

from heedful.data.loader import WHOLE, Shard
from heedful.families.weights import weights_of
from heedful.training import Loss, RunFolder, fit
from heedful.training.engines import CudaGraphEngine
from heedful.training.signals import Signals
from heedful.training.trainer import Trainer

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


class TwoShapes(Data):
    """Every other batch has one row more."""

    def epoch(self, epoch: int, start: int = 0, shard: Shard = WHOLE) -> Iterator[Numbers]:
        for index, batch in enumerate(super().epoch(epoch, start, shard), start):
            keep = slice(None) if index % 2 else slice(0, -1)
            assert batch.lengths is not None
            yield Numbers.of(batch.source[keep], batch.lengths[keep], batch.rows[keep])


class Quiet(Copying):
    """It counts nothing: a compiler would begin anew for every number."""

    def loss(self, module: nn.Module, batch: Numbers) -> Loss:
        return self.losses(module, batch, self.smoothing)


def losses(folder: Path) -> list[float]:
    rows = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [row["loss"] for row in rows if row["kind"] == "train"]


def run(folder: Path, engine: str, **changes: Any) -> Copying:
    job = Quiet(tiny(dropout=0.0), data=TwoShapes(10, rows=6))
    settings = {"steps": 40, "device": "cuda", "log_every": 1, "engine": engine, "validate_every": 0, **changes}
    fit(job, config(**settings), folder)
    return job


CHANGES: dict[str, dict[str, Any]] = {
    "plain": {},
    "accumulated": {"gradient_accumulation_steps": 2},
    "muon": {"optimizer": "muon", "muon_learning_rate": 0.01},
    "bf16 weights": {"precision": "bf16-weights"},
    "bf16 weights, accumulated": {"precision": "bf16-weights", "gradient_accumulation_steps": 2},
}


COMPILING = pytest.mark.filterwarnings("default")  # the compiler's own warnings differ from version to version


@pytest.mark.parametrize(
    ("engine", "name"),
    [
        *(("graph", name) for name in CHANGES),
        ("auto", "plain"),
        pytest.param("compile", "bf16 weights", marks=COMPILING),
    ],
)
def test_an_engine_learns_what_the_eager_one_does(tmp_path: Path, engine: str, name: str) -> None:
    changes = CHANGES[name]
    eager, other = (run(tmp_path / kind, kind, **changes) for kind in ("eager", engine))
    near = 2e-2 if "precision" in changes else 1e-3  # Muon's matrix products are in bf16
    assert losses(tmp_path / engine) == pytest.approx(losses(tmp_path / "eager"), rel=near)
    assert losses(tmp_path / "eager")[-1] < 0.9 * losses(tmp_path / "eager")[0]
    # All weights as one: a key's bias has no gradient but roundings, so that taken alone it ends anywhere.
    mine, theirs = (nn.utils.parameters_to_vector(job.module.parameters()).detach() for job in (eager, other))
    assert float((mine - theirs).norm() / mine.norm()) < 5 * near


class Same(Data):
    """One batch again and again."""

    def epoch(self, epoch: int, start: int = 0, shard: Shard = WHOLE) -> Iterator[Numbers]:
        for _ in range(start, self.n):
            yield next(super().epoch(0, 0, shard))


@pytest.mark.parametrize("precision", ["float32", "bf16", "bf16-weights"])
def test_dropout_stays_random_in_a_graph(tmp_path: Path, precision: str) -> None:
    """With weights that stand still, nothing but dropout can change the loss; without it, nothing does."""
    for dropout in (0.5, 0.0):
        job = Copying(tiny(dropout=dropout), data=Same(30))
        settings = config(
            steps=30,
            learning_rate=1e-30,
            weight_decay=0.0,
            device="cuda",
            engine="graph",
            precision=precision,
            log_every=1,
        )
        fit(job, settings, tmp_path / str(dropout))
        assert len(set(losses(tmp_path / str(dropout)))) == (30 if dropout else 1)


def test_each_shape_is_recorded_once(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    with folder.locked():
        settings = config(steps=99, device="cuda", engine="graph", precision="bf16-weights")
        training = Trainer(Copying(data=TwoShapes(20)), settings, folder, Signals())
        for _ in range(10):
            training.step()
        assert isinstance(training.engine, CudaGraphEngine)
        assert len(training.engine.graphs) == 3  # two shapes, and the step itself
        shapes = [graph for key, graph in training.engine.graphs.items() if key != "apply"]
        assert all(graph.whole is not None and bool(graph.table_memory.any()) for graph in shapes)
        training.close()


@pytest.mark.parametrize(("precision", "near"), [("float32", 1e-3), ("bf16-weights", 1e-2)])
def test_a_recorded_run_that_was_stopped_goes_on_with_its_dropout(tmp_path: Path, precision: str, near: float) -> None:
    class Stop(Exception):  # noqa: N818
        pass

    def stop(number: int) -> None:
        if number == 2:
            raise Stop

    def job(**given: Any) -> Copying:
        return Copying(tiny(dropout=0.3), data=Data(10), **given)

    settings = config(steps=20, validate_every=10, device="cuda", engine="graph", log_every=1, precision=precision)
    fit(job(), settings, tmp_path / "whole")
    with pytest.raises(Stop):
        fit(job(on_validation=stop), settings, tmp_path / "parts")
    fit(job(), settings, tmp_path / "parts", resume=True)
    assert losses(tmp_path / "parts") == pytest.approx(losses(tmp_path / "whole"), rel=near)


def test_the_weights_that_are_delivered_are_float32(tmp_path: Path) -> None:
    job = run(tmp_path, "graph", precision="bf16-weights")
    assert {weight.dtype for weight in weights_of(job.module).values()} == {torch.float32}


class Held(Data):
    """All batches lie on the device from the start, as views of one tensor."""

    def __init__(self) -> None:
        super().__init__(6)
        self.all = torch.cat([batch.source for batch in super().epoch(0)]).cuda()

    def epoch(self, epoch: int, start: int = 0, shard: Shard = WHOLE) -> Iterator[Numbers]:
        for index, batch in enumerate(super().epoch(0, start, shard), start):
            source = self.all[self.rows * index : self.rows * (index + 1)]
            yield Numbers(source, batch.real.cuda(), batch.lengths, batch.rows)


def test_batches_that_lie_on_the_device_stay_as_they_are(tmp_path: Path) -> None:
    """A graph writes every batch where it reads."""
    data = Held()
    before = data.all.clone()
    fit(Copying(data=data), config(steps=12, device="cuda", engine="graph", validate_every=0), tmp_path)
    assert torch.equal(data.all, before)


RECORDED = """
import sys
import torch
from copying import Copying, config
from heedful.training import fit
from heedful.training.loss import cross_entropy
settings = {"device": "cuda", "engine": "graph", "precision": "bf16-weights"}
settings |= {"optimizer": "muon", "muon_learning_rate": 0.01}
fit(Copying(), config(steps=8, validate_every=4, **settings), sys.argv[1])
logits = torch.randn(4, 3, 40, device="cuda", requires_grad=True)
cross_entropy(logits, torch.zeros(2, 3, device="cuda", dtype=torch.long), r_drop=1.0).total.backward()
print("torch._dynamo" in sys.modules)
"""


def test_a_run_that_compiles_nothing_does_not_import_the_compiler(tmp_path: Path) -> None:
    """Which takes seconds."""
    command = [sys.executable, "-c", RECORDED, str(tmp_path)]
    ended = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    assert ended.stdout.strip() == "False", ended.stdout + ended.stderr
