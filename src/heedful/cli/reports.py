"""`heedful report`, `heedful tour` and `heedful doctor`: describe runs, the paper's model and this machine."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from ..config import write_mapping
from .console import console, plain, say
from .options import Language, option

MARKS = {"good": ("✓", "green"), "note": ("·", "yellow"), "bad": ("✗", "red")}
ARTICLES = {"encoder layer": "an encoder layer", "decoder layer": "a decoder layer"}


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="The folders of training runs.")],
    out: Annotated[Path | None, option("The file to write; the default is report.html in the first folder.")] = None,
    language: Language = "en",
) -> None:
    """Rewrite the report of a training run, or compare several runs on one page."""
    from ..tasks.registry import task_of
    from ..tasks.run import write_report

    say(f"wrote {write_report(task_of(runs[0]), runs, out, language=language)}")


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
    from ..tasks.doctor import examine, examine_model

    findings = []
    for finding in examine() if model is None else examine_model(model):
        mark, style = MARKS[finding.state]
        console.print(plain(f"{mark} {finding.name:<20}", style), end="")
        say(finding.value)
        findings.append(asdict(finding))
    if out is not None:
        write_mapping(out, {"findings": findings})
        say(f"wrote {out}")
    if any(finding["state"] == "bad" for finding in findings):
        raise typer.Exit(1)


def tour(
    out: Annotated[Path, option("The folder for the pictures.")] = Path("runs/tour"),
    language: Annotated[Literal["en", "ko"], option("The language of the pictures' labels.")] = "en",
) -> None:
    """Build the base model of the paper, run a sentence through it, count its parameters and draw its attention."""
    import torch
    from rich.table import Table

    from ..families import build
    from ..lens.tour import tour as walk

    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)  # the same pictures every time
    say("Building the base model of the paper (d_model 512, 8 heads, 6 + 6 layers) …")
    result = walk(build("base"), out, language=language)

    table = Table("stack", "part", "parameters", title="The parameters of the model")
    table.columns[2].justify = "right"
    for count in result.counts:
        table.add_row(count.stack, count.part, f"{count.parameters:,}")
    table.add_section()
    table.add_row("", "total", f"{sum(count.parameters for count in result.counts):,}")
    console.print(table)
    shares = ", ".join(f"{share:.0%} of {ARTICLES.get(name, name)}" for name, share in result.shares.items())
    say(f"The feed-forward network's share of the parameters: {shares}.")
    for name, shape in result.shapes.items():
        say(f"  {name}: {' × '.join(map(str, shape))}")
    for path in result.pictures:
        say(f"wrote {path}")
    say("The weights are random, so the attention has no meaning yet.")
    for note in result.notes:
        say(note)
    if not result.pictures:
        raise typer.Exit(1)
