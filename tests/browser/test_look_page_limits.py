"""The page in a real browser, put to the test: strange texts, files to keep, long inputs, a small screen."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from browsing import VIEWS, Opens, choose, draw_all, expect, point, press, view
from tiny_looks import BREAKING, LOOKS

if TYPE_CHECKING:
    from playwright.sync_api import Page

# Text


def test_korean_shows_as_korean(look: Opens) -> None:
    seen = look("translation")
    page = seen.page
    wanted = [token["text"] for token in seen.document["sequences"]["source"]]
    assert wanted[:4] == ["고양이는", "바다에서", "책을", "읽었다"]
    view(page, "tokens")
    assert page.locator('[data-sequence="source"] text').all_text_contents() == wanted
    labels = view(page, "head").locator("svg.map > g").first.locator("text").all_text_contents()
    assert labels[: len(wanted)] == wanted
    expect(page.locator("h1")).to_have_text(seen.document["question"])
    for text in page.locator(".alignment text, [data-view=alignment] text").all_text_contents():
        assert not re.search("[\u1100-\u11ff\ufffd]", text)


def test_hangul_is_drawn_with_letters_that_differ(look: Opens) -> None:
    """A font without Hangul would draw the same box for each."""
    drawn = """([a, b]) => [a, b].map((letter) => {
      const canvas = Object.assign(document.createElement("canvas"), { width: 60, height: 60 });
      const pen = canvas.getContext("2d");
      pen.font = `40px ${getComputedStyle(document.body).fontFamily}`;
      pen.fillText(letter, 5, 45);
      return canvas.toDataURL();
    })"""
    one, other = look("translation").page.evaluate(drawn, ["책", "물"])
    if one == other:
        pytest.skip("this machine has no font for Hangul")


@pytest.mark.parametrize("name", ["breaking", "image"])
def test_script_in_the_input_stays_text(name: str, look: Opens) -> None:
    seen = look(name)
    page = seen.page
    draw_all(page)
    for choice in ("level:deep", "language:ko"):
        press(page, choice)
        draw_all(page)
    assert page.evaluate("() => typeof window.broken") == "undefined"
    assert page.locator("#page script").count() == page.locator('#page img[src="x"]').count() == 0
    if name == "breaking":
        expect(page.locator("h1")).to_have_text(BREAKING)
        assert page.title() == f"{BREAKING} · Heedful"
    else:
        expect(view(page, "classes").locator("text").filter(has_text="<script>")).to_be_visible()


# Saving


def saved(page: Page, name: str, ending: str, folder: Path) -> bytes:
    """What the button of a view gives."""
    with page.expect_download() as download:
        page.locator(f"#view-{name} .saves button").get_by_text(ending, exact=True).click()
    assert download.value.suggested_filename == f"heedful-{name}.{ending.lower()}"
    download.value.save_as(folder / download.value.suggested_filename)
    return (folder / download.value.suggested_filename).read_bytes()


@pytest.mark.parametrize("name", ["translation", "image", "series"])
def test_every_view_can_be_saved_as_an_svg_that_stands_alone(name: str, look: Opens, tmp_path: Path) -> None:
    page = look(name, "#theme=dark").page
    draw_all(page)
    paper = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    for each in VIEWS[name] if name == "translation" else set(VIEWS[name]) - set(VIEWS["translation"]):
        drawing = saved(page, each, "SVG", tmp_path).decode()
        root = ElementTree.fromstring(drawing)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert not re.search(r"var\(| class=| style=", drawing), "what a style sheet said is written out"
        width, height = int(root.attrib["width"]), int(root.attrib["height"])
        assert width > 100
        assert height > 50
        assert len(list(root.iter())) > 5
        ground = root[0].attrib
        assert ground["fill"] == paper
        assert [float(ground[side]) for side in ("width", "height")] == pytest.approx([width, height], abs=1)


def test_a_png_has_twice_the_size(look: Opens, tmp_path: Path) -> None:
    page = look("image").page
    view(page, "image")
    root = ElementTree.fromstring(saved(page, "image", "SVG", tmp_path))
    png = saved(page, "image", "PNG", tmp_path)
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    size = struct.unpack(">II", png[16:24])
    assert size == pytest.approx([2 * int(root.attrib[side]) for side in ("width", "height")], abs=2)
    assert len(png) > 5_000, "an empty picture is smaller"


def test_a_saved_drawing_looks_as_on_the_page(look: Opens, tmp_path: Path) -> None:
    """The SVG alone, opened by the browser, has the colors that the page's style sheets gave."""
    page = look("translation", "#theme=dark").page
    view(page, "tokens")
    saved(page, "tokens", "SVG", tmp_path)
    looks = """(texts) => texts.map((text) => {
      const { fill, fontSize, fontFamily, textAnchor } = getComputedStyle(text);
      return [text.textContent, fill, fontSize, fontFamily, textAnchor];
    })"""
    before = page.locator('[data-view="tokens"] svg text').evaluate_all(looks)
    page.goto((tmp_path / "heedful-tokens.svg").as_uri())
    assert page.locator("text").evaluate_all(looks) == before
    assert len(before) > 10


# Long inputs: work is counted, not timed


def test_of_a_long_input_only_what_is_shown_is_read(look: Opens) -> None:
    seen = look("long")
    page, document = seen.page, seen.document
    reads = page.evaluate("() => window.counted")
    weights = {head["weights"] for one in document["attentions"] if one["kind"] == "cross" for head in one["heads"]}
    others = {head["weights"] for one in document["attentions"] if one["kind"] != "cross" for head in one["heads"]}
    assert reads["inflated"] == len(reads["read"]) < len(document["arrays"]) / 4
    assert not others & set(reads["read"])
    assert weights & set(reads["read"])
    choose(page, attention="Encoder", layer=0, head=1)
    expect(view(page, "head").locator("svg.map")).to_have_attribute(
        "aria-label", re.compile("Layer 0 · Head 1, 301 × 301")
    )
    read = set(page.evaluate("() => window.counted.read"))
    assert document["attentions"][0]["heads"][1]["weights"] in read
    decoder = {
        head["weights"]
        for one in document["attentions"]
        if one["id"].startswith("decoder.self")
        for head in one["heads"]
    }
    assert not decoder & read


def test_pointing_at_a_long_input_reads_nothing_and_draws_little(look: Opens) -> None:
    seen = look("long")
    page = seen.page
    choose(page, attention="Encoder", layer=0, head=0)
    expect(page.locator('[data-sequence="source"]')).to_have_count(301)
    for each in ("tokens", "heads", "head"):
        view(page, each)
    expect(page.locator('[data-view="heads"] image[href]')).to_have_count(8)
    large = view(page, "head")
    page.evaluate("""() => {
      window.added = 0;
      const count = (changes) => changes.forEach((change) => (window.added += change.addedNodes.length));
      new MutationObserver(count).observe(document.getElementById("page"), { childList: true, subtree: true });
    }""")
    before = page.evaluate("() => [window.counted.inflated, document.querySelectorAll('#page *').length]")
    for place in range(10):
        point(page, large.locator("svg.map image"), across=0.05 + 0.09 * place)
    expect(large.locator(".said")).to_contain_text("attention")
    view(page, "tokens")
    for index in range(0, 100, 10):
        page.locator(f'[data-sequence="source"][data-index="{index}"]').hover()
    expect(page.locator('[data-view="tokens"] .story')).to_contain_text("looks most at")
    expect(page.locator('[data-view="tokens"] .story')).to_be_in_viewport()
    later = page.evaluate("() => [window.counted.inflated, document.querySelectorAll('#page *').length]")
    assert later[0] == before[0]
    assert later[1] < before[1] + 200
    assert page.evaluate("() => window.added") < 20 * 100  # not the 301 chips each time


def test_a_long_input_has_no_more_nodes_than_a_page_can_carry(look: Opens) -> None:
    page = look("long", "#attention=encoder.self.1&head=1").page
    draw_all(page)
    assert page.evaluate("() => document.querySelectorAll('#page *').length") < 25_000  # 301² cells would be 90,601


# The head of the page


def test_a_long_text_is_folded_at_three_lines_and_opens(look: Opens) -> None:
    seen = look("long", viewport={"width": 360, "height": 740})
    title, unfold = seen.page.locator("h1"), seen.page.locator(".unfold").first
    lines = "(node) => node.clientHeight / parseFloat(getComputedStyle(node).lineHeight)"
    expect(title).to_have_text(seen.document["question"])
    assert title.evaluate(lines) == pytest.approx(3, abs=0.2)
    unfold.click()
    expect(unfold).to_have_attribute("aria-expanded", "true")
    assert title.evaluate(lines) > 10
    unfold.click()
    assert title.evaluate(lines) == pytest.approx(3, abs=0.2)
    short = look("reading").page
    expect(short.locator(".opening")).to_be_visible()
    expect(short.locator(".unfold:visible")).to_have_count(0)


def test_single_choices_are_not_offered(look: Opens) -> None:
    seen = look("recurrent")
    assert seen.document["model"]["name"] == seen.document["model"]["family"]
    expect(seen.page.locator(".facts")).to_have_text(re.compile("^recurrent[^a-z]"))
    expect(seen.page.locator(".pickers select")).to_have_count(0)


# On a phone


@pytest.mark.parametrize("name", [name for name in LOOKS if name != "breaking"])
def test_nothing_is_wider_than_a_phone(name: str, look: Opens) -> None:
    page = look(name, viewport={"width": 360, "height": 740}).page
    draw_all(page)
    for choice in ("theme", "level:deep", "theme", "language:ko"):
        press(page, choice)
        draw_all(page)
        page.evaluate("() => new Promise((after) => requestAnimationFrame(() => requestAnimationFrame(after)))")
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 360, choice
    hides = "(node) => getComputedStyle(node).overflowX"
    assert [page.locator(name).evaluate(hides) for name in ("html", "body")] == ["visible", "visible"]
