"""What was read and what was dropped: whatever a reader tells, each kind of value in its own form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .charts import Bar, bar_table
from .markup import Html, join, tag
from .tables import facts, table
from .words import Words, number

MOST_ROWS = 40
Tally = tuple[int, Sequence[str]]


def reading(given: Mapping[str, Any] | None, words: Words) -> Html | None:
    """Single values first, then under a heading each: counts by reason as bars, everything else as tables."""
    if not given:
        return None
    single = [(key, value) for key, value in given.items() if not _is_group(value)]
    groups = [(key, value) for key, value in given.items() if _is_group(value) and value]
    return join(
        facts(single, words), *(join(tag("h3", words.name(key)), _group(value, words)) for key, value in groups)
    )


def _is_group(value: object) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, list | tuple) and any(isinstance(v, Mapping) for v in value)
    )


def _group(group: Any, words: Words) -> Html:
    if not isinstance(group, Mapping):
        return _rows([dict(row) for row in group], words)
    tallies = {name: tally for name, value in group.items() if (tally := _tally(value))}
    if len(tallies) == len(group):
        return _bars(tallies, words)
    inner = [value if isinstance(value, Mapping) else {"": value} for value in group.values()]
    return _rows([{"": words.name(name), **row} for name, row in zip(group, inner, strict=True)], words)


def _tally(value: Any) -> Tally | None:
    """A count and the first places of it, if it is one: 12, or {"count": 12, "first": ["a.tsv:3", …]}."""
    count, places = (value.get("count"), value.get("first", ())) if isinstance(value, Mapping) else (value, ())
    return (count, places) if isinstance(count, int) and count >= 0 else None


def _bars(tallies: Mapping[str, Tally], words: Words) -> Html:
    """Each count as its share of them all."""
    total = sum(count for count, _ in tallies.values()) or 1
    bars = []
    for name, (count, places) in tallies.items():
        note = words("first_at", places=", ".join(map(str, places))) if places else ""
        bars.append(Bar(words.name(name), count / total, number(count), note))
    return bar_table((words("reason"), words("count")), bars)


def _rows(rows: Sequence[Mapping[str, Any]], words: Words) -> Html:
    """Under the keys of the rows, in the order of their coming."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    shown = [[words.value(row.get(key)) for key in keys] for row in rows[:MOST_ROWS]]
    note = words("out_of", shown=number(MOST_ROWS), total=number(len(rows))) if len(rows) > MOST_ROWS else None
    return join(table([words.name(key) for key in keys], shown, numbers=1), note and tag("p", note, class_="soft"))
