"""One family of errors, for mistakes a person can put right.

A message says what was wrong, what was given, what is allowed, and the nearest name where there is one.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class HeedfulError(Exception):
    """Anything Heedful refuses to do, said in words; the shell prints it without a traceback."""


class ConfigError(HeedfulError, ValueError):
    """A configuration that cannot be built: an unknown key, a wrong type, an impossible pair."""


class MissingDependencyError(HeedfulError, ImportError):
    """Something that must be installed first; the message says how."""


class DataError(HeedfulError, ValueError):
    """Input that cannot be used: which file, which line, what to do about it."""


class GenerationError(HeedfulError, RuntimeError):
    """A model that cannot generate, and why."""


class RecordingError(HeedfulError, RuntimeError):
    """Attention that cannot be looked at, and why."""


class PictureError(HeedfulError, ValueError):
    """A picture that cannot be drawn from what was given."""


def unknown(what: str, given: object, allowed: Iterable[str]) -> str:
    """A sentence for a name that is not one of those allowed."""
    names = sorted(allowed)
    near = get_close_matches(str(given), names, n=1, cutoff=0.6)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"unknown {what} {given!r}{hint}; allowed: {', '.join(names)}"
