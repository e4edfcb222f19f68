"""The doctor finds what is there, and says so when something is missing."""

from __future__ import annotations

import importlib.metadata
import json
from itertools import islice
from pathlib import Path

import pytest
import torch

from every_task import embedder, language_model
from heedful.tasks import doctor
from shell import heedful


def test_a_healthy_machine(tmp_path: Path) -> None:
    actual = {finding.name: finding for finding in doctor.examine(tmp_path)}
    assert actual["torch"].value == torch.__version__
    assert actual["smoke test"].state == "good"
    assert "learned a sentence" in actual["smoke test"].value
    assert not [finding for finding in actual.values() if finding.state == "bad"]


def test_a_missing_package_is_bad_and_an_optional_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name in ("sacrebleu", "matplotlib"):
            raise importlib.metadata.PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(importlib.metadata, "version", version)
    states = {finding.name: finding.state for finding in islice(doctor.examine(), 12)}
    assert (states["sacrebleu"], states["matplotlib"], states["torch"]) == ("bad", "note", "good")


def test_a_model_that_does_not_learn_is_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.optim.Adam, "step", lambda self: None)
    assert doctor._smoke_test(torch.device("cpu")).state == "bad"


def test_a_model_is_supported_or_left_to_the_core_with_reasons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    language_model().save(tmp_path / "writer")
    embedder().save(tmp_path / "reader")
    done = heedful("doctor", tmp_path / "writer", "--out", tmp_path / "findings.json")
    findings = json.loads((tmp_path / "findings.json").read_text())["findings"]
    assert all(f"{finding['name']:<20}{finding['value']}" in done.out for finding in findings)
    assert done.code == 0, done.err
    rows = {line.split()[1]: line for line in done.out.splitlines() if line.startswith(("✓", "·"))}
    assert list(rows) == list(doctor.BACKENDS)
    assert rows["single_step"].endswith("supported")
    actual = {finding.name: finding for finding in doctor.examine_model(tmp_path / "reader")}
    assert "exactly DecoderOnly and EncoderDecoder, not EncoderOnly" in actual["native"].value
    assert actual["native"].state == "note"
    assert actual["cpu"].state == "good"
    monkeypatch.setattr(doctor, "supports", lambda module, backend: [f"reason {index}" for index in range(5)])
    value = next(doctor.examine_model(tmp_path / "reader")).value
    assert value.endswith("not supported: reason 0; reason 1; reason 2; and 2 more")


def test_a_folder_that_is_no_model_is_one_line(tmp_path: Path) -> None:
    done = heedful("doctor", tmp_path / "nowhere")
    assert (done.code, len(done.err.splitlines())) == (1, 1)
