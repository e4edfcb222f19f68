"""Fixtures: one quick run for all tests that only use its model."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_runs import write_rows

from shell import quick_train


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with train.tsv and valid.tsv."""
    folder = tmp_path_factory.mktemp("corpus")
    write_rows(folder / "train.tsv", 300, lambda row: row[::-1], seed=1)
    write_rows(folder / "valid.tsv", 20, lambda row: row[::-1], seed=2)
    return folder


@pytest.fixture(scope="session")
def model(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a model that was hardly trained; do not write into it."""
    run = tmp_path_factory.mktemp("model") / "run"
    done = quick_train(run, [corpus / "train.tsv"], "--valid", corpus / "valid.tsv")
    assert done.code == 0, done.err
    return run
