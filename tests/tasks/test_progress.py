"""What one sees while a run runs, on a terminal and elsewhere."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from heedful.cli import console as shell_console
from heedful.cli import progress
from heedful.training import Event, Finished, Trained, Validated

LONG = "고양이가 물을 마셔요. " * 20
EVENTS: list[Event] = [
    *(Trained(step, 100, 0, 5.0 - step / 50, 5.0, 1e-3, 1.0, 1234.5, 60.0, 90.0) for step in range(1, 101)),
    Validated(50, {"loss": 2.5, "bleu": 30.04, "chrf": 50.0, "exact": 10.0}, is_best=False),
    Validated(100, {"loss": 2.0, "bleu": 40.04, "chrf": 60.0, "exact": 20.0}, is_best=True),
]
OUTCOME: Any = SimpleNamespace(seconds=61.0, why="all 100 steps are done")


def watched(monkeypatch: pytest.MonkeyPatch, console: Console) -> str:
    """What the events of a run print on this console."""
    for module in (progress, shell_console):
        monkeypatch.setattr(module, "console", console)
    job: Any = SimpleNamespace(
        module=SimpleNamespace(parameters=list),
        summary="1,200 pairs, 300 pieces, 25% padding",
        monitor=SimpleNamespace(name="bleu"),
        counted="texts",
        counts_each=2,
        samples=[(f"[red]{LONG}", "reference", LONG), ("하나", "one", "one")],
    )
    with progress.watching() as watch:
        (observer,) = watch(job)
        for event in (*EVENTS, Finished(OUTCOME)):
            observer(event)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [30, 80, 200])
def test_a_terminal_shows_one_view_that_keeps_its_shape(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, color_system=None, width=width, height=30)
    shown = watched(monkeypatch, console)
    last = shown[shown.rindex("step ") :].split("\n")
    assert [line.split(" ")[0].rstrip() for line in last[:4]] == ["step", "", "loss", "validation"]
    assert all(cell_len(line) <= width for line in last[:8])
    assert "Trained for 1:01: all 100 steps are done." in shown
    if width >= 80:
        assert "100/100  617 texts/s  1:30 left" in shown
        assert "loss 2.000  BLEU 40.0  chrF 60.0  exact 20.0 %" in shown
        assert "[red]고양이가" in shown


def test_elsewhere_there_is_a_line_for_each_event(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = watched(monkeypatch, Console(file=io.StringIO(), width=80)).splitlines()
    assert shown[0] == "Training 0 parameters on 1,200 pairs, 300 pieces, 25% padding"
    assert shown[1] == "step 1/100  loss 4.980  617 texts/s  1:30 left"
    assert "step 100  validation: loss 2.000  BLEU 40.0  chrF 60.0  exact 20.0 %  (best so far)" in shown
    assert cell_len(shown[-2]) <= 80
    assert shown[-2].startswith("  [red]고양이가 물을")
    assert shown[-1].startswith("Trained for 1:01")


def test_times_are_written_as_people_say_them() -> None:
    expected = ["0 s", "8 s", "1:05", "1:00:00", "2:00:10"]
    assert [shell_console.seconds(count) for count in (0.4, 8, 65, 3600, 7210)] == expected
