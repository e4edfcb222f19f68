"""A reader of the page: what there is to see, and what a hand does with it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tiny_looks import Document

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

HEADS = ["tokens", "heads", "head", "compare"]
INSIDE = ["numbers", "layer", "positions", "model"]
VIEWS = {
    "translation": ["entry", *HEADS, "cross", "writing", "next", "beams", "alignment", *INSIDE, "lens"],
    "into_korean": ["entry", *HEADS, "cross", "writing", "next", "alignment", *INSIDE, "lens"],
    "recurrent": ["tokens", "head", "cross", "writing", "next", "alignment"],
    "writing": ["entry", *HEADS, "writing", "next", *INSIDE, "lens"],
    "reading": ["entry", *HEADS, *INSIDE, "classes"],
    "image": [*HEADS, *INSIDE, "image", "classes"],
    "series": [*HEADS, *INSIDE, "series"],
}
SAME_IN_BOTH = {"Heedful", "SVG", "PNG"}
CELLS = "svg.map g > rect:not(.cross)"
SAYING = "h2, h3, button, label > span, summary, .eyebrow, .caution, p.sentence, .note, nav a, footer"
HANGUL = re.compile("[가-힣]")
STANDS = """(node) => new Promise((done) => {
  let last = null, frames = 0;
  const look = () => {
    const { top } = node.getBoundingClientRect();
    frames = top === last ? frames + 1 : 0;
    last = top;
    if (frames > 5) done();
    else requestAnimationFrame(look);
  };
  look();
})"""


@dataclass
class Look:
    """A page that stands open, and the document it was made from."""

    page: Page
    document: Document
    troubles: list[str]
    requests: list[str]


Opens = Callable[..., Look]


def expect(node: Any) -> Any:
    """Return Playwright's expectations of a node; a busy machine has a minute to meet them.

    The browser's library may be missing until a test begins.
    """
    from playwright.sync_api import expect as playwright_expect

    playwright_expect.set_options(timeout=60_000)
    return playwright_expect(node)


def view(page: Page, name: str) -> Locator:
    """A view, scrolled to and drawn."""
    section = page.locator(f'section[data-view="{name}"]')
    page.locator(f"#view-{name}").scroll_into_view_if_needed()
    expect(section.locator("svg:visible, canvas:visible").first).to_be_visible()
    section.evaluate(STANDS)  # the views above it are drawn, too
    page.locator(f"#view-{name}").scroll_into_view_if_needed()  # it has grown
    section.evaluate(STANDS)
    return section


def draw_all(page: Page) -> None:
    """Every view at once, as for printing; they stay awake until the page is scrolled."""
    page.evaluate("() => void dispatchEvent(new Event('beforeprint'))")
    expect(page.locator("section.view:not(:has(svg, canvas, .figure-note))")).to_have_count(0)


def choose(page: Page, **choices: Any) -> None:
    """In the bar, as by hand."""
    for label, option in choices.items():
        page.locator(".pickers").get_by_label(label.capitalize(), exact=True).select_option(label=str(option))


def press(page: Page, button: str) -> None:
    page.locator(f'[data-set="{button}"]').click()


def state(page: Page, key: str) -> Any:
    return page.evaluate("(key) => window.heedful.state.get(key)", key)


def point(page: Page, node: Locator, across: float = 0.5, down: float = 0.5) -> None:
    """Move the pointer to a part of a node: 0 to 1 is within it."""
    box = node.bounding_box()
    assert box
    page.mouse.move(box["x"] + across * box["width"], box["y"] + down * box["height"])
