"""Attention maps and curves as terminal text, aligned in columns, with or without color.

Every shade is a character of its own, so a terminal without color shows the same map. Hangul and other
wide characters take two columns; widths are counted in columns, never in characters.
"""

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import pairwise

import torch
from rich.cells import cell_len
from rich.text import Text
from torch import Tensor

from ..errors import PictureError

SHADES = " ░▒▓█"
COLORS = ("", "blue", "cyan", "green", "yellow")  # of the terminal's own theme, from little to much
EDGES = (0.05, 0.25, 0.5, 0.75)  # of the strongest weight: where the next shade begins
BARS = "▁▂▃▄▅▆▇█"
NOT_A_NUMBER = "!"
NARROWEST = 12  # columns: a label, a gap and a few cells
WIDEST_COLUMN = 10
GAP = "  "
# Terminals disagree on how wide these make the character before them.
UNSETTLED = re.compile("[\u200d\ufe00-\ufe0f\U0001f3fb-\U0001f3ff]")


def attention_text(
    weights: Tensor,
    targets: Sequence[str],
    sources: Sequence[str],
    *,
    width: int = 80,
    title: str = "",
    brightest: float | None = None,
) -> Text:
    """Render weights (T, S) as text of at most `width` columns, target words in rows.

    Sources that do not fit stand in a further panel below; labels that do not fit end in "…".
    `brightest` is the weight of the darkest shade: the largest there is, unless given.
    """
    values = _checked(weights, targets, sources, width)
    top = brightest or max(map(max, values)) or 1.0
    names = [readable(word) for word in targets]
    margin = min(max(map(cell_len, names)), max(4, width // 3))
    lines = [Text(fit(readable(title), width), style="bold")] if title else []
    for panel in _panels([readable(word) for word in sources], width - margin):
        lines += [Text()] if lines else []
        header = "".join(GAP + fit(label, columns) for _, label, columns in panel)
        lines.append(Text(" " * margin + header))
        for name, row in zip(names, values, strict=True):
            line = Text(fit(name, margin))
            for place, _, columns in panel:
                level = sum(row[place] / top >= edge for edge in EDGES)
                line.append(GAP).append(SHADES[level] * columns, style=COLORS[level])
            lines.append(line)
    legend = _legend(top)
    lines += [Text(), legend] if legend.cell_len <= width else []
    return Text("\n", no_wrap=True, overflow="crop").join(lines)


def sparkline(values: Sequence[float], width: int = 40) -> str:
    """Render values as one line of bars of at most `width` columns; more values are averaged in groups.

    What is not a finite number is shown as "!".
    """
    if width < 1:
        raise PictureError(f"a line needs at least 1 column, got {width}")
    bars = min(width, len(values))
    cuts = [len(values) * place // max(1, bars) for place in range(bars + 1)]
    means = [sum(values[first:last]) / (last - first) for first, last in pairwise(cuts)]
    finite = [mean for mean in means if math.isfinite(mean)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    step = (high - low) / (len(BARS) - 1) or 1.0
    return "".join(BARS[round((mean - low) / step)] if math.isfinite(mean) else NOT_A_NUMBER for mean in means)


def readable(label: str) -> str:
    """Return a label of the same width in every terminal: composed letters, escapes for invisible characters."""
    composed = UNSETTLED.sub("", unicodedata.normalize("NFC", label))
    text = "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in composed)
    return f"◌{text}" if text and not cell_len(text[0]) else text  # a mark with no letter to stand on


def fit(text: str, columns: int) -> str:
    """Pad the text with spaces, or cut it with "…", to exactly this many columns."""
    if cell_len(text) <= columns:
        return text + " " * (columns - cell_len(text))
    end = 0
    while cell_len(text[: end + 1]) < columns:
        end += 1
    cut = text[:end] + "…"[:columns]
    return cut + " " * (columns - cell_len(cut))


def _panels(labels: list[str], room: int) -> Iterator[list[tuple[int, str, int]]]:
    """Yield groups of sources that fit side by side, each source with its index, label and width."""
    panel: list[tuple[int, str, int]] = []
    used = 0
    for place, label in enumerate(labels):
        columns = min(max(2, cell_len(label)), WIDEST_COLUMN, room - len(GAP))
        if panel and used + len(GAP) + columns > room:
            yield panel
            panel, used = [], 0
        panel.append((place, label, columns))
        used += len(GAP) + columns
    yield panel


def _legend(top: float) -> Text:
    """Return the legend: the smallest weight of each shade."""
    legend = Text()
    for level, edge in enumerate(EDGES, start=1):
        legend.append(GAP if level > 1 else "").append(SHADES[level] * 2, style=COLORS[level])
        legend.append(f" ≥{edge * top:.2g}")
    return legend


def _checked(weights: Tensor, targets: Sequence[str], sources: Sequence[str], width: int) -> list[list[float]]:
    if width < NARROWEST:
        raise PictureError(f"an attention map needs at least {NARROWEST} columns, got {width}")
    values = torch.as_tensor(weights).detach().to("cpu", torch.float64)
    if values.shape != (len(targets), len(sources)) or not values.numel():
        raise PictureError(
            f"the weights must be (targets, sources), {len(targets)} × {len(sources)} and neither 0; "
            f"got {tuple(values.shape)}"
        )
    if not bool(((values >= 0) & (values <= 1.01)).all()):  # rounding may lift a weight a little above 1
        raise PictureError("attention weights are numbers from 0 to 1; were these scores?")
    return values.tolist()
