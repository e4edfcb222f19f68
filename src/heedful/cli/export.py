"""`heedful export`: a trained model for another program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from ..errors import ConfigError
from ..tasks.agreement import BEAMS, Agreement
from ..tasks.exporting import export_ctranslate2
from ..tasks.publishing import export_huggingface
from .words import say

Quantization = Literal["int8", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16"]


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The folder of a trained model.")],
    to: Annotated[
        Literal["hf", "ctranslate2"],
        typer.Option(help="hf: a folder that transformers loads. ctranslate2: one for that engine."),
    ],
    out: Annotated[Path, typer.Option(help="A new folder.")],
    quantization: Annotated[
        Quantization | None, typer.Option(help="For ctranslate2: smaller and less exact weights.")
    ] = None,
) -> None:
    """Write a trained model for another program, and check what was written before it takes its place."""
    if to == "hf":
        if quantization is not None:
            raise ConfigError("--quantization is for ctranslate2; weights for transformers are written as they are")
        written = export_huggingface(model, out)
        _wrote(written.folder, written.files)
        say("checked: read back, every weight is the same", "green")
        return
    done = export_ctranslate2(model, out, quantization=quantization)
    _wrote(done.folder, done.files)
    say(_compared("float32", done.exact), "green")
    if done.quantised is not None:
        say(_compared(str(quantization), done.quantised))


def _wrote(folder: Path, files: Sequence[str]) -> None:
    size = sum((folder / name).stat().st_size for name in files)
    say(f"wrote {folder} ({size / 1e6:,.1f} MB): {', '.join(files)}")


def _compared(precision: str, found: Agreement) -> str:
    same = found.answers - len(found.different)
    beams = " and ".join(map(str, BEAMS))
    return (
        f"checked in {precision}: {found.scored} log-probabilities differ by at most {found.largest:.1e}, on average "
        f"{found.mean:.1e}; {same} of {found.answers} answers are the same (beam {beams})"
    )
