"""Markup in which text cannot become code: whatever is not `Html` already is escaped on its way in."""

from __future__ import annotations

import html
import re

# Neither HTML nor UTF-8 can hold these.
UNWRITABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
NO_CONTENT = frozenset({"meta", "br"})
SHAPES = frozenset({"circle", "image", "line", "polyline", "rect"})  # of SVG, which closes an empty tag itself


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def escape(text: object) -> Html:
    """The text as it should be read, safe between tags and in attributes."""
    if isinstance(text, Html):
        return text
    return Html(html.escape(UNWRITABLE.sub("\ufffd", str(text)), quote=True))


def join(*parts: object) -> Html:
    """Parts one after the other; None is nothing."""
    return Html("".join(escape(part) for part in parts if part is not None))


def tag(name: str, /, *content: object, **attributes: object) -> Html:
    """An element: `tag("p", "a < b", class_="small")`. An attribute that is None is left out."""
    given = ((key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items() if value is not None)
    opening = "".join([name, *(f' {key}="{escape(value)}"' for key, value in given)])
    if name in NO_CONTENT:
        return Html(f"<{opening}>")
    if name in SHAPES and not content:
        return Html(f"<{opening}/>")
    return Html(f"<{opening}>{join(*content)}</{name}>")


def clipped(text: str, longest: int) -> str:
    """A long text with its end left out, and how much that was."""
    left_out = len(text) - longest
    return text if left_out <= 0 else f"{text[:longest]}… (+{left_out:,})"
