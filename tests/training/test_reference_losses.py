"""The losses of tiny runs are those that were recorded, so that no change alters training without being seen.

They are compared exactly with the same version of torch on the same kind of processor. Elsewhere, kernels add the same
numbers in another order, so only 1 part in 100,000 is demanded.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from reference_runs import LOSSES, RUNS, STEPS, losses, machine

RECORDED = json.loads(LOSSES.read_text())
TOLERANCE = 1e-5  # relative, on other machines


@pytest.mark.parametrize("name", RUNS)
def test_losses_are_those_that_were_recorded(name: str, tmp_path: Path) -> None:
    values, recorded = losses(name, tmp_path), RECORDED["losses"][name]
    assert len(values) == len(recorded) == STEPS
    if machine() == RECORDED["machine"]:
        assert values == recorded, "if this change is meant, run tests/training/reference_runs.py"
    else:
        assert values == pytest.approx(recorded, rel=TOLERANCE)


def test_every_run_has_recorded_losses() -> None:
    assert RECORDED["losses"].keys() == RUNS.keys()
