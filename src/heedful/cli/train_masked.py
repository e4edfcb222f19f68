"""`heedful train masked`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..tasks.masked.task import MaskedTask
from .running import Common, Out, Preset, Valid, launch, with_common
from .train_classification import Base

NAME = MaskedTask.name
EXAMPLE = "Example: heedful train masked --data texts.txt --out runs/reader --preset bert-mini"


@with_common
def masked(
    out: Out,
    data: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE…", help="Text: one a line (.txt), or .jsonl with a key text, or folders of these."),
    ] = None,
    valid: Valid = None,
    base: Base = None,
    preset: Preset = None,
    *,
    common: Common,
) -> None:
    """Train a reader as BERT was: on plain text, by guessing words behind gaps. A classifier can begin with it.

    A line is a text of its own; with --set data.text=paragraph, all lines up to an empty one are.
    Settings come from --config, then from the options, then from --set.
    """

    def options(values: dict[str, Any]) -> None:
        given = {"base": base, "model": None if preset is None else {"preset": preset}}
        values |= {name: value for name, value in given.items() if value is not None}

    launch(
        MaskedTask(),
        out,
        common,
        data=data,
        valid=valid,
        options=options,
    )
