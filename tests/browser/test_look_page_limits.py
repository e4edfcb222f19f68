"""The page in a real browser, put to the test: strange texts, files to keep, long inputs, a small screen."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from xml.etree import ElementTree

import pytest
from browsing import VIEWS, Opens, choose, draw_all, expect, point, press, view
from tiny_looks import BREAKING, LOOKS

# Chromium waits for an idle moment, often seconds, before `toBlob` encodes a picture.
AT_ONCE = """() => {
  HTMLCanvasElement.prototype.toBlob = function (callback, type) {
    const bytes = Uint8Array.from(atob(this.toDataURL(type).split(",")[1]), (letter) => letter.charCodeAt(0));
    callback(new Blob([bytes], { type }));
  };
}"""


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


@pytest.mark.parametrize("name", ["translation", "image", "series"])
def test_every_view_can_be_saved_as_svg_and_png(name: str, look: Opens, tmp_path: Path) -> None:
    page = look(name).page
    draw_all(page)
    page.evaluate(AT_ONCE)
    for each in VIEWS[name] if name == "translation" else set(VIEWS[name]) - set(VIEWS["translation"]):
        for button in page.locator(f"#view-{each} .saves button").all():
            with page.expect_download() as saved:
                button.click()
            saved.value.save_as(tmp_path / saved.value.suggested_filename)
        root = ElementTree.parse(tmp_path / f"heedful-{each}.svg").getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        width, height = int(root.attrib["width"]), int(root.attrib["height"])
        assert width > 100
        assert height > 50
        assert len(list(root.iter())) > 5
        png = (tmp_path / f"heedful-{each}.png").read_bytes()
        assert png[:8] == b"\x89PNG\r\n\x1a\n"
        assert struct.unpack(">II", png[16:24]) == pytest.approx((2 * width, 2 * height), abs=2)


# Long inputs: work is counted, not timed


def test_of_a_long_input_only_what_is_shown_is_read(look: Opens) -> None:
    seen = look("long")
    page, document = seen.page, seen.document
    counted = page.evaluate("() => window.counted")
    shown = {head["weights"] for one in document["attentions"] if one["kind"] == "cross" for head in one["heads"]}
    others = {head["weights"] for one in document["attentions"] if one["kind"] != "cross" for head in one["heads"]}
    assert counted["inflated"] == len(counted["read"]) < len(document["arrays"]) / 4
    assert not others & set(counted["read"])
    assert shown & set(counted["read"])
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
    expect(large.locator(".said")).to_contain_text("of its attention to")
    view(page, "tokens")
    for index in range(0, 100, 10):
        page.locator(f'[data-sequence="source"][data-index="{index}"]').hover()
    expect(page.locator('[data-view="tokens"] .story')).to_contain_text("looks most at")
    after = page.evaluate("() => [window.counted.inflated, document.querySelectorAll('#page *').length]")
    assert after[0] == before[0]
    assert after[1] < before[1] + 200
    assert page.evaluate("() => window.added") < 20 * 100  # not the 301 chips each time


def test_a_long_input_has_no_more_nodes_than_a_page_can_carry(look: Opens) -> None:
    page = look("long", "#attention=encoder.self.1&head=1").page
    draw_all(page)
    assert page.evaluate("() => document.querySelectorAll('#page *').length") < 25_000  # 301² cells would be 90,601


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
