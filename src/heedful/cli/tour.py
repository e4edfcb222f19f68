"""`heedful tour`: through the paper's base model, part by part."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import torch
import typer
from rich.table import Table

from ..families import build
from ..lens.tour import tour as walk
from .words import console, say

ARTICLES = {"encoder layer": "an encoder layer", "decoder layer": "a decoder layer"}


def tour(
    out: Annotated[Path, typer.Option(help="Where the pictures go.")] = Path("runs/tour"),
    language: Annotated[Literal["en", "ko"], typer.Option(help="Of the pictures' labels.")] = "en",
) -> None:
    """Build the paper's base model, pass a sentence through it, count its parts and draw its pictures."""
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)  # the same pictures every time
    say("Building the base model of the paper (d_model 512, 8 heads, 6 + 6 layers) …")
    seen = walk(build("base"), out, language=language)

    table = Table("stack", "part", "parameters", title="What the model is made of")
    table.columns[2].justify = "right"
    for count in seen.counts:
        table.add_row(count.stack, count.part, f"{count.parameters:,}")
    table.add_section()
    table.add_row("", "together", f"{sum(count.parameters for count in seen.counts):,}")
    console.print(table)
    shares = ", ".join(f"{share:.0%} of {ARTICLES.get(name, name)}" for name, share in seen.shares.items())
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
