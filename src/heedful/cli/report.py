"""`heedful report`: the page of a run, or of several side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from ..tasks.registry import report_of
from .words import say


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders that training wrote.")],
    out: Annotated[Path | None, typer.Option(help="Where the page goes; into the first folder unless given.")] = None,
    language: Annotated[Literal["en", "ko"], typer.Option(help="Of the page.")] = "en",
) -> None:
    """Write the page of a run again, or compare several runs on one page."""
    say(f"wrote {report_of(runs, out, language=language)}")
