"""`heedful doctor`: is this machine fit for work?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..tasks.doctor import examine, examine_model
from .words import console, plain, say

MARKS = {"good": ("✓", "green"), "note": ("·", "yellow"), "bad": ("✗", "red")}


def doctor(
    model: Annotated[
        Path | None,
        typer.Argument(metavar="[MODEL]", help="The folder of a trained model: say which backends can run it."),
    ] = None,
) -> None:
    """Say what this machine has and what would be used, and let a tiny model learn and write.

    With MODEL, say for each backend whether it can run that model on this machine, or why not.
    """
    states = []
    for finding in examine() if model is None else examine_model(model):
        mark, style = MARKS[finding.state]
        console.print(plain(f"{mark} {finding.name:<20}", style), end="")
        say(finding.value)
        states.append(finding.state)
    if "bad" in states:
        raise typer.Exit(1)
