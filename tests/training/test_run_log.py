"""The log has every step once, whatever happened to the run; TensorBoard shows the same."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from copying import Copying, config

from heedful.errors import MissingDependencyError
from heedful.training import FolderError, Trained, Validated, fit
from heedful.training.metrics import Log, TensorBoard, row_of


def trained(step: int, **changes: Any) -> Trained:
    values = {"total_steps": 9, "epoch": 0, "loss": 2.0, "nll": 1.5, "learning_rate": 0.1, "grad_norm": 3.0}
    return Trained(**{"step": step, "items_per_second": 7.0, "seconds": 1.0, "seconds_left": 2.0} | values | changes)


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_rows_are_there_at_once(tmp_path: Path) -> None:
    log = Log(tmp_path / "log.jsonl")
    log(trained(1))
    log(Validated(1, {"bleu": 12.5}, is_best=True))
    train, valid = rows(log.path)
    known = {"kind": "train", "step": 1, "epoch": 0, "loss": 2.0, "nll": 1.5, "lr": 0.1, "grad_norm": 3.0}
    assert train | {"time": 0} == known | {"tokens_per_second": 7.0, "time": 0}
    assert valid | {"time": 0} == {"kind": "valid", "step": 1, "bleu": 12.5, "time": 0}
    assert log.rows == 2
    log.close()


def test_a_resumed_log_loses_what_came_after(tmp_path: Path) -> None:
    log = Log(tmp_path / "log.jsonl")
    for step in (1, 2, 3):
        log(trained(step))
    log.close()
    with log.path.open("a") as stream:
        stream.write('{"kind": "train", "st')  # killed while writing
    log = Log(log.path, rows=2)
    log(trained(3))
    log.close()
    assert [row["step"] for row in rows(log.path)] == [1, 2, 3]


def test_a_resumed_log_loses_a_row_that_was_cut(tmp_path: Path) -> None:
    log = Log(tmp_path / "log.jsonl")
    for step in (1, 2):
        log(trained(step))
    log.close()
    log.path.write_bytes(log.path.read_bytes()[:-20])
    log = Log(log.path, rows=2)
    assert log.rows == 1
    log(trained(3))
    log.close()
    assert [row["step"] for row in rows(log.path)] == [1, 3]


def test_what_is_no_number_is_null() -> None:
    row = row_of(trained(1, loss=float("nan"), grad_norm=float("inf")))
    assert row is not None
    assert row["loss"] is None
    assert row["grad_norm"] is None


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    with pytest.raises(FolderError, match=r"log.jsonl cannot be written: File exists"):
        Log(tmp_path / "taken" / "log.jsonl")
    log = Log(tmp_path / "log.jsonl")
    log.close()
    log._stream = Path("/dev/full").open("w", encoding="utf-8")  # noqa: SIM115
    with pytest.raises(FolderError, match="No space left"):
        log(trained(1))
    with pytest.raises(FolderError, match="No space left"):
        log.close()


def test_tensorboard_is_written_where_asked(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    fit(Copying(), config(steps=2, tensorboard=True), tmp_path)
    assert list((tmp_path / "tensorboard").glob("events.out.tfevents.*"))


def test_tensorboard_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingDependencyError, match="pip install tensorboard"):
        TensorBoard(tmp_path)
