"""`heedful doctor`: is this machine fit for work?"""

from __future__ import annotations

import typer

from ..tasks.doctor import examine
from .words import console, plain, say

MARKS = {"good": ("✓", "green"), "note": ("·", "yellow"), "bad": ("✗", "red")}


def doctor() -> None:
    """Say what this machine has and what would be used, and let a tiny model learn and write."""
    states = []
    for finding in examine():
        mark, style = MARKS[finding.state]
        console.print(plain(f"{mark} {finding.name:<20}", style), end="")
        say(finding.value)
        states.append(finding.state)
    if "bad" in states:
        raise typer.Exit(1)
