"""JSON from a stranger: an object, no larger than it may be, no key twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ...errors import HeedfulError

MOST_BYTES = 8 * 2**20  # of a config; the largest published ones have a few hundred thousand
QUOTED = 60  # how many characters of a stranger's text a message repeats


class LayoutError(HeedfulError, ValueError):
    """A folder or a file that is not as Hugging Face's layout has it, or holds what is not read here."""


def read_object(path: Path, most_bytes: int = MOST_BYTES) -> dict[str, Any]:
    """A JSON file that holds an object."""
    try:
        with path.open("rb") as file:
            raw = file.read(most_bytes + 1)
    except OSError as error:
        raise LayoutError(f"{path} cannot be read: {error.strerror}") from None
    if len(raw) > most_bytes:
        raise LayoutError(f"{path} has more than the {most_bytes:,} bytes that such a file may have")
    try:
        return parse_object(raw)
    except ValueError as error:
        raise LayoutError(f"{path} {error}") from None


def parse_object(raw: bytes) -> dict[str, Any]:
    """The object that bytes hold, or a ValueError that goes on after the name of a file."""
    try:
        found = json.loads(raw.decode("utf-8"), object_pairs_hook=_once)
    except UnicodeDecodeError:
        raise ValueError("holds no JSON: it is no UTF-8") from None
    except RecursionError:
        raise ValueError("holds JSON that is nested too deeply to be read") from None
    except ValueError as error:
        raise ValueError(f"holds no JSON, or a damaged one: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"holds JSON, but not an object: {quoted(found)}")
    return found


def quoted(value: object) -> str:
    """A stranger's value for a message, not the whole of it where it is long."""
    text = repr(value)
    return text if len(text) <= QUOTED else f"{text[:QUOTED]}…"


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{quoted(name)} stands in it twice")
        found[name] = value
    return found
