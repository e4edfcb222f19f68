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
from heedful.tasks.translation.task import TranslationConfig
from heedful.training import Event, Finished, Planned, Trained, Validated

LONG = "고양이가 물을 마셔요. " * 20
EVENTS: list[Event] = [
    *(Trained(step, 100, 0, 5.0 - step / 50, 5.0, 1e-3, 1.0, 1234.5, 60.0, 90.0) for step in range(1, 101)),
    Validated(50, {"loss": 2.5, "bleu": 30.04, "chrf": 50.0, "exact": 10.0}, is_best=False),
    Validated(100, {"loss": 2.0, "bleu": 40.04, "chrf": 60.0, "exact": 20.0}, is_best=True),
]
OUTCOME: Any = SimpleNamespace(seconds=61.0, why="all 100 steps are done")


GIVEN = TranslationConfig.from_dict({"source": "en", "target": "ko", "training": {"steps": 100, "max_minutes": 2.5}})
CONFIG = GIVEN.adapted({"training": {"learning_rate": 0.002, "weight_decay": 0.1}, "model": {"dropout": 0.25}})


def watched(monkeypatch: pytest.MonkeyPatch, console: Console) -> str:
    """What the events of a run print on this console."""
    for module in (progress, shell_console):
        monkeypatch.setattr(module, "console", console)
    job: Any = SimpleNamespace(
        module=SimpleNamespace(parameters=list),
        summary="1,200 pairs, 300 pieces, 25% padding",
        monitor=SimpleNamespace(name="bleu"),
        config=CONFIG,
        data=SimpleNamespace(tokenizer=SimpleNamespace(source=SimpleNamespace(kind="words", vocab_size=1034))),
        batches=SimpleNamespace(steps_per_epoch=lambda epoch: 20),
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
    assert shown[1].startswith(
        "Settings: small, dropout 0.25, tokens: words (1,034), at most 100 steps (5 epochs) or 2.5 min, "
        "batches of 4,096 tokens, learning rate 0.002 ("
    )
    assert shown[2] == (
        "Chosen from the data: training.learning_rate=0.002, training.weight_decay=0.1, model.dropout=0.25, "
        "tokenizer.kind=words (few different words, each of them frequent); --set changes any of them"
    )
    assert shown[3] == "step 1/100  loss 4.980  617 texts/s  1:30 left"
    assert "step 100  validation: loss 2.000  BLEU 40.0  chrF 60.0  exact 20.0 %  (best so far)" in shown
    assert cell_len(shown[-2]) <= 80
    assert shown[-2].startswith("  [red]고양이가 물을")
    assert shown[-1].startswith("Trained for 1:01")


@pytest.mark.parametrize("terminal", [True, False])
def test_the_plan_is_told_on_a_terminal_and_elsewhere(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the view that is updated in place, where it stays."""
    plans: list[Event] = [Planned(1500, 4.0, 3725.0, 12.345, limited=False), Planned(150, 0.4, 60.0, 2.5, limited=True)]
    monkeypatch.setattr(f"{__name__}.EVENTS", [*plans, *EVENTS])
    console = Console(file=io.StringIO(), force_terminal=terminal, color_system=None, width=120, height=30)
    shown = watched(monkeypatch, console)
    assert "This takes about 1:02:05, without validations: 1,500 steps (4.0 epochs) at 12.3 steps/s" in shown
    assert "The time allows about 150 steps (0.4 epochs) at 2.5 steps/s; the learning rate falls until then" in shown
    assert shown.index("The time allows") < shown.index("step ")


def test_times_are_written_as_people_say_them() -> None:
    expected = ["0 s", "8 s", "1:05", "1:00:00", "2:00:10"]
    assert [shell_console.seconds(count) for count in (0.4, 8, 65, 3600, 7210)] == expected
