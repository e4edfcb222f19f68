"""Colours: a ramp for weights that is read by lightness alone, and a few hues that colour-blind eyes tell apart.

In a light page the ramp goes from paper to dark, in a dark one from the ground to light, so that little
is always quiet and much is always loud.
"""

from __future__ import annotations

LEVELS = 20
ON_LIGHT = ("#f3f3ec", "#cfe5b4", "#7cc8a4", "#2f9396", "#31688e", "#3b3375", "#2d0a4e")
ON_DARK = ("#20232a", "#373466", "#3b528b", "#21918c", "#4cc26c", "#b5de2b", "#fde725")
LINES_ON_LIGHT = ("#0067a5", "#c2570c", "#00856a", "#a84f86", "#7a6a12", "#3f88b8")
LINES_ON_DARK = ("#5eb3f0", "#f2944e", "#3ecfa4", "#e08cc0", "#d8c23f", "#9bd0f5")
DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 4", "10 4")  # for eyes and printers without colour
ABOVE_ZERO, BELOW_ZERO = (0x1F, 0x7F, 0xC4), (0xDB, 0x62, 0x0A)


def ramp(stops: tuple[str, ...], levels: int = LEVELS) -> list[str]:
    """So many colours from the first stop to the last."""
    rgb = [tuple(int(stop[place : place + 2], 16) for place in (1, 3, 5)) for stop in stops]
    colours = []
    for level in range(levels):
        way = level * (len(stops) - 1) / (levels - 1)
        before = min(int(way), len(stops) - 2)
        mixed = (a + (b - a) * (way - before) for a, b in zip(rgb[before], rgb[before + 1], strict=True))
        colours.append("#" + "".join(f"{round(part):02x}" for part in mixed))
    return colours


def level_of(share: float) -> int:
    """The colour of a share from 0 to 1 of the strongest."""
    return min(LEVELS - 1, max(0, round(share * (LEVELS - 1))))


def variables(stops: tuple[str, ...], lines: tuple[str, ...]) -> str:
    """The colours as CSS variables."""
    named = [*((f"h{n}", colour) for n, colour in enumerate(ramp(stops))), *((f"c{n}", c) for n, c in enumerate(lines))]
    return "".join(f"--{name}:{colour};" for name, colour in named)


def classes() -> str:
    """A class for each colour of the ramp and each line."""
    cells = "".join(f".h{n}{{fill:var(--h{n})}}" for n in range(LEVELS))
    dashes = (f"stroke-dasharray:{dash}" if dash else "" for dash in DASHES)
    lines = (f".c{n}{{--hue:var(--c{n})}}.line.c{n}{{{dash}}}" for n, dash in enumerate(dashes))
    return cells + "".join(lines)
