"""Console output of all commands, and the classes of commands.

Text is printed literally: it has no markup, and control characters are replaced.
"""

import re
from itertools import pairwise
from typing import Any

from rich.console import Console
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from ..errors import RENAMED_TASKS, ConfigError, unknown

console = Console(highlight=False)
errors = Console(stderr=True, highlight=False)

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
RENAMED_OPTIONS = {"--from": ("--source", "--init-from"), "--to": ("--target",), "--lang": ("--language",)}


def plain(text: str, style: str = "") -> Text:
    """Return text for a table or a line, without characters that move the cursor or change the direction."""
    return Text(_CONTROL.sub("\ufffd", text), style=style)


def say(text: str, style: str = "") -> None:
    """Print a line without wrapping it."""
    console.print(plain(text, style), soft_wrap=True)


def warn(text: str, style: str = "yellow") -> None:
    """Print one line of warning to standard error."""
    errors.print(plain(" ".join(text.split("\n")), style), soft_wrap=True)


def complain(text: str) -> None:
    """Print one line about an error to standard error."""
    warn(text, "red")


def seconds(count: float) -> str:
    """Format a duration: 8 s, 3:05, 2:00:10."""
    if count < 60:
        return f"{count:.0f} s"
    minutes, rest = divmod(round(count), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class _PlainFlags:
    """A mixin that removes the `<bool>` which typer would show for flags in the help."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]  # of the class this is mixed into
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class Command(_PlainFlags, TyperCommand):
    """A command that reports the new name where an option or a task is given by its old one."""

    def __init__(self, *args: Any, help: str | None = None, **options: Any) -> None:  # noqa: A002  (typer's name)
        paragraphs = [" ".join(paragraph.split()) for paragraph in (help or "").split("\n\n")]
        super().__init__(*args, help="\n\n".join(paragraphs), **options)

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


class CommandGroup(_PlainFlags, TyperGroup):
    """A group of commands, with the same errors for tasks."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in RENAMED_TASKS:
            raise ConfigError(unknown("task", args[0], self.list_commands(ctx)))
        return super().resolve_command(ctx, args)
