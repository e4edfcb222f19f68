"""Figures of positional encodings and attention, as matplotlib figures and as files.

Shapes: T positions, D dimensions, H heads, Tq queries, Tk keys. Sizes are inches. Figures are made
without pyplot, so nothing global changes and no screen is needed.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..errors import MissingDependencyError, PictureError, unknown
from .page.rendering import LANGUAGES, catalog

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WAVES = ("#440154", "#31688e", "#1f9e89", "#7a9a01")  # viridis, its yellow darkened
LONGEST_LABEL = 32  # characters; a longer one is cut
POINT = 1 / 72
BASE = "DejaVu Sans"  # comes with matplotlib
KOREAN = ["NanumGothic", "Noto Sans KR", "Noto Sans CJK KR", "Malgun Gothic"]
KOREAN += ["Apple SD Gothic Neo", "AppleGothic", "Noto Sans CJK JP", "UnDotum"]


def positional_map(table: Tensor, *, title: str | None = None, language: str = "en") -> Figure:
    """Draw a table of positional encodings (T, D) as a map: `positional_map(Sinusoidal(128).table(100))`."""
    values = _numbers(table, "a positional table", "T", "D")
    messages = _messages(language, positions=title)
    lettering = Lettering(messages.values())
    limit = abs(values).max() or 1.0
    figure, frame, (panel,) = _panels(width=7.5, height=5.0)
    image = panel.imshow(values, cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto", interpolation="nearest")
    panel.locator_params(integer=True)
    panel.set_xlabel(messages["dimension"], **lettering.style)
    panel.set_ylabel(messages["position"], **lettering.style)
    _color_bar(figure, frame, image, messages["value"], lettering)
    return _finished(figure, frame, messages["positions"], lettering)


def positional_waves(
    table: Tensor,
    dimensions: Sequence[int] | None = None,
    *,
    title: str | None = None,
    language: str = "en",
) -> Figure:
    """Draw a few dimensions of a table (T, D) as curves over the positions: 0, 10, 50 and 100 by default."""
    values = _numbers(table, "a positional table", "T", "D")
    length, width = values.shape
    if dimensions is None:
        dimensions = [dimension for dimension in (0, 10, 50, 100) if dimension < width]
    if not dimensions or not all(0 <= dimension < width for dimension in dimensions):
        requested = ", ".join(map(str, dimensions)) or "no"
        raise PictureError(f"dimensions 0 to {width - 1} are in the table, but {requested} were asked for")
    messages = _messages(language, positions=title)
    lettering = Lettering(messages.values())
    limit = 1.1 * (abs(values[:, list(dimensions)]).max() or 1.0)
    figure, frame, panels = _panels(len(dimensions), width=7.5, height=1.1, gap=0.18)
    for place, (panel, dimension) in enumerate(zip(panels, dimensions, strict=True)):
        color = WAVES[place % len(WAVES)]
        panel.axhline(0, color="0.8", linewidth=0.8)
        panel.plot(values[:, dimension], color=color, linewidth=1.6)
        panel.set(xlim=(0, max(1, length - 1)), ylim=(-limit, limit))
        panel.spines[["top", "right", "bottom"]].set_visible(False)
        panel.tick_params(bottom=False, labelbottom=panel is panels[-1])
        name = f"{messages['dimension']} {dimension}"
        panel.text(1.02, 0.5, name, transform=panel.transAxes, va="center", color=color, size=11, **lettering.style)
    panels[-1].locator_params(axis="x", integer=True)
    panels[-1].set_xlabel(messages["position"], **lettering.style)
    frame.text(-0.06, 0.5, messages["value"], rotation=90, va="center", ha="right", **lettering.style)
    return _finished(figure, frame, messages["positions"], lettering)


def attention_map(
    weights: Tensor,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    *,
    brightest: float | None = None,
    title: str | None = None,
    language: str = "en",
) -> Figure:
    """Draw one head's weights (Tq, Tk), queries in rows; queries and keys without labels are numbered.

    `brightest` is the weight at the end of the colors: the largest there is, unless given; with 1.0
    several pictures compare.
    """
    values = _numbers(weights, "one head's weights", "Tq", "Tk")
    messages = _messages(language, attention=title)
    return _attention(values[None], [""], queries, keys, messages, cell=0.42, side=14.0, brightest=brightest)


def attention_heads(
    weights: Tensor,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    *,
    heads: Sequence[int] | None = None,
    brightest: float | None = None,
    title: str | None = None,
    language: str = "en",
) -> Figure:
    """Draw the weights of several heads (H, Tq, Tk) on one color scale; `heads` are their numbers if not 0 to H − 1."""
    values = _numbers(weights, "the weights of several heads", "H", "Tq", "Tk")
    messages = _messages(language, attention=title)
    names = [f"{messages['head']} {number}" for number in _labels(heads, len(values), "heads")]
    return _attention(values, names, queries, keys, messages, cell=0.28, side=4.5, brightest=brightest)


def save(figure: Figure, path: str | Path) -> Path:
    """Write the figure as PNG or SVG, by the suffix. The same figure gives the same bytes."""
    from matplotlib import rc_context

    path = Path(path)
    suffix = suffix_of(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.hashsalt": "heedful", "svg.fonttype": "path"}):
        figure.savefig(path, format=suffix[1:], dpi=figure.dpi, metadata={"Date": None})
    return path


def suffix_of(path: Path) -> str:
    """Return the suffix of a picture's name, .png or .svg."""
    suffix = path.suffix.lower()
    if suffix not in (".png", ".svg"):
        raise PictureError(f"a picture is written as .png or .svg, by the end of its name; got {path.name!r}")
    return suffix


def _attention(
    weights: Any,
    names: list[str],
    queries: Sequence[str] | None,
    keys: Sequence[str] | None,
    messages: dict[str, str],
    *,
    cell: float,
    side: float,
    brightest: float | None,
) -> Figure:
    """Draw a panel for each of the H maps, with square cells if wide enough; only the outer panels have labels."""
    low, high = weights.min(), weights.max()
    if low < 0 or high > 1.01:  # rounding may lift a weight a little above 1
        raise PictureError(f"attention weights lie between 0 and 1, got {low:.3g} to {high:.3g}; were they scores?")
    if brightest is not None and not brightest > 0:
        raise PictureError(f"brightest is a weight above 0, got {brightest}")
    n_heads, n_queries, n_keys = weights.shape
    rows, columns = _labels(queries, n_queries, "queries"), _labels(keys, n_keys, "keys")
    lettering = Lettering([*messages.values(), *names, *rows, *columns])
    cell = min(cell, side / max(n_queries, n_keys))
    width, height = max(1.2, cell * n_keys), max(1.2, cell * n_queries)
    n_columns = min(4, n_heads)
    top = brightest or high or 1.0
    figure, frame, panels = _panels(n_heads, n_columns, width=width, height=height, gap=0.35)
    for place, (panel, name, values) in enumerate(zip(panels, names, weights, strict=True)):
        image = panel.imshow(values, cmap="viridis", vmin=0, vmax=top, aspect="auto", interpolation="nearest")
        panel.set_title(name, size=10, pad=4, **lettering.style)
        panel.spines[:].set_visible(False)
        panel.tick_params(length=0, labelleft=place % n_columns == 0, labelbottom=place + n_columns >= n_heads)
        _label(panel.yaxis, rows, cell, lettering)
        _label(panel.xaxis, columns, cell, lettering, across=True)
    for panel in panels[::n_columns]:
        panel.set_ylabel(messages["query"], **lettering.style)
    for panel in panels[-n_columns:]:
        panel.set_xlabel(messages["key"], **lettering.style)
    _color_bar(figure, frame, image, messages["weight"], lettering, extend="max" if high > top else "neither")
    return _finished(figure, frame, messages["attention"], lettering)


def _label(axis: Any, labels: list[str], cell: float, lettering: Lettering, *, across: bool = False) -> None:
    """Set labels as large as the cells allow, long ones slanted; skip some where even small ones would touch."""
    size = min(10.0, max(5.5, 0.55 * cell / POINT))
    every = math.ceil(1.7 * size * POINT / cell)
    full = [lettering.write(label) for label in labels[::every]]
    texts = [text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1] + "…" for text in full]
    axis.set_ticks(range(0, len(labels), every), labels=texts, size=size, **lettering.style)
    if across and max(map(len, texts)) * size * POINT > every * cell:
        for text in axis.get_ticklabels():
            text.set(rotation=45, rotation_mode="anchor", ha="right")


def _panels(
    n: int = 1, n_columns: int = 1, *, width: float, height: float, gap: float = 0.0
) -> tuple[Figure, Axes, list[Axes]]:
    """Create a figure with n panels of one size, row by row, and an invisible frame around all of them."""
    from matplotlib.figure import Figure

    n_rows = math.ceil(n / n_columns)
    total = (n_columns * (width + gap) - gap, n_rows * (height + gap) - gap)
    figure = Figure(figsize=total, dpi=150)

    def place(column: int, row: int) -> tuple[float, float, float, float]:
        left, bottom = column * (width + gap), total[1] - height - row * (height + gap)
        return left / total[0], bottom / total[1], width / total[0], height / total[1]

    frame = figure.add_axes((0, 0, 1, 1))
    frame.set_axis_off()
    return figure, frame, [figure.add_axes(place(i % n_columns, i // n_columns)) for i in range(n)]


def _color_bar(
    figure: Figure, frame: Axes, image: Any, label: str, lettering: Lettering, *, extend: str = "neither"
) -> None:
    """Draw the color bar at the right of the frame, from its top, at most five inches long."""
    width, height = figure.get_size_inches()
    length = min(1.0, 5.0 / height)
    space = frame.inset_axes((1 + 0.15 / width, 1 - length, 0.14 / width, length))
    bar = figure.colorbar(image, cax=space, extend=extend)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize=9)
    bar.set_label(label, **lettering.style)


def _finished(figure: Figure, frame: Axes, title: str, lettering: Lettering) -> Figure:
    """Set the title and enlarge the figure around its panels until every label is inside."""
    named = any(panel.get_title() for panel in figure.axes)
    frame.set_title(lettering.write(title), loc="left", size=14, pad=26 if named else 10, **lettering.style)
    margin, old = 0.2, figure.get_size_inches()
    box = figure.get_tightbbox()
    new = (box.width + 2 * margin, box.height + 2 * margin)
    for axes in figure.axes:
        left, bottom, width, height = axes.get_position().bounds
        left, bottom = left * old[0] - box.x0 + margin, bottom * old[1] - box.y0 + margin
        axes.set_position((left / new[0], bottom / new[1], width * old[0] / new[0], height * old[1] / new[1]))
    figure.set_size_inches(new)
    return figure


def _numbers(data: Tensor, what: str, *axes: str) -> Any:
    """Convert a tensor to a float64 array after checking its shape and values."""
    values = torch.as_tensor(data).detach().to("cpu", torch.float64).numpy()
    shape = f"({', '.join(axes)})"
    if values.ndim != len(axes) or not values.size:
        more = "; draw one of them at a time, such as the first with [0]" if values.ndim > len(axes) else ""
        raise PictureError(f"{what} must be {shape}, none of them 0; got {values.shape}{more}")
    if not math.isfinite(abs(values).max()):
        raise PictureError(f"{what} {shape} must be finite numbers, got NaN or infinity among them")
    return values


def _labels(data: Sequence[Any] | None, n: int, name: str) -> list[str]:
    """Return the labels as texts, or numbers if there are none."""
    labels = [str(label) for label in (range(n) if data is None else data)]
    if len(labels) != n:
        raise PictureError(f"{len(labels)} {name} are named, but the weights have {n}")
    return labels


def _messages(language: str, **titles: str | None) -> dict[str, str]:
    if language not in LANGUAGES:
        raise PictureError(unknown("language", language, LANGUAGES))
    messages: dict[str, str] = catalog(language)["pictures"]
    return messages | {key: title for key, title in titles.items() if title is not None}


# Fonts: those that have the glyphs a figure needs, or an error that names a font to install.


class Lettering:
    """The fonts that one figure needs, and its texts with escapes for what they cannot show.

    Hangul without a font is an error. Any other character that no font holds, and what cannot be seen
    (a line break, a control character), is written as its escape: never an empty box.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        characters = {letter for text in texts for letter in _composed(text) if letter.isprintable()}
        self.families, self._undrawable = _cover(characters)
        if _hangul(self._undrawable):
            notice_new_fonts()
            self.families, self._undrawable = _cover(characters)
        if hangul := _hangul(self._undrawable):
            raise MissingDependencyError(
                f"no installed font can draw the Korean letters {''.join(hangul[:8])}. Install one: "
                "apt install fonts-nanum (Debian, Ubuntu), dnf install google-noto-sans-cjk-fonts (Fedora); "
                "macOS and Windows have one already. Or draw with language='en' and labels without Hangul"
            )

    @property
    def style(self) -> dict[str, Any]:
        """Return keyword arguments for every text: these fonts, and no math mode for dollar signs."""
        return {"fontfamily": self.families, "parse_math": False, "usetex": False}

    def write(self, text: str) -> str:
        """Return the text with escapes for characters that cannot be drawn."""
        is_drawn = {letter: letter.isprintable() and letter not in self._undrawable for letter in _composed(text)}
        escape = str.maketrans({x: x.encode("unicode_escape").decode() for x, drawn in is_drawn.items() if not drawn})
        return _composed(text).translate(escape)


def installed_families() -> list[str]:
    """Return the upright regular families that matplotlib has listed, good Korean ones first."""
    rank = {name: place for place, name in enumerate(KOREAN)}
    names = {
        entry.name
        for entry in _font_manager().fontManager.ttflist
        if entry.name in rank or (entry.style == "normal" and entry.weight in (400, "normal"))
    }
    # A last-resort font holds every character, each as a box.
    real = (name for name in names if not name.replace(" ", "").lstrip(".").startswith("LastResort"))
    return sorted(real, key=lambda name: (rank.get(name, len(rank)), name))


def notice_new_fonts() -> None:
    """Register fonts that were installed after matplotlib cached its font list."""
    manager = _font_manager()
    listed = {entry.fname for entry in manager.fontManager.ttflist}
    for path in sorted({entry.fname for entry in manager.FontManager().ttflist} - listed):
        manager.fontManager.addfont(path)


def drawable(family: str, characters: set[str]) -> set[str]:
    """Return the characters for which the family has a glyph."""
    manager = _font_manager()
    try:
        path = manager.findfont(manager.FontProperties(family=[family]), fallback_to_default=False)
    except ValueError:  # uninstalled since matplotlib made its list
        return set()
    font = manager.get_font(path)
    return {letter for letter in characters if font.get_char_index(ord(letter))}


def _font_manager() -> Any:
    """Import matplotlib's font manager, which every picture needs first."""
    try:
        from matplotlib import font_manager
    except ImportError as missing:
        raise MissingDependencyError("pictures need matplotlib; install it: pip install matplotlib") from missing
    return font_manager


def _cover(characters: set[str]) -> tuple[list[str], set[str]]:
    """Return as few families as needed to draw these characters, and the characters that none of them has."""
    families, missing = [BASE], characters - drawable(BASE, characters)
    for family in installed_families() if missing else ():
        if missing and (glyphs := drawable(family, missing)):
            families.append(family)
            missing -= glyphs
    return families, missing


def _hangul(letters: set[str]) -> list[str]:
    return sorted(letter for letter in letters if "HANGUL" in unicodedata.name(letter, ""))


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)  # a syllable typed as loose letters is drawn as one
