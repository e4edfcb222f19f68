"""`heedful train TASK`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..errors import ConfigError, unknown
from ..families.registry import family_of, presets
from ..tasks.translation.task import PRESET, TranslationTask
from . import (
    train_classification,
    train_forecasting,
    train_images,
    train_language_model,
    train_masked,
    train_text_to_text,
)
from .help import Group
from .running import Common, ManyFiles, Out, Valid, launch, with_common

EXAMPLE = (
    "Example: heedful train translation --data pairs.tsv --from ko --to en --out runs/ko-en --set training.steps=20000"
)

app = typer.Typer(cls=Group, help="Train a model on your own files.", no_args_is_help=True)


@app.command(cls=ManyFiles, epilog=EXAMPLE)
@with_common
def translation(
    out: Out,
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE…",
            help="Pairs: .tsv, .csv, .jsonl, .po, .mo, .tmx, .xliff, parallel text (one of both files), .gz, folders.",
        ),
    ] = None,
    valid: Valid = None,
    source: Annotated[str | None, typer.Option("--from", help="The language to translate from: ko.")] = None,
    target: Annotated[str | None, typer.Option("--to", help="The language to translate to: en.")] = None,
    columns: Annotated[
        str | None, typer.Option(help="Languages of unnamed columns, where the source is not first: en,ko.")
    ] = None,
    preset: Annotated[str | None, typer.Option(help="A sized model: tiny, small, base, big.")] = None,
    model: Annotated[str | None, typer.Option(help="A family: original (the Transformer) or recurrent.")] = None,
    attention: Annotated[str | None, typer.Option(help="For recurrent: additive or none.")] = None,
    *,
    common: Common,
) -> None:
    """Train a translator on files of sentence pairs.

    Settings come from --config, then from the options, then from --set.
    A run that was stopped goes on with --resume, exactly where it was.
    """

    def options(values: dict[str, Any]) -> None:
        given = {"source": source, "target": target}
        values |= {name: code for name, code in given.items() if code is not None}
        choose_model(values, preset, model, usual=PRESET)
        if attention is not None:
            chosen = values.get("model", "recurrent")
            values["model"] = {**({"preset": chosen} if isinstance(chosen, str) else chosen), "attention": attention}

    launch(
        TranslationTask(),
        out,
        common,
        data=data,
        valid=valid,
        columns=columns,
        options=options,
        needed=(("--from", "source"), ("--to", "target")),
    )


def choose_model(values: dict[str, Any], preset: str | None, model: str | None, *, usual: str) -> None:
    """--preset names a size, --model a family (its usual size unless a preset of it is given)."""
    if model is not None:
        own = family_of(model).presets
        if preset is not None and preset not in own:
            raise ConfigError(f"--preset {preset} is not of --model {model}, which has: {', '.join(own)}")
        preset = preset or (usual if usual in own else next(iter(own)))
    if preset is not None:
        if preset not in presets():
            raise ConfigError(f"--preset: {unknown('preset', preset, presets())}")
        values["model"] = {"preset": preset}


for module, verb in (
    (train_text_to_text, train_text_to_text.text_to_text),
    (train_language_model, train_language_model.language_model),
    (train_classification, train_classification.classification),
    (train_masked, train_masked.masked),
    (train_images, train_images.images),
    (train_forecasting, train_forecasting.forecasting),
):
    app.command(module.NAME, cls=ManyFiles, epilog=module.EXAMPLE)(verb)
