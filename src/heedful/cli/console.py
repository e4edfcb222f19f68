"""Console output of all commands, and the classes of commands.

Text is printed literally: it has no markup, and control characters are replaced. Sentences are translated.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.text import Text
from typer import BadParameter
from typer.core import TyperCommand, TyperGroup

from ..errors import RENAMED_TASKS, ConfigError, unknown
from .language import translate

console = Console(highlight=False)
errors = Console(stderr=True, highlight=False)

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
RENAMED_COMMANDS = {"tour": "learn"}
RENAMED_OPTIONS = {"--from": ("--source", "--init-from"), "--to": ("--target",), "--lang": ("--language",)}


def plain(text: str, style: str = "") -> Text:
    """Return text for a table or a line, without characters that move the cursor or change the direction."""
    return Text(_CONTROL.sub("\ufffd", text), style=style)


def _rstrip_end(text: Text, size: int) -> None:
    """Remove white space beyond this many columns; rich counts characters, and so cuts the end of Korean lines."""
    excess = cell_len(text.plain) - size
    blanks = len(text.plain) - len(text.plain.rstrip())
    if excess > 0:
        text.right_crop(min(excess, blanks))


Text.rstrip_end = _rstrip_end  # type: ignore[assignment, method-assign]


def say(text: str, style: str = "") -> None:
    """Print a sentence in the language of the terminal, on one line without wrapping it."""
    echo(translate(text), style)


def echo(text: str, style: str = "") -> None:
    """Print a line as it is: text that is not Heedful's."""
    console.print(plain(text, style), soft_wrap=True)


def warn(text: str, style: str = "yellow") -> None:
    """Print one line of warning to standard error, in the language of the terminal."""
    errors.print(plain(translate(" ".join(text.split("\n"))), style), soft_wrap=True)


def complain(text: str) -> None:
    """Print one line about an error to standard error, in the language of the terminal."""
    warn(text, "red")


def seconds(count: float) -> str:
    """Format a duration: 8 s, 3:05, 2:00:10."""
    if count < 60:
        return f"{count:.0f} s"
    minutes, rest = divmod(round(count), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


UsageError: Any = BadParameter.__mro__[1]  # typer does not export it
TYPER_TEXTS = {
    "ARGUMENTS_PANEL_TITLE": "Arguments",
    "OPTIONS_PANEL_TITLE": "Options",
    "COMMANDS_PANEL_TITLE": "Commands",
    "ERRORS_PANEL_TITLE": "Error",
    "DEFAULT_STRING": "[default: {}]",
    "REQUIRED_LONG_STRING": "[required]",
    "RICH_HELP": "Try [blue]'{command_path} {help_option}'[/] for help.",
}


def translate_typer() -> None:
    """Translate what typer itself prints in the help and in errors."""
    from typer import rich_utils

    for name, text in TYPER_TEXTS.items():
        setattr(rich_utils, name, translate(text))


@contextmanager
def _translated_errors() -> Iterator[None]:
    """Translate the message of an error that typer prints: one of wrong use."""
    try:
        yield
    except UsageError as error:
        error.format_message = partial(translate, error.format_message())
        raise


class _Localized:
    """A mixin that translates the help and prints it literally, without the `<bool>` that typer shows for flags."""

    def __init__(self, *args: Any, **options: Any) -> None:
        for name in ("help", "epilog"):
            paragraphs = [" ".join(paragraph.split()) for paragraph in (options.get(name) or "").split("\n\n")]
            options[name] = escape("\n\n".join(map(translate, paragraphs)))
        super().__init__(*args, **options)

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]  # of the class this is mixed into
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
            if text := getattr(param, "help", None):
                param.help = escape(translate(text))
            if panel := getattr(param, "rich_help_panel", None):
                param.rich_help_panel = translate(panel)
        return params

    def get_usage(self, ctx: Any) -> str:
        usage: str = super().get_usage(ctx)  # type: ignore[misc]
        return usage.replace("Usage:", translate("Usage:"), 1)


class Command(_Localized, TyperCommand):
    """A command that reports the new name where an option or a task is given by its old one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        options = {flag for param in self.params for flag in param.opts}
        before = args[: args.index("--")] if "--" in args else args
        for name, value in pairwise([*before, ""]):
            name, _, inline = name.partition("=")
            current = [flag for flag in RENAMED_OPTIONS.get(name, ()) if flag in options]
            if current and name not in options:
                raise ConfigError(f"the option {name} is now {current[0]}")
            if name == "--task" and (task := RENAMED_TASKS.get(inline or value)):
                raise ConfigError(f"the task {inline or value} is now {task}")
        return super().parse_args(ctx, args)


class CommandGroup(_Localized, TyperGroup):
    """A group of commands, with the same errors for tasks and commands."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        with _translated_errors():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        with _translated_errors():
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if (now := RENAMED_COMMANDS.get(args[0])) and now in self.commands:
            raise ConfigError(f"the command {args[0]} is now {now}")
        if args[0] in RENAMED_TASKS:
            raise ConfigError(unknown("task", args[0], self.list_commands(ctx)))
        return super().resolve_command(ctx, args)
