"""What every command prints with, and the classes that format help.

Text is shown as it is: brackets are no markup, control characters do nothing.
"""

import re
from typing import Any

from rich.console import Console
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

console = Console(highlight=False)
errors = Console(stderr=True, highlight=False)

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def plain(text: str, style: str = "") -> Text:
    """A text for a table or a line; what would move the cursor or turn the writing round becomes �."""
    return Text(_CONTROL.sub("\ufffd", text), style=style)


def say(text: str, style: str = "") -> None:
    """Print a line, however long it is."""
    console.print(plain(text, style), soft_wrap=True)


def warn(text: str, style: str = "yellow") -> None:
    """Print one line about something to know, beside the output."""
    errors.print(plain(" ".join(text.split("\n")), style), soft_wrap=True)


def complain(text: str) -> None:
    """Print one line about something wrong, beside the output."""
    warn(text, "red")


def seconds(count: float) -> str:
    """A time as people say it: 8 s, 3:05, 2:00:10."""
    if count < 60:
        return f"{count:.0f} s"
    minutes, rest = divmod(round(count), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class _PlainFlags:
    """For commands and groups of them: typer would write `<bool>` behind every flag, --help among them."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options and arguments, flags without the name of a type."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]  # of the class this is mixed into
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class Command(_PlainFlags, TyperCommand):
    """A command whose help shows a flag as what it is: an option without a value."""


class CommandGroup(_PlainFlags, TyperGroup):
    """A command that has commands, with the same help."""
