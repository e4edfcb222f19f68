"""The course in a real browser: every chapter is drawn in both languages, themes and widths, without a network."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from browsing import HANGUL, expect

from heedful.learn.site import find_pages, render_site_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

PAGES = find_pages()
CHAPTERS = [address for address in PAGES if re.fullmatch(r"\w\w/\d\d\.html", address)]
WINDOWS: list[dict[str, Any]] = [
    {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    for width, scheme in ((1280, "light"), (360, "dark"))
]
UNNAMED = """() => {
  const nodes = document.querySelectorAll("button, a, input, select, summary, [role=button], [role=img]");
  const isNamed = (node) => node.getAttribute("aria-label") || node.closest("label") || node.textContent.trim();
  return [...nodes].filter((node) => !isNamed(node)).map((node) => node.outerHTML);
}"""
CUT = "(all) => all.filter((node) => node.scrollWidth > node.clientWidth + 1).map((node) => node.textContent)"
LOCAL = ("file:", "data:", "blob:")
Opens = Callable[..., "Page"]


@pytest.fixture(scope="session")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The file of a page, rendered when it is first opened."""
    folder = tmp_path_factory.mktemp("course")

    @cache
    def write(address: str) -> Path:
        path = folder / address
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render_site_page(PAGES[address], PAGES), encoding="utf-8")
        return path

    return write


@pytest.fixture
def opens(browser: Browser, rendered: Callable[[str], Path]) -> Iterator[Opens]:
    """Opens a page from its file; nothing is requested but files, and the browser has no complaint."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def open_page(address: str, **window: Any) -> Page:
        context = browser.new_context(**({"offline": True} | WINDOWS[0] | window))
        contexts.append(context)
        context.set_default_timeout(60_000)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: complaints.extend([request.url] * (not request.url.startswith(LOCAL))))
        page.goto(rendered(address).as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def drawn(page: Page) -> None:
    """Wait until every figure stands."""
    expect(page.locator("figure.live .stage:empty")).to_have_count(0)
    assert page.locator("figure.live .failure").count() == 0


@pytest.mark.parametrize("window", WINDOWS, ids=["wide-light", "phone-dark"])
@pytest.mark.parametrize("address", CHAPTERS)
def test_a_chapter_fits_and_every_figure_is_drawn(address: str, window: dict[str, Any], opens: Opens) -> None:
    page = opens(address, **window)
    drawn(page)
    expect(page.locator("html")).to_have_attribute("data-theme", window["color_scheme"])
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator("main .scroll:not(figure *), .formula").evaluate_all(CUT) == []
    assert page.evaluate(UNNAMED) == []
    language = page.locator("html").get_attribute("lang")
    headings = page.locator("main h2").all_inner_texts()
    assert any(HANGUL.search(text) for text in headings) == (language == "ko")
    for figure in page.locator("figure.live").all():
        box = figure.locator(".stage").evaluate("(node) => [node.scrollWidth, node.clientWidth]")
        assert box[0] <= box[1] + 1, figure.get_attribute("data-figure")
    page.locator("[data-set=theme]").click()  # every figure is drawn again
    drawn(page)


def test_the_level_shows_deep_boxes_and_is_remembered(opens: Opens) -> None:
    page = opens("en/00.html")
    box = page.locator("details.deep").first
    expect(box).to_be_hidden()
    page.locator('[data-set="level:deep"]').click()
    expect(box.locator("pre").first).to_be_visible()
    box.locator("summary").click()
    expect(box.locator("pre").first).to_be_hidden()
    page.reload()
    expect(box.locator("pre").first).to_be_visible()


def test_language_and_progress(opens: Opens, rendered: Callable[[str], Path]) -> None:
    for address in ("ko/00.html", "en/index.html", "ko/index.html"):
        rendered(address)
    page = opens("en/00.html")
    assert page.locator(".read").count() == 0
    page.locator("footer").scroll_into_view_if_needed()
    expect(page.locator(".contents .read")).to_have_count(1)
    page.locator('.bar a[lang="ko"]').click()
    expect(page.locator("html")).to_have_attribute("lang", "ko")
    expect(page.locator("h1")).to_have_text("지도")
    page.locator(".bar .home").click()
    expect(page.locator("main .read")).to_have_count(1)


def test_the_list_of_chapters_folds_on_a_phone(opens: Opens) -> None:
    link = opens("en/00.html", **WINDOWS[1]).locator(".contents a").first
    expect(link).to_be_hidden()
    link.page.locator(".contents summary").press("Enter")
    expect(link).to_be_visible()
    expect(opens("en/00.html").locator(".contents a").first).to_be_visible()


def test_the_map_tells_of_a_block_and_opens_its_chapter(opens: Opens) -> None:
    page = opens("en/00.html")
    drawn(page)
    block = page.locator("[data-block=decoder_cross_attention]")
    block.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    expect(page.locator(".readout")).to_contain_text("Its output here: 5 × 512")
    expect(page.locator(".readout")).to_contain_text("8 × 5 × 4")
    page.locator("[data-keep=whole]").click()
    expect(page.locator("[data-block^='decoder.']")).to_have_count(6)
    page.locator("[data-block='encoder.4']").click()
    expect(page.locator("[data-block=encoder_feed_forward]")).to_be_visible()


def test_a_choice_has_the_focus_and_is_announced(opens: Opens) -> None:
    page = opens("en/03.html")
    drawn(page)
    clocks = page.locator("[data-figure=clock-hands]")
    expect(clocks.locator("[aria-live]")).to_be_empty()
    clocks.locator("input[type=range]").first.press("ArrowRight")
    expect(clocks.locator("[aria-live]")).to_contain_text("PE(4)")
    scheme = page.locator("[data-keep=alibi]")
    scheme.press("Enter")
    expect(scheme).to_be_focused()
    expect(scheme).to_have_attribute("aria-pressed", "true")
    expect(page.locator("[data-keep=sinusoidal]")).to_have_attribute("aria-pressed", "false")
    expect(page.locator("figure.live", has=scheme).locator("[aria-live]")).to_contain_text("ALiBi")


def test_without_a_script_the_text_can_be_read(opens: Opens) -> None:
    page = opens("ko/00.html", java_script_enabled=False)
    expect(page.locator("h1")).to_be_visible()
    expect(page.locator("pre.output").first).to_contain_text("torch.Size([1, 4, 512])")
