"""Images, what they were taken for, and where each head looked."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from .charts import Bar, bar_table
from .data import SeenImage
from .markup import Html, join, tag
from .palette import level_of
from .words import Words, number

SIDE = 168.0  # of an image on the page
SMALL = 84.0
MOST_ANSWERS = 4
LARGEST = 200_000  # bytes of one image


def images(given: Sequence[SeenImage], words: Words) -> Html | None:
    """Each beside its answer; the ground of a patch is the darker the less it was looked at."""
    shown = [_image(one, words) for one in given if len(one.png) <= LARGEST]
    return join(tag("p", words("images_reading"), class_="soft"), *shown) if shown else None


def _image(given: SeenImage, words: Words) -> Html:
    source = "data:image/png;base64," + base64.b64encode(given.png).decode("ascii")
    bars = [Bar(label, share, f"{100 * share:.1f} %") for label, share in given.answers[:MOST_ANSWERS]]
    right = bool(given.answers) and given.answers[0][0] == given.truth
    verdict = words("right" if right else "wrong", truth=given.truth)
    picture = tag("figure", tag("figcaption", tag("b", given.title, dir="auto"), verdict), _drawn(source, SIDE, None))
    heads = (
        tag("figure", tag("figcaption", words("head", name=place)), _drawn(source, SMALL, head))
        for place, head in enumerate(given.heads)
    )
    answer = tag("div", bar_table((words("class"), words("probability")), bars), class_="single")
    return tag("div", tag("div", picture, *heads, class_="heads"), answer, class_="sample")


def _drawn(source: str, side: float, weights: Sequence[Sequence[float]] | None) -> Html:
    """The image, and over it a veil for each patch that lets through as much as it was looked at."""
    veils: list[Html] = []
    if weights:
        rows, columns = len(weights), len(weights[0])
        top = max(max(row) for row in weights) or 1.0
        veils = [
            tag(
                "rect",
                tag("title", number(weight)),
                class_="veil",
                x=round(side * x / columns, 2),
                y=round(side * y / rows, 2),
                width=round(side / columns + 0.05, 2),
                height=round(side / rows + 0.05, 2),
                fill_opacity=round(0.85 * (1 - weight / top), 2),
            )
            for y, row in enumerate(weights)
            for x, weight in enumerate(row)
            if level_of(1 - weight / top)
        ]
    size = {"width": side, "height": side}
    drawn = tag("image", href=source, preserveAspectRatio="xMidYMid slice", class_="pixels", **size)
    return tag("svg", drawn, *veils, viewBox=f"0 0 {side:g} {side:g}", role="img", **size)
