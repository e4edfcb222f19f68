"""`heedful lab`: experiments that break one part of a model, beside the intact one."""

from pathlib import Path
from typing import Annotated

import typer

from .console import console, echo, plain, say
from .language import current
from .options import option


def lab(
    experiment: Annotated[
        str | None, typer.Argument(metavar="EXPERIMENT", help="The experiment to run, or all of them: all.")
    ] = None,
    seeds: Annotated[int, option("The number of random seeds.", min=1)] = 3,
    out: Annotated[Path | None, option("A folder for a page and the numbers of each experiment.")] = None,
    list_all: Annotated[bool, option("List the experiments and their claims.", "--list")] = False,
) -> None:
    """Break one part of a model, train it beside the intact one, and see what is lost.

    Without EXPERIMENT, the experiments are listed.
    """
    from ..lab import EXPERIMENTS
    from ..lab.presentation import claim

    if list_all or experiment is None:
        for name in EXPERIMENTS:
            echo(f"{name}: {claim(name, current())}")
        return
    for name in EXPERIMENTS if experiment == "all" else [experiment]:
        _run(name, seeds, out, current())


def _run(name: str, seeds: int, out: Path | None, language: str) -> None:
    from rich.cells import cell_len
    from rich.table import Table

    from ..lab import run
    from ..lab.presentation import catalog, claim, sparklines, table, verdict, write
    from ..lens.terminal import fit

    findings, messages = run(name, seeds=seeds), catalog(language)["messages"]
    echo(f"{name}: {claim(name, language)}", "bold")
    rows, curves = table(findings, language), sparklines(findings, language)
    first, *metrics = rows[0]
    show = Table(messages["model"], *(row[first] for row in rows))  # scores below each other fit any width
    for metric in metrics:
        show.add_row(metric, *(plain(row[metric]) for row in rows))
    console.print(show)
    width = max(map(cell_len, curves), default=0)
    for arm, bars in curves.items():
        echo(f"  {fit(arm, width)}  {bars}")
    experiment = findings.experiment
    if curves:
        echo(f"  ({catalog(language)['curves'][experiment.y]}; {catalog(language)['axes'][experiment.x]} →)")
    for n, sentence in enumerate(verdict(findings, language)):
        echo(sentence if n == 0 else f"  {sentence}", "bold" if n == 0 else "")
    echo(messages["seconds"].format(seconds=f"{findings.seconds:.0f}"))
    for path in [] if out is None else write(findings, out, language):
        say(f"wrote {path}")
