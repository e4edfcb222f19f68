"""Processes that are killed, stopped, locked out or run out of disk, and go on as if nothing had happened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from processes import printed_once


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What crashes.py saw."""
    return printed_once(tmp_path_factory, Path(__file__).with_name("crashes.py"))


def test_killed_at_every_step_of_saving(found: Any) -> None:
    seen = found["killed_while_saving"]
    assert seen["faults"] == []
    assert seen["calls"] > 30  # two checkpoints, and the removal of one


def test_killed_at_every_batch_and_validation(found: Any) -> None:
    seen = found["killed_while_training"]
    assert seen["faults"] == []
    assert seen["lives"] == 4


def test_sigterm_and_sigint_save_and_say_so(found: Any) -> None:
    seen = found["told_to_stop"]
    assert seen["faults"] == []
    assert seen["saved at"] == [3, 4]


def test_a_second_signal_ends_the_process_at_once(found: Any) -> None:
    assert found["told_twice"] == {"code": 130, "saved at": [3], "resumed": 0, "same": True}


def test_a_folder_is_held_by_the_living_only(found: Any) -> None:
    seen = found["two_in_one_folder"]
    assert seen["second"] == 1
    assert f"in use by process {seen['first']} on " in seen["words"]
    assert seen["third"] == 0


def test_a_full_disk_leaves_the_last_checkpoint(found: Any) -> None:
    seen = found["full_disk"]
    assert seen["code"] == 1
    assert "the checkpoint of step 5 cannot be written" in seen["words"]
    assert "step-00000003" in seen["words"]
    assert seen["left"] == ["step-00000003"]
    assert seen["resumed"] == 0
    assert seen["same"]
