"""`heedful train TASK`: merges the settings, runs the training and reports its progress and result."""

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from signal import SIGINT
from typing import Any

import torch

from ..config import assign, read_mapping
from ..errors import RENAMED_TASKS, ConfigError, HeedfulError, unknown
from ..tasks.registry import TRAINED
from ..tasks.run import AnyTask, Files, read_run, train
from ..tasks.run.folder import METRICS
from ..tasks.scoring import Score
from ..training.errors import Interrupted
from ..training.parallel import SingleProcess, start
from ..training.parallel.process_group import computes_in_bf16
from .console import say
from .distributed import joined_processes
from .language import current
from .progress import watching
from .tables import show_data_report, show_scores
from .train import RESET, CommonOptions, TrainCommand

FROM_OPTIONS = ("engine", "device", "precision", "seed")  # settings of `training` that are options too


def launch(
    task_name: str,
    command: TrainCommand,
    out: Path,
    common: CommonOptions,
    overrides: Callable[[], Mapping[str, Any]],
    *,
    data: Sequence[str] | None,
    valid: Sequence[str] | None,
) -> None:
    """Train a model. --set overrides options, which override --config, which overrides the settings of a resumed run.

    `overrides` returns the settings from the task's own options. Without `data` or `valid`, the files are those of
    --config or of the resumed run.
    """
    task: AnyTask = TRAINED[task_name]()
    with joined_processes() as world:
        values, files = _stored_settings(task, out, common)
        options = dict(overrides())
        columns = options.pop("files.columns", None)
        options |= {f"training.{name}": getattr(common, name) for name in FROM_OPTIONS}
        apply_options(values, options, command.default_model)
        for assignment in common.setting or ():
            assign(values, assignment)
        files = Files(
            tuple(data) if data else files.train,
            tuple(valid) if valid else files.valid,
            tuple(columns) if columns else files.columns,
        )
        required = {"--data": files.train, **{option: values.get(name) for option, name in command.required}}
        if missing := [option for option, value in required.items() if not value]:
            raise ConfigError(f"{missing[0]} is missing; see heedful train {task.name} --help")
        settings = task.config_class.from_dict(values)
        if common.processes not in (None, world.size):
            if world.size > 1:
                raise ConfigError(f"--processes {common.processes}: {world.size} are running already; leave it out")
            sys.exit(start(common.processes, [sys.executable, "-P", "-m", "heedful", *sys.argv[1:]]))
        run_training(task, settings, files, out, common, world)
        if world.rank == 0:
            show_result(task, out)


def apply_options(values: dict[str, Any], options: Mapping[str, Any], default_model: str | None) -> None:
    """Apply options to settings: "section.name" changes a field of a section, and a string for a model is a preset."""
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


def run_training(
    task: AnyTask, settings: Any, files: Files, out: Path, common: CommonOptions, world: SingleProcess
) -> Any:
    """Train with the progress on the console; return the predictor, in the first process."""
    processes = ["--processes", str(common.processes)] if common.processes else []
    resume = shlex.join(["heedful", "train", task.name, "--out", str(out), "--resume", *processes])
    world.advice = f"; the run can be resumed from its last checkpoint: {resume}"
    say("Resuming the run …" if common.resume else "Reading the data …")
    if settings.training.precision != "float32" and not computes_in_bf16(world.device(settings.training.device)):
        say("This CPU has no bf16 instructions; it computes in float32 (training.precision)")
    try:
        with watching() as watch:
            return train(
                task,
                settings,
                files,
                out,
                resume=common.resume,
                allow_changes=common.allow_changes,
                overwrite=common.overwrite,
                language=current(),
                on_read=show_data_report,
                watch=watch,
            )
    except Interrupted as stop:
        raise Interrupted(f"{stop}: {resume}", stop.code) from None
    except KeyboardInterrupt:  # outside the training loop, which would save a checkpoint first
        if not any((out / "checkpoints").glob("*")):
            raise
        raise Interrupted(f"stopped; the run can be resumed from its last checkpoint: {resume}", 128 + SIGINT) from None
    except torch.OutOfMemoryError as error:
        tokens = settings.training.batch_tokens
        raise HeedfulError(
            f"the GPU's memory is full; try --set training.batch_tokens={tokens // 2} --resume --allow-changes"
        ) from error


def _stored_settings(task: AnyTask, out: Path, common: CommonOptions) -> tuple[dict[str, Any], Files]:
    """Return the settings and files of the resumed run, overridden by those of --config section by section."""
    if common.resume and common.overwrite:
        raise ConfigError("--resume continues the run in --out, and --overwrite replaces it; give one of them")
    values: dict[str, Any] = {}
    files = Files(())
    if common.resume:
        config, files = read_run(task, out)
        values = dict(config.explicit or {})
    changes = {} if common.config is None else read_mapping(common.config)
    if (name := changes.pop("task", task.name)) != task.name:
        renamed = f": {unknown('task', name, [task.name])}" if name in RENAMED_TASKS else ""
        raise ConfigError(f"the settings are for a run of {name}, not of {task.name}{renamed}")
    if "files" in changes:
        files = Files.from_dict(changes.pop("files"))
    for name, value in changes.items():
        is_section = isinstance(value, dict) and isinstance(values.get(name), dict) and name != "model"
        values[name] = {**values[name], **value} if is_section else value
    return values, files


def show_result(task: AnyTask, out: Path, *, keeps_folder: bool = True) -> None:
    """Print the scores of a run, and where its model is."""
    metrics = read_mapping(out / METRICS)
    validation = metrics["validation"]
    scores = [Score(**score) for score in validation["scores"].values()]
    show_scores("Validation", {f"{validation['n']:,} {task.example_name}": scores})
    if keeps_folder:
        say(f"The model is in {out}, and its report in {out / 'report.html'}.")
        say(f"Try it: heedful predict {shlex.quote(str(out))} …")
    for sentence in task.verdicts(metrics):
        say(sentence)
