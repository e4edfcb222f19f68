"""The run of `heedful train TASK`: how its settings come together, what is said meanwhile, and how it may end."""

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from signal import SIGINT
from typing import Any

import torch

from ..config import assign, read_mapping
from ..errors import ConfigError, HeedfulError
from ..tasks.registry import TRAINED
from ..tasks.run import AnyTask, Files, read_run, train
from ..tasks.run.folder import METRICS
from ..tasks.scoring import Score
from ..training.device import computes_in_bf16
from ..training.errors import Interrupted
from ..training.parallel import SingleProcess, start
from .console import say
from .distributed import joined_processes
from .progress import watching
from .tables import show_data_report, show_scores
from .train import COLUMNS, RESET, CommonOptions


def launch(
    task_name: str,
    out: Path,
    common: CommonOptions,
    overrides: Callable[[], Mapping[str, Any]],
    *,
    data: Sequence[str] | None,
    valid: Sequence[str] | None = None,
    required: Sequence[tuple[str, str]] = (),
    default_model: str | None = None,
) -> None:
    """Train. Settings come from a resumed run or --config, then from the task's `overrides`, then from --set.

    `required` are options that must be given, each with the setting it becomes; see `train._train_command`.
    """
    task: AnyTask = TRAINED[task_name]()
    with joined_processes() as world:
        values, files = _stored_settings(task, out, common)
        options = dict(overrides())
        columns = options.pop(COLUMNS, None)
        _apply(values, options, default_model)
        if common.engine is not None:
            assign(values, f"training.engine={common.engine}")
        for assignment in common.setting or ():
            assign(values, assignment)
        files = Files(
            tuple(data) if data else files.train,
            tuple(valid) if valid else files.valid,
            tuple(name.strip() for name in columns.split(",")) if columns else files.columns,
        )
        for option, value in (("--data", files.train), *((option, values.get(name)) for option, name in required)):
            if not value:
                raise ConfigError(f"{option} is missing; see heedful train {task.name} --help")
        settings = task.config_class.from_dict(values)
        if common.processes not in (None, world.size):
            if world.size > 1:
                raise ConfigError(f"--processes {common.processes}: {world.size} were started; leave it out")
            sys.exit(start(common.processes, [sys.executable, "-P", "-m", "heedful", *sys.argv[1:]]))
        _run(task, settings, files, out, common, world)
        if world.rank == 0:
            _show_result(task, out)


def _apply(values: dict[str, Any], options: Mapping[str, Any], default_model: str | None) -> None:
    """Put options into settings: "section.name" changes one of a section, and a model by its name is a preset."""
    for name, value in options.items():
        section, _, key = name.rpartition(".")
        if value is None:
            continue
        if value is RESET:
            values.pop(name, None)
        elif not section:
            values[name] = {"preset": value} if name == "model" else value
        else:
            current = values.get(section, (default_model or {}) if section == "model" else {})
            values[section] = {**({"preset": current} if isinstance(current, str) else current), key: value}


def _run(task: AnyTask, settings: Any, files: Files, out: Path, common: CommonOptions, world: SingleProcess) -> None:
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


def _stored_settings(task: AnyTask, out: Path, common: CommonOptions) -> tuple[dict[str, Any], Files]:
    """The settings and files of the run that goes on, and those of --config over them."""
    if common.resume and common.overwrite:
        raise ConfigError("--resume goes on with the run in --out, --overwrite replaces it; give one of them")
    values: dict[str, Any] = {}
    files = Files(())
    if common.resume:
        before, files = read_run(task, out)
        values = before.to_dict()
    return (values, files) if common.config is None else _merge(task, values, files, read_mapping(common.config))


def _show_result(task: AnyTask, out: Path) -> None:
    metrics = read_mapping(out / METRICS)
    validation = metrics["validation"]
    scores = [Score(**score) for score in validation["scores"].values()]
    show_scores("Validation", {f"{validation['n']:,} {task.example_name}": scores})
    say(f"The model is in {out}, its report in {out / 'report.html'}.")
    say(f"Try it: heedful predict {shlex.quote(str(out))} …")
    for sentence in task.verdicts(metrics):
        say(sentence)


def _merge(task: AnyTask, values: dict[str, Any], files: Files, more: dict[str, Any]) -> tuple[dict[str, Any], Files]:
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
