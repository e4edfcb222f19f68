"""`heedful report`, `heedful tour` and `heedful doctor`: a run, the paper's model, this machine described."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from .console import console, plain, say
from .options import option

MARKS = {"good": ("✓", "green"), "note": ("·", "yellow"), "bad": ("✗", "red")}
ARTICLES = {"encoder layer": "an encoder layer", "decoder layer": "a decoder layer"}


def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders that training wrote.")],
    out: Annotated[Path | None, option("Where the page goes; into the first folder unless given.")] = None,
    language: Annotated[Literal["en", "ko"], option("Of the page.")] = "en",
) -> None:
    """Write the page of a run again, or compare several runs on one page."""
    from ..tasks.registry import task_of
    from ..tasks.run import write_report

    say(f"wrote {write_report(task_of(runs[0]), runs, out, language=language)}")


def doctor(
    model: Annotated[
        Path | None,
        typer.Argument(metavar="[MODEL]", help="The folder of a trained model: say which backends can run it."),
    ] = None,
) -> None:
    """Say what this machine has and what would be used, and let a tiny model learn and write.

    With MODEL, say for each backend whether it can run that model on this machine, or why not.
    """
    from ..tasks.doctor import examine, examine_model

    states = []
    for finding in examine() if model is None else examine_model(model):
        mark, style = MARKS[finding.state]
        console.print(plain(f"{mark} {finding.name:<20}", style), end="")
        say(finding.value)
        states.append(finding.state)
    if "bad" in states:
        raise typer.Exit(1)


def tour(
    out: Annotated[Path, option("Where the pictures go.")] = Path("runs/tour"),
    language: Annotated[Literal["en", "ko"], option("Of the pictures' labels.")] = "en",
) -> None:
    """Build the paper's base model, pass a sentence through it, count its parts and draw its pictures."""
    import torch
    from rich.table import Table

    from ..families import build
    from ..lens.tour import tour as walk

    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)  # the same pictures every time
    say("Building the base model of the paper (d_model 512, 8 heads, 6 + 6 layers) …")
    result = walk(build("base"), out, language=language)

    table = Table("stack", "part", "parameters", title="What the model is made of")
    table.columns[2].justify = "right"
    for count in result.counts:
        table.add_row(count.stack, count.part, f"{count.parameters:,}")
    table.add_section()
    table.add_row("", "together", f"{sum(count.parameters for count in result.counts):,}")
    console.print(table)
    shares = ", ".join(f"{share:.0%} of {ARTICLES.get(name, name)}" for name, share in result.shares.items())
    say(f"The feed-forward holds {shares}.")
    for name, shape in result.shapes.items():
        say(f"  {name}: {' × '.join(map(str, shape))}")
    for path in result.pictures:
        say(f"wrote {path}")
    say("The weights are fresh, so the attention is not yet about anything.")
    for note in result.notes:
        say(note)
    if not result.pictures:
        raise typer.Exit(1)
