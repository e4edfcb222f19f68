"""What every `heedful train TASK` shares: its options, how settings come together, and the run itself."""

from __future__ import annotations

import inspect
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from signal import SIGINT
from typing import Annotated, Any, get_type_hints

import torch
import typer

from ..config import assign, read_mapping
from ..errors import ConfigError, HeedfulError
from ..tasks.run import AnyTask, Files, read_run, train
from ..tasks.run.folder import METRICS
from ..tasks.scoring import Score
from ..training.device import computes_in_bf16
from ..training.errors import Interrupted
from ..training.parallel import Alone, start
from .help import Command
from .progress import watching
from .tables import show_data_report, show_scores
from .together import together
from .words import say

SEVERAL = ("--data", "--valid")

Out = Annotated[Path, typer.Option(help="The run's folder; the model ends up there.", show_default=False)]
Valid = Annotated[
    list[str] | None,
    typer.Option(metavar="FILE…", help="What to validate on. Without it, some of the data is set apart."),
]
Preset = Annotated[str | None, typer.Option(help="A sized model.")]


@dataclass(frozen=True, kw_only=True)
class Common:
    """The options that every `heedful train TASK` has."""

    config: Annotated[Path | None, typer.Option(help="A file of settings (YAML or JSON), such as a run.yaml.")] = None
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="One setting, such as training.steps=20000. Repeatable."),
    ] = None
    engine: Annotated[
        str | None, typer.Option(help="How steps are run: auto, eager, graph (CUDA graphs) or compile.")
    ] = None
    processes: Annotated[
        int | None, typer.Option(min=1, help="Train with so many processes on this machine, one for each GPU.")
    ] = None
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False
    allow_changes: Annotated[
        bool, typer.Option("--allow-changes", help="Go on although data or settings have changed.")
    ] = False
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run in --out.")] = False


def with_common(verb: Callable[..., None]) -> Callable[..., None]:
    """A verb that takes the common options, each for itself, where its parameter `common` stands."""
    types = get_type_hints(Common, include_extras=True)
    shared = [
        inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=types[one.name])
        for one in fields(Common)
    ]
    own = inspect.signature(verb, eval_str=True).parameters.values()

    @wraps(verb)
    def run(**given: Any) -> None:
        common = Common(**{one.name: given.pop(one.name) for one in fields(Common)})
        verb(**given, common=common)

    parameters = [*(one for one in own if one.name != "common"), *shared]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what typer reads
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


class ManyFiles(Command):
    """`--data a b` means `--data a --data b`: these verbs have no other words that could stand there."""

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


def launch(
    task: AnyTask,
    out: Path,
    common: Common,
    *,
    data: Sequence[str] | None,
    valid: Sequence[str] | None = None,
    columns: str | None = None,
    options: Callable[[dict[str, Any]], None] = lambda values: None,
    needed: Sequence[tuple[str, str]] = (),
) -> bool:
    """Run a task. Settings come from a resumed run or --config, then from the verb's `options`, then from --set.

    `needed` are options that must be given, each with the setting it becomes. Gives whether this process, of several,
    is the one that speaks.
    """
    with together() as world:
        values, files = _asked(task, out, common)
        options(values)
        if common.engine is not None:
            assign(values, f"training.engine={common.engine}")
        for assignment in common.setting or ():
            assign(values, assignment)
        files = Files(
            tuple(data) if data else files.train,
            tuple(valid) if valid else files.valid,
            tuple(name.strip() for name in columns.split(",")) if columns else files.columns,
        )
        for option, found in (("--data", files.train), *((option, values.get(name)) for option, name in needed)):
            if not found:
                raise ConfigError(f"{option} is missing; see heedful train {task.name} --help")
        settings = task.config_class.from_dict(values)
        if common.processes not in (None, world.size):
            if world.size > 1:
                raise ConfigError(f"--processes {common.processes}: {world.size} were started; leave it out")
            sys.exit(start(common.processes, [sys.executable, "-P", "-m", "heedful", *sys.argv[1:]]))
        _run(task, settings, files, out, common, world)
        if world.rank == 0:
            _tell(task, out)
        return world.rank == 0


def _run(task: AnyTask, settings: Any, files: Files, out: Path, common: Common, world: Alone) -> None:
    several = ["--processes", str(common.processes)] if common.processes else []
    again = shlex.join(["heedful", "train", task.name, "--out", str(out), "--resume", *several])
    world.advice = f"; the run can be resumed from its last checkpoint: {again}"
    say("Going on with the run …" if common.resume else "Reading the data …")
    steps, warmup = settings.training.steps, settings.training.warmup_steps
    if steps is not None and warmup >= steps > 1:
        say(f"Its {steps:,} steps end within the warm-up of {warmup:,} (training.warmup_steps)")
    if settings.training.precision != "float32" and not computes_in_bf16(world.device(settings.training.device)):
        say("This CPU has no instructions for bf16; it computes in float32 (training.precision)")
    try:
        with watching() as watch:
            train(
                task,
                settings,
                files,
                out,
                resume=common.resume,
                allow_changes=common.allow_changes,
                overwrite=common.overwrite,
                on_read=show_data_report,
                watch=watch,
            )
    except Interrupted as stop:
        raise Interrupted(f"{stop}: {again}", stop.code) from None
    except KeyboardInterrupt:  # not while it trains: then the run saves itself first
        if not any((out / "checkpoints").glob("*")):
            raise
        raise Interrupted(f"stopped; what was trained is kept, to be gone on with: {again}", 128 + SIGINT) from None
    except torch.OutOfMemoryError as error:
        tokens = settings.training.batch_tokens
        raise HeedfulError(
            f"the GPU's memory is full; try --set training.batch_tokens={tokens // 2} --resume --allow-changes"
        ) from error


def _asked(task: AnyTask, out: Path, common: Common) -> tuple[dict[str, Any], Files]:
    """The settings and files of the run that goes on, and those of --config over them."""
    if common.resume and common.overwrite:
        raise ConfigError("--resume goes on with the run in --out, --overwrite replaces it; give one of them")
    values: dict[str, Any] = {}
    files = Files(())
    if common.resume:
        before, files = read_run(task, out)
        values = before.to_dict()
    return (values, files) if common.config is None else _over(task, values, files, read_mapping(common.config))


def _tell(task: AnyTask, out: Path) -> None:
    validation = read_mapping(out / METRICS)["validation"]
    scores = [Score(**score) for score in validation["scores"].values()]
    show_scores("Validation", {f"{validation['n']:,} {task.example_name}": scores})
    say(f"The model is in {out}, its report in {out / 'report.html'}.")
    say(f"Try it: heedful predict {shlex.quote(str(out))} …")


def _over(task: AnyTask, values: dict[str, Any], files: Files, more: dict[str, Any]) -> tuple[dict[str, Any], Files]:
    """A file's settings over others, section by section; a model is taken whole."""
    if (of := more.pop("task", task.name)) != task.name:
        raise ConfigError(f"the settings are of a run of {of}, not of {task.name}")
    if "files" in more:
        files = Files.from_dict(more.pop("files"))
    merged = dict(values)
    for name, value in more.items():
        both = isinstance(value, dict) and isinstance(merged.get(name), dict) and name != "model"
        merged[name] = {**merged[name], **value} if both else value
    return merged, files
