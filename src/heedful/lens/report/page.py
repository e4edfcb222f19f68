"""The report's frame: one HTML file with its style inside, no script, and a policy that lets nothing in."""

from __future__ import annotations

from pathlib import Path

from ...files import write_text
from .data import ReportData
from .markup import Html, join, tag
from .sections import Section, sections
from .style import stylesheet
from .words import Words

# Were a text ever to slip through unescaped, a browser would still run nothing and fetch nothing.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def write_report(path: str | Path, data: ReportData) -> Path:
    """Write the report as one file. The same data gives the same bytes."""
    path = Path(path)
    write_text(path, render(data))
    return path


def render(data: ReportData) -> str:
    """The report as a page."""
    words = Words(data.language)
    parts = sections(data, words)
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", data.title),
        tag("style", Html(stylesheet())),
    )
    body = tag(
        "body",
        tag("header", tag("h1", data.title, dir="auto")),
        _contents(parts, words),
        tag("main", *(_section(part) for part in parts)),
        tag("footer", words("offline")),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang=data.language)}\n"


def _contents(parts: list[Section], words: Words) -> Html | None:
    """Where there is more than one section, the way to each."""
    if len(parts) < 2:
        return None
    entries = (tag("li", tag("a", part.heading, href=f"#{part.name}")) for part in parts)
    return tag("nav", tag("ul", *entries), aria_label=words("contents"))


def _section(part: Section) -> Html:
    heading = tag("h2", part.heading, id=f"{part.name}-heading")
    return tag("section", heading, join(part.body), id=part.name, aria_labelledby=f"{part.name}-heading")
