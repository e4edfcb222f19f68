"""Names with their values, and tables."""

from __future__ import annotations

from collections.abc import Sequence

from .markup import Html, tag
from .words import Words

LONGEST_LOUD_WORD = 24  # characters


def facts(given: Sequence[tuple[str, object]], words: Words) -> Html | None:
    """Names and values, side by side; a hash or a path is set small."""
    pairs = []
    for name, value in given:
        text = words.value(value)
        style = "mono" if max(map(len, text.split()), default=0) > LONGEST_LOUD_WORD else None
        pairs.append(tag("div", tag("dt", words.name(name)), tag("dd", text, dir="auto", class_=style)))
    return tag("dl", *pairs, class_="facts") if pairs else None


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: int) -> Html:
    """A table whose columns from `numbers` on are set to the right."""

    def cell(place: int, text: str) -> Html:
        if place == 0:
            return tag("th", text, scope="row", dir="auto")
        return tag("td", text, dir="auto", class_="number" if place >= numbers else None)

    head = (tag("th", text, scope="col", class_="number" if n >= numbers else None) for n, text in enumerate(headings))
    body = (tag("tr", *(cell(place, text) for place, text in enumerate(row))) for row in rows)
    return tag("div", tag("table", tag("thead", tag("tr", *head)), tag("tbody", *body)), class_="scroll")
