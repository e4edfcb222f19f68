"""Positional encodings: the whole table as a small picture, and a few of its dimensions as waves.

The picture is a PNG inside the SVG. Its colours say the sign and its transparency the size, so zero is the
page's own ground, light or dark. Shapes: T positions, D dimensions.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Sequence
from typing import Any

from ...errors import PictureError
from .charts import Point, Series, line_chart
from .markup import Html, tag
from .palette import ABOVE_ZERO, BELOW_ZERO
from .words import Words

STEPS = 60  # of strength, on each side of zero
SHOWN = (100, 128)  # positions, dimensions; a larger table is cut to its first corner
WAVES = (0, 10, 50, 100)


def table_of(given: Any) -> list[list[float]]:
    """The table (T, D) as lists of finite numbers."""
    table = given.tolist() if hasattr(given, "tolist") else given
    if not table or not all(isinstance(row, Sequence) and len(row) == len(table[0]) and row for row in table):
        raise PictureError("a positional table must be (T, D), neither of them 0")
    if not all(isinstance(value, int | float) and math.isfinite(value) for row in table for value in row):
        raise PictureError("a positional table must be (T, D), of finite numbers")
    return [list(row) for row in table]


def positional_map(table: list[list[float]], words: Words) -> Html:
    """The first 100 positions × 128 dimensions as a picture with axes."""
    corner = [row[: SHOWN[1]] for row in table[: SHOWN[0]]]
    n_positions, n_dimensions = len(corner), len(corner[0])
    left, top, width, height = 40.0, 4.0, 316.0, 246.0
    picture = tag(
        "image",
        href="data:image/png;base64," + base64.b64encode(signed_png(corner)).decode(),
        class_="pixels",
        x=left,
        y=top,
        width=width,
        height=height,
        preserveAspectRatio="none",
    )
    whole = (n_positions, n_dimensions) == (len(table), len(table[0]))
    sizes = {"n": n_positions, "d": n_dimensions, "all_n": len(table), "all_d": len(table[0])}
    label = words("table_size" if whole else "table_corner", **sizes)
    down = [
        tag("text", mark, x=left - 6, y=round(top + height * (mark + 0.5) / n_positions + 4, 1), text_anchor="end")
        for mark in _marks(n_positions)
    ]
    across = [
        tag("text", mark, x=round(left + width * (mark + 0.5) / n_dimensions, 1), y=266, text_anchor="middle")
        for mark in _marks(n_dimensions)
    ]
    name = tag("text", words("dimension"), x=left + width / 2, y=284, text_anchor="middle")
    side = tag(
        "text", words("position"), transform=f"translate(9 {top + height / 2}) rotate(-90)", text_anchor="middle"
    )
    drawing = tag(
        "svg", picture, *down, *across, name, side, viewBox="0 0 360 288", class_="fluid", role="img", aria_label=label
    )
    return tag("figure", tag("figcaption", tag("b", label)), drawing)


def waves(table: list[list[float]], words: Words) -> Html:
    """Dimensions 0, 10, 50 and 100, those that are there, over the first 100 positions."""
    chosen = [dimension for dimension in WAVES if dimension < len(table[0])]
    series = [
        Series(
            f"{words('dimension')} {dimension}",
            [Point(float(place), float(row[dimension])) for place, row in enumerate(table[: SHOWN[0]])],
        )
        for dimension in chosen
    ]
    return line_chart(words("waves"), series, words("position"))


def signed_png(values: list[list[float]]) -> bytes:
    """A palette PNG, a pixel for each value: blue above zero, orange below, clear at zero."""
    limit = max(abs(value) for row in values for value in row) or 1.0
    indices = [bytes([0, *(STEPS + round(STEPS * value / limit) for value in row)]) for row in values]  # 0: no filter
    strengths = range(-STEPS, STEPS + 1)
    colours = b"".join(bytes(ABOVE_ZERO if strength > 0 else BELOW_ZERO) for strength in strengths)
    alphas = bytes(round(255 * abs(strength) / STEPS) for strength in strengths)
    header = struct.pack(">IIBBBBB", len(values[0]), len(values), 8, 3, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"PLTE", colours), (b"tRNS", alphas)]
    chunks += [(b"IDAT", zlib.compress(b"".join(indices), 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, body) for kind, body in chunks)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _marks(n: int) -> range:
    return range(0, n, 20 if n > 20 else max(1, n // 4))
