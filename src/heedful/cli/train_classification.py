"""`heedful train classification`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..tasks.classification.task import ClassificationTask
from .running import Common, Out, Preset, Valid, launch, with_common

NAME = ClassificationTask.name
EXAMPLE = "Example: heedful train classification --data reviews.tsv --out runs/reviews --set training.epochs=5"

Base = Annotated[
    str | None,
    typer.Option("--from", metavar="MODEL", help="Begin with a model: one of Heedful's folders, or a published one."),
]


@with_common
def classification(
    out: Out,
    data: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE…", help="Labelled texts: .tsv, .csv, .jsonl, packed (.gz) or not, or folders."),
    ] = None,
    valid: Valid = None,
    base: Base = None,
    columns: Annotated[
        str | None,
        typer.Option(
            help="The columns' names, the label last: review,stars. Without a header, what they hold: label,-,text."
        ),
    ] = None,
    preset: Preset = None,
    *,
    common: Common,
) -> None:
    """Train a classifier on texts with a label each, or on pairs of texts.

    A header, or the keys of JSON lines, say where text and label are: text, document, sentence, review; label,
    class, category. With --from, the tokeniser and all weights but those of the classes are the model's.
    Settings come from --config, then from the options, then from --set.
    """

    def options(values: dict[str, Any]) -> None:
        given = {"base": base, "model": None if preset is None else {"preset": preset}}
        values |= {name: value for name, value in given.items() if value is not None}

    launch(
        ClassificationTask(),
        out,
        common,
        data=data,
        valid=valid,
        columns=columns,
        options=options,
    )
