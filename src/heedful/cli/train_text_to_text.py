"""`heedful train text-to-text`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..tasks.text_to_text.task import TextToTextTask
from .running import Common, Out, Preset, Valid, launch, with_common

NAME = TextToTextTask.name
EXAMPLE = (
    'Example: heedful train text-to-text --data news.csv --columns article,summary --prefix "summarize: " '
    "--set data.cut=true --out runs/summaries"
)


@with_common
def text_to_text(
    out: Out,
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE…", help="Texts and what they become: .tsv, .csv, .jsonl, packed or not, or folders."
        ),
    ] = None,
    valid: Valid = None,
    columns: Annotated[
        str | None,
        typer.Option(
            help="The columns' names: article,summary. Without a header, what they hold: source,-,target; prefix too."
        ),
    ] = None,
    prefix: Annotated[
        str | None, typer.Option(help='What stands before every text, in training as in use, such as "summarize: ".')
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="MODEL", help="Begin with a model: a folder of Heedful's, or a T5, BART, Marian."
        ),
    ] = None,
    preset: Preset = None,
    *,
    common: Common,
) -> None:
    """Train a model that answers a text with a text: it summarises, rewrites, answers, translates.

    A header, or the keys of JSON lines, say where source and target are: text, document, article, question; summary,
    answer, title. A column named prefix or task says for each row what is to be done with it. With --from, tokeniser
    and weights are the model's. Settings come from --config, then from the options, then from --set.
    """

    def options(values: dict[str, Any]) -> None:
        given = {"prefix": prefix, "base": base, "model": None if preset is None else {"preset": preset}}
        values |= {name: value for name, value in given.items() if value is not None}

    launch(
        TextToTextTask(),
        out,
        common,
        data=data,
        valid=valid,
        columns=columns,
        options=options,
    )
