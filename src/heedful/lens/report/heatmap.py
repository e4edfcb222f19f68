"""Attention as SVG: words on both axes, a cell for each weight, and every head as a small map beside the others.

Shapes: H heads, T target words, S source words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len

from ...errors import PictureError
from ..terminal import fit
from .data import AttentionMap
from .markup import Html, join, tag
from .palette import LEVELS, level_of
from .words import Words, number

Map = list[list[float]]  # (T, S)
LETTER = 7.4  # the width of one column of text; Hangul takes two
LONGEST_WORD = 18  # columns
SLANT = math.sqrt(0.5)


def attention_figure(given: AttentionMap, words: Words, *, heads: bool = True) -> Html:
    """One large map with its words; for several heads that is their mean, and below it the `heads` themselves."""
    maps = weights_of(given)
    mean = [[sum(cells) / len(maps) for cells in zip(*rows, strict=True)] for rows in zip(*maps, strict=True)]
    cell = max(14.0, min(28.0, 560 / max(len(given.source), len(given.target))))
    top = _top([mean])
    several = tag("span", words("mean_of_heads", n=len(maps)), class_="key") if len(maps) > 1 else None
    caption = tag("figcaption", tag("b", given.title, dir="auto"), several, _scale(top, words))
    figure = tag("figure", caption, tag("div", _labelled(mean, given, cell, top), class_="scroll"))
    return figure if len(maps) == 1 or not heads else join(figure, _heads(maps, given, words))


def share_figure(title: str, labels: Sequence[str], counts: Sequence[Sequence[int]]) -> Html:
    """Counts as a map: a cell is the share of its row."""
    shares = [[count / max(1, sum(row)) for count in row] for row in counts]
    given = AttentionMap(title, labels, labels, shares)
    cell = max(14.0, min(34.0, 480 / max(1, len(labels))))
    return tag(
        "figure",
        tag("figcaption", tag("b", title)),
        tag("div", _labelled(shares, given, cell, 1.0), class_="scroll"),
    )


def weights_of(given: AttentionMap) -> list[Map]:
    """The maps as lists, one for each head, after a look at their shape and values."""
    values: Any = given.weights.tolist() if hasattr(given.weights, "tolist") else given.weights
    axes = _axes(values)
    maps: list[Map] = [values] if axes == 2 else list(values) if axes == 3 else []
    n_rows, n_columns = len(given.target), len(given.source)
    if not maps or not all(len(one) == n_rows and all(len(row) == n_columns for row in one) for one in maps):
        raise PictureError(
            f"the attention map {given.title!r} names {n_rows} target and {n_columns} source words; "
            "its weights must be (T, S), or (H, T, S) for several heads, and none of them 0"
        )
    if given.heads is not None and len(given.heads) != len(maps):
        raise PictureError(f"the attention map {given.title!r} names {len(given.heads)} heads and has {len(maps)}")
    if not all(0 <= weight <= 1.01 for one in maps for row in one for weight in row):  # rounding may pass 1
        raise PictureError(f"the attention map {given.title!r} holds weights outside 0 to 1; were they scores?")
    return maps


def _axes(values: Any) -> int:
    """How deep the lists go; an empty one has no bottom."""
    if not isinstance(values, list | tuple):
        return 0
    return 1 + _axes(values[0]) if values else -9


def n_cells(given: AttentionMap) -> tuple[int, int]:
    """How many cells the large map has, and all the small ones together."""
    maps = weights_of(given)
    large = len(given.target) * len(given.source)
    return large, large * len(maps) if len(maps) > 1 else 0


def _labelled(values: Map, given: AttentionMap, cell: float, top: float) -> Html:
    """The cells with target words at their left and source words slanting above."""
    rows, columns = [_short(word) for word in given.target], [_short(word) for word in given.source]
    left = 10 + LETTER * max(map(cell_len, rows))
    above = 14 + LETTER * SLANT * max(map(cell_len, columns))
    reach = max(cell * place + LETTER * SLANT * cell_len(word) for place, word in enumerate(columns))
    width, height = left + max(cell * len(columns), reach + cell), above + cell * len(rows)
    beside = [
        tag("text", word, class_="word", x=_at(left - 6), y=_at(above + cell * (place + 0.5) + 4.5), text_anchor="end")
        for place, word in enumerate(rows)
    ]
    over = [
        tag(
            "text",
            word,
            class_="word",
            transform=f"translate({_at(left + cell * (place + 0.6))} {_at(above - 6)}) rotate(-45)",
        )
        for place, word in enumerate(columns)
    ]
    cells = tag("g", _cells(values, given, top), transform=f"translate({_at(left)} {_at(above)}) scale({_at(cell)})")
    return _svg(f"{given.title}: {_strongest(values, given)}", width, height, *beside, *over, cells)


def _heads(maps: list[Map], given: AttentionMap, words: Words) -> Html:
    """Small maps without words, whose cells name them, on one scale."""
    top = _top(maps)
    cell = max(4.0, min(12.0, 150 / max(len(given.source), len(given.target))))
    names = given.heads if given.heads is not None else range(len(maps))
    figures = []
    for values, title in zip(maps, names, strict=True):
        name = words("head", name=title) if given.heads is None else str(title)
        cells = tag("g", _cells(values, given, top), transform=f"scale({_at(cell)})")
        label = f"{name}: {_strongest(values, given)}"
        drawing = _svg(label, cell * len(given.source), cell * len(given.target), cells)
        figures.append(tag("figure", tag("figcaption", name), drawing))
    return join(tag("p", _scale(top, words), class_="soft"), tag("div", *figures, class_="heads"))


def _top(maps: list[Map]) -> float:
    return max(max(map(max, one)) for one in maps) or 1.0


def _cells(values: Map, given: AttentionMap, top: float) -> Html:
    """Unit squares; what is next to nothing is left to the ground."""
    ground = tag("rect", class_="ground", width=len(given.source), height=len(given.target))
    drawn = (
        tag(
            "rect",
            tag("title", f"{_short(target)} ← {_short(source)}: {weight:.2f}"),
            class_=f"h{level}",
            x=x,
            y=y,
            width=1,
            height=1,
        )
        for y, (target, row) in enumerate(zip(given.target, values, strict=True))
        for x, (source, weight) in enumerate(zip(given.source, row, strict=True))
        if (level := level_of(weight / top))
    )
    return join(ground, *drawn)


def _strongest(values: Map, given: AttentionMap) -> str:
    """In words, for those who cannot see it: where each target word looks most."""
    pairs = ((target, given.source[row.index(max(row))]) for target, row in zip(given.target, values, strict=True))
    return ", ".join(f"{_short(target)} ← {_short(source)}" for target, source in pairs)


def _scale(top: float, words: Words) -> Html:
    """What the colours mean."""
    steps = (tag("rect", class_=f"h{level}", x=level * 5, width=5, height=8) for level in range(LEVELS))
    bar = tag("svg", *steps, width=LEVELS * 5, height=8, aria_hidden="true")
    return tag("span", f"{words('weight')} 0 ", bar, number(round(top, 2)), class_="key scale")


def _svg(label: str, width: float, height: float, *content: Html) -> Html:
    size = {"width": _at(width), "height": _at(height), "viewBox": f"0 0 {_at(width)} {_at(height)}"}
    return tag("svg", *content, role="img", aria_label=label, **size)


def _short(word: str) -> str:
    return fit(word, min(cell_len(word), LONGEST_WORD))


def _at(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
