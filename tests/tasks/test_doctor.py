"""The doctor finds what is there, and says so when something is missing."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest
import torch

from heedful.tasks import doctor


def test_a_healthy_machine(tmp_path: Path) -> None:
    found = {finding.name: finding for finding in doctor.examine(tmp_path)}
    assert found["torch"].value == torch.__version__
    assert found["smoke test"].state == "good"
    assert "learned and wrote" in found["smoke test"].value
    assert not [finding for finding in found.values() if finding.state == "bad"]


def test_a_missing_package_is_bad_and_an_optional_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name in ("sacrebleu", "matplotlib"):
            raise importlib.metadata.PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(importlib.metadata, "version", version)
    states = {finding.name: finding.state for finding in doctor._packages()}
    assert (states["sacrebleu"], states["matplotlib"], states["torch"]) == ("bad", "note", "good")


def test_a_model_that_does_not_learn_is_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.optim.Adam, "step", lambda self: None)
    assert doctor._smoke(torch.device("cpu")).state == "bad"
