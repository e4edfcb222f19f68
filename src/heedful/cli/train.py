"""`heedful train TASK`: the options of every task, which train.json lists; a new task is an entry there."""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import ConfigError, unknown
from .console import Command, CommandGroup
from .options import option, parameter, parameters_of, with_signature

SEVERAL = ("--data", "--valid")
EXAMPLE = (
    "Example: heedful train translation --data pairs.tsv --from ko --to en --out runs/ko-en --set training.steps=20000"
)
COLUMNS = "files.columns"
RESET = object()  # in place of a value: the setting takes its default again

Overrides = dict[str, Any]  # None where an option was not given

Out = Annotated[Path, option("The run's folder; the model ends up there.", show_default=False)]
Valid = Annotated[
    list[str] | None, option("What to validate on. Without it, some of the data is set apart.", metavar="FILE…")
]
app = typer.Typer(cls=CommandGroup, help="Train a model on your own files.", no_args_is_help=True)


@dataclass(frozen=True, kw_only=True)
class CommonOptions:
    """The options that every `heedful train TASK` has after its own."""

    config: Annotated[Path | None, option("A file of settings (YAML or JSON), such as a run.yaml.")] = None
    setting: Annotated[
        list[str] | None,
        option("One setting, such as training.steps=20000. Repeatable.", "--set", metavar="NAME=VALUE"),
    ] = None
    engine: Annotated[str | None, option("How steps are run: auto, eager, graph (CUDA graphs) or compile.")] = None
    processes: Annotated[
        int | None, option("Train with so many processes on this machine, one for each GPU.", min=1)
    ] = None
    resume: Annotated[bool, option("Go on with the run in --out.", "--resume")] = False
    allow_changes: Annotated[bool, option("Go on although data or settings have changed.", "--allow-changes")] = False
    overwrite: Annotated[bool, option("Replace the run in --out.", "--overwrite")] = False


class ManyFiles(Command):
    """`--data a b` means `--data a --data b`: these commands have no arguments that could stand there."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Write the option before each of its files."""
        spread: list[str] = []
        option, filled = "", False
        for argument in args:
            if argument.startswith("-") and argument != "-":
                option, filled = argument if argument in SEVERAL else "", False
            elif option and filled:
                spread.append(option)
            else:
                filled = True
            spread.append(argument)
        return super().parse_args(ctx, spread)


@dataclass(frozen=True, kw_only=True)
class TrainCommand:
    """What only one task's command has: an entry of train.json.

    Attributes:
        help: The lines of the command's help.
        data: The help of --data.
        example: A command line for the help.
        options: The task's options by name: the setting that each becomes, by its dotted name, and its help; its
            flags where they are not its name, its type where it is not text, and what else typer is to know of it.
        valid: Whether there is --valid.
        required: Options that must be given, each with the setting it becomes.
        default_model: The preset that options for "model.…" change where nothing else chose a model.
    """

    help: Sequence[str]
    data: str
    example: str
    options: Mapping[str, Mapping[str, Any]]
    valid: bool = True
    required: Sequence[tuple[str, str]] = ()
    default_model: str | None = None

    def parameters(self) -> list[inspect.Parameter]:
        """The options as parameters of a command."""
        types = {"str": (str | None, None), "int": (int | None, None), "bool": (bool, False)}
        result = []
        for name, entry in self.options.items():
            kind, default = types[entry.get("type", "str")]
            more = {key: entry[key] for key in ("min", "metavar") if key in entry}
            info = option(entry["help"], *entry.get("flags", ()), **more)
            result.append(parameter(name, Annotated[kind, info], default))
        return result

    def settings(self, values: Mapping[str, Any]) -> Overrides:
        """The settings that the options change, sections before their parts; a flag that is off changes nothing."""
        changes = {self.options[name]["setting"]: None if value is False else value for name, value in values.items()}
        return dict(sorted(changes.items(), key=lambda change: "." in change[0]))


def _register(task: str, entry: TrainCommand) -> Callable[..., None]:
    """Make a command of an entry, with the options that all tasks have around its own."""
    files = Annotated[list[str] | None, option(entry.data, metavar="FILE…")]
    before = [parameter("out", Out), parameter("data", files, None)]
    before += [parameter("valid", Valid, None)] if entry.valid else []
    after = parameters_of(CommonOptions)

    def command(*, out: Path, data: list[str] | None, valid: list[str] | None = None, **values: Any) -> None:
        from .train_command import launch  # torch comes in here

        common = CommonOptions(**{each.name: values.pop(each.name) for each in after})
        overrides = partial(RESOLVE.get(task, dict), entry.settings(values))
        files = {"data": data, "valid": valid}
        launch(task, out, common, overrides, **files, required=entry.required, default_model=entry.default_model)

    with_signature(command, [*before, *entry.parameters(), *after], "\n".join(entry.help))
    app.command(task, cls=ManyFiles, epilog=f"Example: {entry.example}")(command)
    return command


FAMILY = "family"  # not a setting: with the preset it chooses the model


def _choose_translator(settings: Overrides) -> Overrides:
    """--preset names a size, --model a family (its usual size unless a preset of it is given)."""
    from ..families.registry import family_of, presets
    from ..tasks.translation.task import PRESET

    preset, family = settings["model"], settings.pop(FAMILY)
    if family is not None:
        sizes = family_of(family).presets
        if preset is not None and preset not in sizes:
            raise ConfigError(f"--preset {preset} is not of --model {family}, which has: {', '.join(sizes)}")
        preset = preset or (PRESET if PRESET in sizes else next(iter(sizes)))
    if preset is not None and preset not in presets():
        raise ConfigError(f"--preset: {unknown('preset', preset, presets())}")
    return {**settings, "model": preset}


def _choose_tokens(settings: Overrides) -> Overrides:
    """A context is the model's length, and no longer what a run said before; --characters is a kind of tokenizer."""
    context = settings["model.max_length"]
    kind = "characters" if settings["tokenizer.kind"] else None
    return {**settings, "context": None if context is None else RESET, "tokenizer.kind": kind}


def _split_series(settings: Overrides) -> Overrides:
    series = settings["data.series"]
    return {**settings, "data.series": None if series is None else [name.strip() for name in series.split(",")]}


# Where an option has a say in several settings, or is not the setting itself.
RESOLVE: dict[str, Callable[[Overrides], Overrides]] = {
    "translation": _choose_translator,
    "language_model": _choose_tokens,
    "forecasting": _split_series,
}
TASKS: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
COMMANDS = {task: _register(task, TrainCommand(**entry)) for task, entry in TASKS.items()}
