"""A run through the shell that is killed or stopped at any moment goes on to the very same model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from processes import printed_once


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What killed.py saw."""
    return printed_once(tmp_path_factory, Path(__file__).with_name("killed.py"))


def test_the_resumed_model_is_the_same_to_the_byte_and_nothing_is_left_lying_about(found: Any) -> None:
    assert found["faults"] == []
    assert found["calls"] > 100  # that change the disk: kills were spread over all of them


def test_a_stopped_run_says_how_it_goes_on(found: Any) -> None:
    for name in ("SIGTERM", "SIGINT"):
        for moment in ("training", "validation"):
            (line,) = found["said"][f"{name} while {moment}"].splitlines()
            assert line.startswith(f"{name} at step")
            assert line.endswith(f"/{name} while {moment}' --resume")


def test_a_stop_while_nothing_can_be_saved_says_only_how_to_go_on(found: Any) -> None:
    """SIGTERM comes from programs; a person who presses Ctrl-C after the training wants to know what is left."""
    for moment in ("reading", "scoring", "report"):
        assert found["said"][f"SIGTERM while {moment}"] == ""
    assert found["said"]["SIGINT while reading"] == ""
    for moment in ("scoring", "report"):
        (line,) = found["said"][f"SIGINT while {moment}"].splitlines()
        assert line.startswith("stopped; the run can be resumed")
        assert line.endswith("--resume")
