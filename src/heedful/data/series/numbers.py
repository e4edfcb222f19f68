"""The cells of a table of series: a number, or nothing."""

from __future__ import annotations

import math

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "-", "?", "."})


def number(cell: str) -> float:
    """A cell's number, NaN where it holds none. A ValueError says in words what it holds otherwise."""
    text = cell.strip()
    if text.casefold() in MISSING:
        return math.nan
    try:
        found = float(text) if "_" not in text else math.nan  # Python would read 1_000
    except ValueError:
        found = math.nan
    if math.isnan(found):
        if "," in text:
            raise ValueError(f"{text!r:.100}, with a comma; write numbers as 1234.5")
        raise ValueError(f"{text!r:.100}, which is not a number")
    if math.isinf(found):
        raise ValueError(f"{text!r:.100}, which is infinite; leave a cell empty where nothing was observed")
    return found
