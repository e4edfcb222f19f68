"""`heedful train TASK`: one command for each entry of train.json, with the options of the task."""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ..errors import ConfigError, unknown
from .console import Command, CommandGroup
from .options import (
    COLUMNS,
    DEVICE,
    PRECISION,
    SEED,
    Overwrite,
    Settings,
    option,
    parameter,
    parameters_of,
    with_language,
    with_signature,
)

SIZES = ("tiny", "small", "base")
MULTIPLE = ("--data", "--valid")
LISTS = ("files.columns", "data.series")  # settings whose options are separated by commas
EXAMPLE = (
    "Example: heedful train translation --data pairs.tsv --source ko --target en --out runs/ko-en "
    "--set training.steps=20000"
)
RESET = object()  # in place of a value: the setting takes its default again

Overrides = dict[str, Any]  # settings by their dotted names; None where an option was not given

Out = Annotated[Path, option("The folder of the run, where the model is written.", show_default=False)]
Valid = Annotated[
    list[str] | None,
    option("The validation data. Without it, a part of --data is used for validation.", metavar="FILE…"),
]
app = typer.Typer(cls=CommandGroup, help="Train a model on your own files.", no_args_is_help=True)


@dataclass(frozen=True, kw_only=True)
class CommonOptions:
    """The options that every `heedful train TASK` has after its own."""

    config: Annotated[
        Path | None, option("A YAML or JSON file of settings, such as a run.yaml; options and --set override it.")
    ] = None
    setting: Settings = None
    device: Annotated[str | None, option(DEVICE)] = None
    precision: Annotated[Literal["float32", "bf16", "bf16-weights"] | None, option(PRECISION)] = None
    seed: Annotated[int | None, option(SEED, min=0)] = None
    engine: Annotated[
        Literal["auto", "eager", "graph", "compile"] | None,
        option("How training steps run: eager, graph (CUDA graphs), compile, or auto to measure and choose."),
    ] = None
    processes: Annotated[
        int | None, option("The number of training processes on this machine: one for each GPU.", min=1)
    ] = None
    resume: Annotated[bool, option("Resume the run in --out from its last checkpoint.", "--resume")] = False
    allow_changes: Annotated[bool, option("Resume even if data or settings have changed.", "--allow-changes")] = False
    overwrite: Overwrite = False


class MultipleFiles(Command):
    """A command where `--data a b` means `--data a --data b`; it has no arguments that could follow the option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        expanded: list[str] = []
        option, has_file = "", False
        for argument in args:
            if argument.startswith("-") and argument != "-":
                option, has_file = argument if argument in MULTIPLE else "", False
            elif option and has_file:
                expanded.append(option)
            else:
                has_file = True
            expanded.append(argument)
        return super().parse_args(ctx, expanded)


@dataclass(frozen=True, kw_only=True)
class TrainCommand:
    """An entry of train.json: what the command of one task has besides CommonOptions."""

    help: Sequence[str]  # the paragraphs of the command's help
    data: str  # the help of --data
    example: str  # a command line for the help
    sizes: Sequence[str]  # the presets that `--preset tiny`, `small` and `base` stand for
    # The task's own options by name, each with the dotted name of its setting, its help, and where needed its flags,
    # its type (text by default) and further arguments of typer.
    options: Mapping[str, Mapping[str, Any]]
    columns: str = ""  # the help of --columns after its common part, if there is such an option
    init_from: bool = False  # training can start from another model
    valid: bool = True  # there is an option --valid
    required: Sequence[tuple[str, str]] = ()  # options that must be given, each with its setting
    default_model: str | None = None  # the preset that options for "model.…" change if nothing else chose a model

    def all_options(self) -> dict[str, Mapping[str, Any]]:
        """Return the task's own options and those that tasks share."""
        named = ", ".join(name for name in self.sizes if name not in SIZES)
        shared: dict[str, Mapping[str, Any]] = {
            "preset": {
                "setting": "model",
                "help": f"The model's size: tiny, small or base{named and f' ({named})'}; or any other preset.",
            }
        }
        if self.init_from:
            text = "Start from this model: a Heedful folder, or a published model in Hugging Face's format."
            shared["init_from"] = {"setting": "base", "help": text, "metavar": "MODEL"}
        if self.columns:
            shared["columns"] = {"setting": "files.columns", "help": f"{COLUMNS} {self.columns}"}
        return {**self.options, **shared}

    def parameters(self) -> list[inspect.Parameter]:
        """Return the options as parameters of a command."""
        types: dict[str, Any] = {"int": int | None, "bool": bool}
        result = []
        for name, entry in self.all_options().items():
            kind = types.get(entry.get("type", ""), str | None)
            more = {key: entry[key] for key in ("min", "metavar") if key in entry}
            info = option(entry["help"], *entry.get("flags", ()), **more)
            result.append(parameter(name, Annotated[kind, info], False if kind is bool else None))
        return result

    def settings(self, values: Mapping[str, Any]) -> Overrides:
        """Return the settings that the options change, sections before their fields."""
        options = self.all_options()
        changes = {options[name]["setting"]: None if value is False else value for name, value in values.items()}
        for name, value in changes.items():
            if name in LISTS and value is not None:
                items = value.split(",") if isinstance(value, str) else value
                changes[name] = [item.strip() for item in items]
        if (size := changes["model"]) in SIZES:
            changes["model"] = self.sizes[SIZES.index(size)]
        return dict(sorted(changes.items(), key=lambda change: "." in change[0]))


def _register(task: str, entry: TrainCommand) -> None:
    """Make a command of an entry."""
    files = Annotated[list[str] | None, option(entry.data, metavar="FILE…")]
    before = [parameter("out", Out), parameter("data", files, None)]
    before += [parameter("valid", Valid, None)] if entry.valid else []
    common_options = parameters_of(CommonOptions)

    def command(*, out: Path, data: list[str] | None, valid: list[str] | None = None, **values: Any) -> None:
        from .train_command import launch  # imports torch

        common = CommonOptions(**{each.name: values.pop(each.name) for each in common_options})
        overrides = partial(RESOLVE.get(task, dict), entry.settings(values))
        launch(task, entry, out, common, overrides, data=data, valid=valid)

    with_signature(command, [*before, *entry.parameters(), *common_options], "\n\n".join(entry.help))
    app.command(task, cls=MultipleFiles, epilog=f"Example: {entry.example}")(with_language(command))


def _resolve_translation(settings: Overrides) -> Overrides:
    """Resolve --model, a family, and --preset, which must be one of the family's, to a preset."""
    from ..families.registry import family_of, presets
    from ..tasks.translation.task import PRESET

    preset, family = settings["model"], settings.pop("family")
    if family is not None:
        sizes = family_of(family).presets
        if preset is not None and preset not in sizes:
            raise ConfigError(f"--preset {preset} is not a preset of --model {family}, which has: {', '.join(sizes)}")
        preset = preset or (PRESET if PRESET in sizes else next(iter(sizes)))
    if preset is not None and preset not in presets():
        raise ConfigError(f"--preset: {unknown('preset', preset, presets())}")
    return {**settings, "model": preset}


def _resolve_language_model(settings: Overrides) -> Overrides:
    """Resolve --characters to a kind of tokenizer, and let --context, the model's length, override a run's context."""
    context = settings["model.max_length"]
    kind = "characters" if settings["tokenizer.kind"] else None
    return {**settings, "context": None if context is None else RESET, "tokenizer.kind": kind}


# For tasks with options that affect several settings, or differ from their setting.
RESOLVE: dict[str, Callable[[Overrides], Overrides]] = {
    "translation": _resolve_translation,
    "language-model": _resolve_language_model,
}
TASKS: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
COMMANDS = {task: TrainCommand(**entry) for task, entry in TASKS.items()}
for _task, _command in COMMANDS.items():
    _register(_task, _command)
