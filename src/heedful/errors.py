"""Exceptions for mistakes that a user can correct.

A message says what was wrong, what was given, what is allowed, and suggests the nearest name if there is one.
"""

from collections.abc import Iterable
from difflib import get_close_matches

RENAMED_TASKS = {"language_model": "language-model", "masked": "masked-lm"}


MAX_MESSAGE = 4000  # characters


class HeedfulError(Exception):
    """The base of all errors that Heedful raises on purpose; the shell prints them without a traceback.

    A message may quote what a file holds, so a very long one is cut inside.
    """

    def __init__(self, message: object = "") -> None:
        text = str(message)
        if len(text) > MAX_MESSAGE:
            text = f"{text[: MAX_MESSAGE // 2]} … {text[-MAX_MESSAGE // 2 :]}"
        super().__init__(text)


class ConfigError(HeedfulError, ValueError):
    """An invalid configuration: an unknown key, a wrong type, or values that do not fit together."""


class MissingDependencyError(HeedfulError, ImportError):
    """A package that must be installed first; the message says how."""


class DataError(HeedfulError, ValueError):
    """Input that cannot be used; the message names the file, the line and the remedy."""


class GenerationError(HeedfulError, RuntimeError):
    """A model that cannot generate; the message has the reason."""


class NonFiniteOutputError(HeedfulError, ArithmeticError):
    """A model whose output is NaN or inf; its weights or its precision are at fault, not the input."""

    def __init__(self, what: str = "the output of the model") -> None:
        super().__init__(
            f"{what} is NaN or inf, so there is no answer; the weights are damaged, or too large for the precision"
        )


class RecordingError(HeedfulError, RuntimeError):
    """Attention that cannot be recorded; the message has the reason."""


class PictureError(HeedfulError, ValueError):
    """A picture that cannot be drawn from the given data."""


def unknown(what: str, name: object, allowed: Iterable[str]) -> str:
    """Return an error message for a name that is not allowed, with its new name or the nearest allowed one."""
    names = sorted(allowed)
    if (renamed := RENAMED_TASKS.get(str(name))) in names:
        return f"the {what} {name} is now {renamed}"
    near = get_close_matches(str(name), names, n=1, cutoff=0.6)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"unknown {what} {name!r}{hint}; allowed: {', '.join(names)}"
