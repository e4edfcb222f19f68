"""`heedful export`: a trained model for another program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from ..tasks.agreement import BEAMS, Agreement
from ..tasks.exporting import export_ctranslate2
from .words import say

Quantization = Literal["int8", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16"]


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The folder of a trained model.")],
    to: Annotated[Literal["ctranslate2"], typer.Option(help="The program that shall run it.")],
    out: Annotated[Path, typer.Option(help="A new folder.")],
    quantization: Annotated[
        Quantization | None, typer.Option(help="Smaller and less exact weights; float32 unless given.")
    ] = None,
) -> None:
    """Write a trained model for another program, and compare what both compute before it takes its place."""
    done = export_ctranslate2(model, out, quantization=quantization)
    size = sum((done.folder / name).stat().st_size for name in done.files)
    say(f"wrote {done.folder} ({size / 1e6:,.1f} MB): {', '.join(done.files)}")
    say(_compared("float32", done.exact), "green")
    if done.quantised is not None:
        say(_compared(str(quantization), done.quantised))


def _compared(precision: str, found: Agreement) -> str:
    same = found.answers - len(found.different)
    beams = " and ".join(map(str, BEAMS))
    return (
        f"checked in {precision}: {found.scored} log-probabilities differ by at most {found.largest:.1e}, on average "
        f"{found.mean:.1e}; {same} of {found.answers} answers are the same (beam {beams})"
    )
