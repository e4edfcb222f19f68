"""`heedful import`: other people's models as bundles."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from ..tasks.importing import import_model
from .words import say

Task = Literal["text-to-text", "language_model", "masked", "classification", "embedding", "images", "forecasting"]


def import_(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="config.json, safetensors and tokenizer.json; or a CTranslate2 model."),
    ],
    out: Annotated[Path, typer.Option(help="A new folder, for the model as Heedful keeps it.")],
    task: Annotated[
        Task | None, typer.Option(help="What a reader such as BERT shall do, if not what it was published for.")
    ] = None,
    unit: Annotated[
        Literal["words", "characters"] | None,
        typer.Option(help="What the tokens of a CTranslate2 model are, where it has no tokenizer.json."),
    ] = None,
) -> None:
    """Take over a published model, with exactly the weights it has. Every tensor is used, or the model refused."""
    model = import_model(folder, out, task=task, unit=unit)
    parameters = sum(parameter.numel() for parameter in model.module.parameters())
    say(
        f"wrote {out}: a model for {model.task}, of the family {model.config.family}, {parameters:,} parameters",
        "green",
    )
