"""`heedful train TASK`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from ..config import assign, read_mapping
from ..errors import ConfigError, HeedfulError, unknown
from ..families.registry import family_of, presets
from ..tasks.scoring import Score
from ..tasks.translation.config import PRESET, TranslationConfig
from ..tasks.translation.prepare import Files
from ..tasks.translation.train import METRICS, asked
from ..tasks.translation.train import train as train_translation
from ..training.errors import Interrupted
from .help import Command, Group
from .progress import watching
from .tables import show_readings, show_scores
from .words import say

EXAMPLE = (
    "Example: heedful train translation --data pairs.tsv --from ko --to en --out runs/ko-en --set training.steps=20000"
)
SEVERAL = ("--data", "--valid")

app = typer.Typer(cls=Group, help="Train a model on your own files.", no_args_is_help=True)


class ManyFiles(Command):
    """`--data a b` means `--data a --data b`: this verb has no other words that could stand there."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Write the option before each of its files."""
        spread: list[str] = []
        option, filled = "", False
        for word in args:
            if word.startswith("-") and word != "-":
                option, filled = word if word in SEVERAL else "", False
            elif option and filled:
                spread.append(option)
            else:
                filled = True
            spread.append(word)
        return super().parse_args(ctx, spread)


@app.command(cls=ManyFiles, epilog=EXAMPLE)
def translation(
    out: Annotated[Path, typer.Option(help="The run's folder; the model ends up there.", show_default=False)],
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE…",
            help="Pairs: .tsv, .csv, .jsonl, .po, .mo, .tmx, .xliff, parallel text (one of both files), .gz, folders.",
        ),
    ] = None,
    valid: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE…", help="Pairs to validate on. Without it, some of the data is set apart."),
    ] = None,
    source: Annotated[str | None, typer.Option("--from", help="The language to translate from: ko.")] = None,
    target: Annotated[str | None, typer.Option("--to", help="The language to translate to: en.")] = None,
    columns: Annotated[
        str | None, typer.Option(help="Languages of unnamed columns, where the source is not first: en,ko.")
    ] = None,
    preset: Annotated[str | None, typer.Option(help="A sized model: tiny, small, base, big.")] = None,
    model: Annotated[str | None, typer.Option(help="A family: original (the Transformer) or recurrent.")] = None,
    attention: Annotated[str | None, typer.Option(help="For recurrent: additive or none.")] = None,
    config: Annotated[Path | None, typer.Option(help="A file of settings (YAML or JSON), such as a run.yaml.")] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="One setting, such as training.steps=20000. Repeatable."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
    allow_changes: Annotated[
        bool, typer.Option("--allow-changes", help="Go on although data or settings have changed.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run in --out.")] = False,
) -> None:
    """Train a translator on files of sentence pairs.

    Settings come from --config, then from the options, then from --set.
    A run that was stopped goes on with --resume, exactly where it was.
    """
    if resume and overwrite:
        raise ConfigError("--resume goes on with the run in --out, --overwrite replaces it; give one of them")
    values: dict[str, Any] = {}
    files = Files(())
    if resume:
        before, files = asked(out)
        values = before.to_dict()
    if config is not None:
        values = _merged(values, read_mapping(config))
        if "files" in values:
            files = Files.from_dict(values.pop("files"))
    given = {"source": source, "target": target}
    values |= {name: code for name, code in given.items() if code is not None}
    choose_model(values, preset, model, attention)
    for assignment in setting or ():
        assign(values, assignment)
    files = Files(
        tuple(data) if data else files.train,
        tuple(valid) if valid else files.valid,
        tuple(columns.split(",")) if columns else files.columns,
    )
    for name, found in (("--data", files.train), ("--from", values.get("source")), ("--to", values.get("target"))):
        if not found:
            raise ConfigError(f"{name} is missing; see heedful train translation --help")
    settings = TranslationConfig.from_dict(values)
    say("Going on with the run …" if resume else "Reading the data …")
    try:
        with watching() as watch:
            train_translation(
                settings,
                files,
                out,
                resume=resume,
                allow_changes=allow_changes,
                overwrite=overwrite,
                on_read=show_readings,
                watch=watch,
            )
    except Interrupted as stop:
        again = shlex.join(["heedful", "train", "translation", "--out", str(out), "--resume"])
        raise Interrupted(f"{stop}: {again}", stop.code) from None
    except torch.OutOfMemoryError as error:
        tokens = settings.training.batch_tokens
        raise HeedfulError(
            f"the GPU's memory is full; try --set training.batch_tokens={tokens // 2} --resume --allow-changes"
        ) from error
    validation = read_mapping(out / METRICS)["validation"]
    scores = [Score(**score) for score in validation["scores"].values()]
    show_scores("Validation", {f"{validation['pairs']:,} pairs": [*scores, Score("exact %", validation["exact"])]})
    say(f"The model is in {out}, its report in {out / 'report.html'}.")
    say(f'Try it: heedful predict {shlex.quote(str(out))} "…"')


def choose_model(values: dict[str, Any], preset: str | None, model: str | None, attention: str | None) -> None:
    """--preset names a size, --model a family (its usual size unless a preset of it is given)."""
    if model is not None:
        own = family_of(model).presets
        if preset is not None and preset not in own:
            raise ConfigError(f"--preset {preset} is not of --model {model}, which has: {', '.join(own)}")
        preset = preset or (PRESET if PRESET in own else next(iter(own)))
    if preset is not None:
        if preset not in presets():
            raise ConfigError(f"--preset: {unknown('preset', preset, presets())}")
        values["model"] = {"preset": preset}
    if attention is not None:
        chosen = values.get("model", "recurrent")
        values["model"] = {**({"preset": chosen} if isinstance(chosen, str) else chosen), "attention": attention}


def _merged(values: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """`more` over `values`, section by section; a model is taken whole."""
    merged = dict(values)
    for name, value in more.items():
        both = isinstance(value, dict) and isinstance(merged.get(name), dict) and name != "model"
        merged[name] = {**merged[name], **value} if both else value
    return merged
