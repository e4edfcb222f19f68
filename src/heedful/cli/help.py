"""Help pages that show a flag as what it is: a word without a value."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup


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
    """A verb."""


class Group(_PlainFlags, TyperGroup):
    """Several verbs."""
