"""The shell: verbs and their help. What they do is elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import torch
import typer
from rich.console import Console
from rich.table import Table

from . import __version__, build
from .errors import HeedfulError

app = typer.Typer(
    help="The whole Transformer: small enough to read, fast enough to ship.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
console = Console()


def _version(asked: bool) -> None:
    if asked:
        say(f"heedful {__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """The whole Transformer: small enough to read, fast enough to ship."""


@app.command(epilog="Example: heedful demo --out runs/demo --language ko")
def demo(
    out: Annotated[Path, typer.Option(help="Where the pictures go.")] = Path("runs/demo"),
    language: Annotated[Literal["en", "ko"], typer.Option(help="Of the pictures' labels.")] = "en",
) -> None:
    """Build the paper's base model, pass a sentence through it, count its parts and draw its pictures."""
    from .lens.tour import tour

    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)  # the same pictures every time
    say("Building the base model of the paper (d_model 512, 8 heads, 6 + 6 layers) …")
    seen = tour(build("base"), out, language=language)

    table = Table("stack", "part", "parameters", title="What the model is made of")
    table.columns[2].justify = "right"
    for count in seen.counts:
        table.add_row(count.stack, count.part, f"{count.parameters:,}")
    table.add_section()
    table.add_row("", "together", f"{sum(count.parameters for count in seen.counts):,}")
    console.print(table)
    shares = ", ".join(f"{share:.0%} of {name}" for name, share in _of(seen.shares).items())
    say(f"The feed-forward holds {shares}.")
    for name, shape in seen.shapes.items():
        say(f"  {name}: {' × '.join(map(str, shape))}")
    for path in seen.pictures:
        say(f"wrote {path}")
    say("The weights are fresh, so the attention is not yet about anything.")
    for note in seen.notes:
        say(note)
    if not seen.pictures:
        raise typer.Exit(1)


def say(text: str) -> None:
    """Print a line as it is: brackets in it are no markup."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _of(shares: dict[str, float]) -> dict[str, float]:
    articles = {"encoder layer": "an encoder layer", "decoder layer": "a decoder layer"}
    return {articles.get(name, name): share for name, share in shares.items()}


def main() -> None:
    """Run a verb; a person's mistake is one line and exit code 1."""
    try:
        app()
    except (HeedfulError, OSError) as error:
        if "--debug" in sys.argv:
            raise
        words = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) and error.strerror else str(error)
        Console(stderr=True).print(f"error: {words}", style="red", highlight=False, markup=False, soft_wrap=True)
        sys.exit(1)
