"""`heedful train masked`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..tasks.masked.task import MaskedTask
from .running import AllowChanges, ConfigFile, Out, Overwrite, Preset, Resume, Setting, Valid, launch
from .train_classification import Base

NAME = MaskedTask.name
EXAMPLE = "Example: heedful train masked --data texts.txt --out runs/reader --preset bert-mini"


def masked(
    out: Out,
    data: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE…", help="Text: one a line (.txt), or .jsonl with a key text, or folders of these."),
    ] = None,
    valid: Valid = None,
    base: Base = None,
    preset: Preset = None,
    config: ConfigFile = None,
    setting: Setting = None,
    resume: Resume = False,
    allow_changes: AllowChanges = False,
    overwrite: Overwrite = False,
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
        data=data,
        valid=valid,
        config=config,
        setting=setting,
        resume=resume,
        allow_changes=allow_changes,
        overwrite=overwrite,
        options=options,
    )
