"""`heedful report` and `heedful doctor`: describe runs and this machine."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ..config import write_mapping
from .console import console, plain, say
from .language import current, translate
from .options import option

MARKS = {"good": ("✓", "green"), "note": ("·", "yellow"), "bad": ("✗", "red")}


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="The folders of training runs.")],
    out: Annotated[Path | None, option("The file to write; the default is report.html in the first folder.")] = None,
) -> None:
    """Rewrite the report of a training run, or compare several runs on one page."""
    from ..tasks.registry import task_of
    from ..tasks.run import write_report

    say(f"wrote {write_report(task_of(runs[0]), runs, out, language=current())}")


def doctor(
    model: Annotated[
        Path | None,
        typer.Argument(metavar="MODEL", help="The folder of a trained model, to check which backends can run it."),
    ] = None,
    out: Annotated[Path | None, option("Write the findings to a JSON file too.")] = None,
) -> None:
    """Show what this machine has and what Heedful would use, and train a tiny model as a test.

    With MODEL, show which backends can run that model on this machine, and why the others cannot.
    """
    from ..lens.terminal import fit
    from ..tasks.doctor import examine, examine_model

    findings = []
    for finding in examine() if model is None else examine_model(model):
        mark, style = MARKS[finding.state]
        console.print(plain(f"{mark} {fit(translate(finding.name), 20)}", style), end="")
        say(finding.value)
        findings.append(asdict(finding))
    if out is not None:
        write_mapping(out, {"findings": findings})
        say(f"wrote {out}")
    if any(finding["state"] == "bad" for finding in findings):
        raise typer.Exit(1)
