"""Training on a GPU: a step never waits, a bad step is found a little later, a resumed run goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from copying import Copying, Data, config

from heedful.families.weights import weights_of
from heedful.training import NonFiniteError, RunFolder, fit
from heedful.training.checkpoint import load_tensors, path_of
from heedful.training.signals import Signals
from heedful.training.trainer import Trainer

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    pytest.mark.filterwarnings("ignore:Synchronization debug mode"),
]


@pytest.mark.parametrize(
    "changes",
    [{}, {"precision": "bf16", "gradient_accumulation_steps": 2}, {"precision": "bf16-weights"}],
    ids=["float32", "bf16", "bf16-weights"],
)
def test_a_step_does_not_wait_for_the_device(tmp_path: Path, changes: dict[str, Any]) -> None:
    run = RunFolder(tmp_path)
    with run.locked():
        training = Trainer(Copying(data=Data(50)), config(steps=99, device="cuda", **changes), run, Signals())
        training.step()  # the first makes what the others use
        torch.cuda.synchronize()
        try:
            torch.cuda.set_sync_debug_mode("error")
            for _ in range(5):
                training.step()
        finally:
            torch.cuda.set_sync_debug_mode("default")
        training.read_metrics(wait=True)
        training.close()
    assert len(run.log.read_text().splitlines()) == 3


def test_a_step_that_is_not_finite_is_found(tmp_path: Path) -> None:
    job = Copying(poison=4)  # a poison that counts its calls needs every one of them
    with pytest.raises(NonFiniteError, match=r"step 4.*of step 3.*numbers.txt:12, numbers.txt:13"):
        fit(job, config(device="cuda", engine="eager", ema_decay=0.0, validate_every=4), tmp_path)
    saved = load_tensors(path_of(tmp_path / "checkpoints", 3), "model")
    assert all(torch.equal(weight.cpu(), saved[name]) for name, weight in weights_of(job.module).items())


class Stop(Exception):  # noqa: N818
    """Out of a run."""


def test_a_resumed_run_goes_on(tmp_path: Path) -> None:
    """To the last bit only where the kernels are deterministic; dropout, at any rate, is the same."""

    def stop(number: int) -> None:
        if number == 8:
            raise Stop

    settings = config(device="cuda", engine="eager")
    fit(Copying(), settings, tmp_path / "whole")
    with pytest.raises(Stop):
        fit(Copying(on_batch=stop), settings, tmp_path / "parts")
    fit(Copying(), settings, tmp_path / "parts", resume=True)
    logs = [(tmp_path / name / "log.jsonl").read_text().splitlines() for name in ("whole", "parts")]
    whole, parts = ([json.loads(row)["loss"] for row in log] for log in logs)
    assert parts == pytest.approx(whole, rel=1e-4)
