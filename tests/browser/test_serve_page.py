"""The server's own page, in a real browser: it answers, it shows the way inside, it keeps what was typed."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from browsing import expect

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

HANGUL = re.compile("[가-힣]")
TEXT = "The cat reads a book."
SCRIPT = "<img src=x onerror=window.harmed=1>"
REFUSED = re.compile("Failed to load resource")  # what a browser says of every refusal, whatever a page makes of it
ASKS = {"en-ko": TEXT, "writer": TEXT, "feelings": TEXT, "entities": TEXT, "gaps": "The [MASK] reads a book."}
# An answer that does not end: events that are cut anywhere, also within a letter.
ENDLESS = r"""() => {
  const bytes = new TextEncoder().encode(
    'data: {"choices":[{"text":" 하나"}]}\r\n\r\ndata: {"choices":[{"text":" two"}]}\n\ndata: {"cho');
  window.fetch = async (path, { signal }) => new Response(new ReadableStream({
    start(stream) {
      for (const byte of bytes) stream.enqueue(Uint8Array.of(byte));
      signal.addEventListener("abort", () => {
        window.stopped = true;
        stream.error(new DOMException("stopped", "AbortError"));
      });
    },
  }));
}"""
# What reaches beyond the window, seen or cut off; a box that scrolls by itself may hold more.
TOO_WIDE = """() => [document.documentElement, ...document.querySelectorAll("section.tool:not([hidden]) *")]
  .filter((node) => !node.closest(".scroll") && Math.max(node.getBoundingClientRect().right, node.scrollWidth) > 361)
  .map((node) => node.className || node.tagName)"""
Opens = Callable[..., "Page"]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Any]]:
    """Servers over the tiny models of the tests of serving."""
    pytest.importorskip("fastapi", reason="the server is missing: pip install 'heedful[serve]'")
    sys.path.append(str(Path(__file__).parents[1] / "serving"))
    from running import start as run

    from every_task import TINY
    from heedful.serving.models import Models
    from heedful.serving.settings import Settings

    folder, started = tmp_path_factory.mktemp("served"), []

    def starts(*names: str, **limits: Any) -> Any:
        for name in names or TINY:
            if not (folder / name).exists():
                TINY[name]().save(folder / name)
        settings = Settings(port=0, **limits)
        started.append(run(Models.load([str(folder / name) for name in names or TINY], settings), settings))
        return started[-1]

    yield starts
    for running in started:
        running.stop()


@pytest.fixture(scope="module")
def served(start: Callable[..., Any]) -> Any:
    """All models, without a key."""
    return start()


@pytest.fixture
def opens(browser: Browser) -> Iterator[Opens]:
    """Opens the page at an address. The browser has no complaint, and asks nobody but that server."""
    opened: list[tuple[Any, str, list[str], list[str]]] = []

    def open_page(url: str, tool: str = "", **window: Any) -> Page:
        defaults = {"viewport": {"width": 1280, "height": 900}, "locale": "en-US", "color_scheme": "light"}
        context = browser.new_context(**defaults | window)
        context.set_default_timeout(60_000)
        page = context.new_page()
        troubles: list[str] = []
        requests: list[str] = []
        opened.append((context, url, troubles, requests))
        page.on("console", lambda texts: troubles.append(f"{texts.type}: {texts.text}"))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(f"{url}/#{tool}")
        expect(page.locator("section.tool:visible form").first).to_be_visible()
        return page

    yield open_page
    for context, url, troubles, requests in opened:
        context.close()
        assert [trouble for trouble in troubles if not REFUSED.search(trouble)] == []
        assert {urlsplit(one).netloc for one in requests if not one.startswith(("blob:", "data:"))} == {
            urlsplit(url).netloc
        }


def form(page: Page) -> Locator:
    return page.locator("section.tool:visible form.card")


def ask(page: Page, text: str | None) -> None:
    if text is not None:
        form(page).locator("textarea").first.fill(text)
    form(page).locator("button.go").click()


def answer(page: Page) -> Locator:
    return form(page).locator(".answer")


def look(page: Page) -> Any:
    """The page inside the page."""
    page.locator("section.tool:visible form.inside button.go").click()
    frame = page.frame_locator("section.tool:visible iframe")
    expect(frame.locator("h1")).to_be_visible()
    return frame


def test_it_translates_both_ways_and_offers_alternatives(served: Any, opens: Opens) -> None:
    page = opens(served.url)
    forth, back = (served.state.models[name].predictor for name in ("en-ko", "ko-en"))
    (expected,) = forth.predict([TEXT])
    form(page).locator("textarea").fill(TEXT)
    form(page).locator("textarea").press("Control+Enter")
    expect(answer(page)).to_have_text(expected)
    expect(answer(page)).to_have_attribute("lang", "ko")

    page.get_by_role("button", name="Swap languages").click()  # and the answer becomes the question
    expect(form(page).locator("textarea")).to_have_value(expected.strip())
    expect(answer(page)).to_have_text(back.predict([expected])[0])
    expect(page.get_by_label("From", exact=True)).to_have_value("ko")

    page.get_by_label("Alternatives").select_option("2")
    ask(page, "고양이는 책을 읽었다.")
    best, *others = back.candidates(["고양이는 책을 읽었다."], n_best=3)[0]
    expect(answer(page)).to_have_text(best.text)
    expect(form(page).locator(".others li")).to_have_text([other.text for other in others if other.text != best.text])


def test_the_language_changes_everywhere_and_nothing_typed_is_lost(served: Any, opens: Opens) -> None:
    page = opens(served.url)
    ask(page, TEXT)
    expect(answer(page)).not_to_be_empty()
    page.locator('[data-set="language:ko"]').click()
    expect(page.locator("html")).to_have_attribute("lang", "ko")
    for texts in page.locator("[data-say]:visible").all_inner_texts():
        assert HANGUL.search(texts), texts
    expect(form(page).locator("textarea")).to_have_value(TEXT)
    assert HANGUL.search(look(page).locator(".panel-head h2").first.inner_text())
    page.reload()
    expect(page.locator("nav a").first).to_have_text("번역")  # remembered
    korean = opens(served.url, locale="ko-KR", color_scheme="dark")
    expect(korean.locator("nav a").first).to_have_text("번역")  # as the browser asks for
    expect(korean.locator("html")).to_have_attribute("data-theme", "dark")


def test_a_look_shows_the_tokens_of_the_very_answer(served: Any, opens: Opens) -> None:
    page = opens(served.url, "writer")
    page.get_by_label("Temperature").fill("1.5")
    ask(page, TEXT)
    expect(page.locator("section.tool:visible form.inside")).to_be_visible()  # it has come to its end
    written = answer(page).text_content()
    frame = look(page)
    expect(frame.locator(".question")).to_have_text(TEXT)
    assert written == TEXT + frame.locator(".answer").text_content()  # drawn once more, by the same seed
    assert written != TEXT
    frame.locator("#view-tokens").scroll_into_view_if_needed()
    tokens = frame.locator('section[data-view="tokens"] .chip')
    expect(tokens.first).to_be_visible()
    assert TEXT.replace(" ", "") in "".join(tokens.locator("text").all_text_contents()).replace(" ", "")
    with page.expect_download() as saving:
        page.get_by_role("link", name="Save as a file").click()
    saved = saving.value.path().read_text(encoding="utf-8")
    assert saved.startswith("<!DOCTYPE html>")
    assert TEXT in saved


def test_an_open_look_follows_a_text_that_is_changed(served: Any, opens: Opens, tmp_path: Path) -> None:
    """In place: what was chosen stays, and the file to save is of the new text."""
    page = opens(served.url)
    ask(page, TEXT)
    frame = look(page)
    frame.locator(".pickers").get_by_label("Attention").select_option(label="Encoder")
    html = frame.locator("html")
    html.evaluate("() => window.heedful.state.set({ level: 'deep' })")
    expect(html).to_have_attribute("data-level", "deep")
    html.evaluate("(root) => (root.dataset.same = 'frame')")
    changed = "The dog reads a book by the sea."
    page.get_by_label("Change the text, and the view follows").fill(changed)
    expect(frame.locator(".question")).to_have_text(changed)
    (expected,) = served.state.models["en-ko"].predictor.predict([changed])
    assert html.evaluate("() => window.heedful.doc.answer") == expected
    expect(html).to_have_attribute("data-same", "frame")
    assert html.evaluate("() => ['attention', 'level'].map((key) => window.heedful.state.get(key))") == [
        "encoder.self.1",
        "deep",
    ]
    frame.locator("h1").click()
    page.keyboard.press("l")  # a key is heard once
    assert html.evaluate("() => window.heedful.state.get('level')") == "simple"
    with page.expect_download() as saving:
        page.get_by_role("link", name="Save as a file").click()
    saving.value.save_as(tmp_path / "look.html")
    saved = page.context.new_page()
    saved.goto((tmp_path / "look.html").as_uri())
    expect(saved.locator(".question")).to_have_text(changed)
    saved.locator("#view-tokens").scroll_into_view_if_needed()
    expect(saved.locator('section[data-view="tokens"] .chip').first).to_be_visible()
    expect(saved.locator("#view-ablation")).to_have_count(0)  # nobody could compute it


def test_a_newer_change_ends_the_request_of_an_older_one(served: Any, opens: Opens) -> None:
    page = opens(served.url)
    ask(page, TEXT)
    frame = look(page)
    page.evaluate("""() => {
      const real = window.fetch;
      window.ended = [];
      window.fetch = (path, options) => {
        const { input } = JSON.parse(options.body);
        if (input !== "first") return real(path, options);
        document.documentElement.dataset.begun = input;
        return new Promise((_, refuse) => options.signal.addEventListener("abort", () => {
          window.ended.push(input);
          refuse(new DOMException("stopped", "AbortError"));
        }));
      };
    }""")
    field = page.get_by_label("Change the text, and the view follows")
    field.fill("first")
    expect(page.locator("html")).to_have_attribute("data-begun", "first")
    field.fill("The second text.")
    expect(frame.locator(".question")).to_have_text("The second text.")
    assert page.evaluate("() => window.ended") == ["first"]
    expect(page.locator("section.tool:visible .complaint")).to_have_count(0)


def test_heads_are_turned_off_and_on_again(served: Any, opens: Opens) -> None:
    page = opens(served.url)
    ask(page, TEXT)
    frame = look(page)
    before = frame.locator("h1").inner_text()
    frame.get_by_role("link", name="Turn heads off").press("Enter")  # the page may still scroll
    box = frame.get_by_role("checkbox", name="Turn off Cross, Layer 1 · Head 1", exact=True)
    box.focus()
    box.press("Space")
    expect(frame.locator(".given")).to_have_text("Heads turned off: 1")
    expect(box).to_be_checked()
    expect(box).to_be_focused()
    document = frame.locator("html").evaluate("() => window.heedful.doc.ablation")
    assert document["heads"] == ["cross.1.1"]
    expect(frame.locator("#view-ablation .readout")).to_contain_text(f"“{document['changes'][0]['label']}”")
    page.get_by_label("Change the text, and the view follows").fill("The dog reads.")
    expect(frame.locator(".question")).to_have_text("The dog reads.")
    expect(frame.locator(".given")).to_be_visible()  # they stay off
    page.get_by_label("Change the text, and the view follows").fill(TEXT)
    expect(frame.locator(".question")).to_have_text(TEXT)
    frame.get_by_role("button", name="Turn all on").click()
    expect(frame.locator(".given")).to_have_count(0)
    expect(frame.locator("h1")).to_have_text(before)


@pytest.mark.parametrize(("width", "locale"), [(1280, "en-US"), (360, "ko-KR")])
def test_activations_are_patched_into_a_second_text(served: Any, opens: Opens, width: int, locale: str) -> None:
    page = opens(served.url, viewport={"width": width, "height": 900}, locale=locale)
    ask(page, TEXT)
    frame = look(page)
    html = frame.locator("html")
    section = frame.locator("#view-patching")
    section.scroll_into_view_if_needed()
    second = "The book reads a cat."
    section.locator("textarea").fill(second)
    section.locator("[data-keep=go]").click()
    expect(section.locator("svg.map")).to_be_visible()
    document = html.evaluate("() => window.heedful.doc")
    predictor = served.state.models["en-ko"].predictor
    from heedful.tasks.inspection import inspect, inspect_patched

    expected = inspect_patched(predictor, inspect(predictor, TEXT), second, stack="encoder")
    assert document["patching"]["effects"] == [pytest.approx(row, abs=1e-4) for row in expected["effects"]]
    share = expected["effects"][0][0] / (expected["clean"] - expected["corrupted"])
    expect(section.locator("svg.map rect:not(.cross)")).to_have_count(sum(map(len, expected["effects"])))
    section.locator(".map-frame").press("ArrowRight")
    layer = "Layer 0" if locale == "en-US" else "층 0"
    expect(section.locator(".said")).to_contain_text(layer)
    expect(section.locator(".said")).to_contain_text(f"{100 * share:.0f}%".replace("-", "−").replace("−0%", "0%"))
    section.locator("[data-keep=stack]").select_option(index=1)  # the decoder has read as much as was written
    expect(section.locator("svg.map rect:not(.cross)")).to_have_count(2 * (expected["step"] + 1))
    section.locator("textarea").fill("The cat reads a book and another book.")
    section.locator("[data-keep=go]").click()
    refused = "the same number of tokens" if locale == "en-US" else "토큰 수가 같아야"
    expect(section.get_by_role("alert")).to_contain_text(refused)
    page.locator(".live textarea").fill("The dog reads.")  # another first text: the second belongs to the one before
    expect(frame.locator(".question")).to_have_text("The dog reads.")
    expect(section.locator("svg.map")).to_have_count(0)
    assert html.evaluate("(root) => root.scrollWidth") <= width


def test_words_come_one_by_one_until_they_are_stopped(served: Any, opens: Opens) -> None:
    page = opens(served.url, "writer")
    page.evaluate(ENDLESS)
    ask(page, TEXT)
    expect(answer(page)).to_have_text(f"{TEXT} 하나 two")  # while it still writes
    form(page).get_by_role("button", name="Stop").click()
    expect(form(page).get_by_role("button", name="Stop")).to_be_hidden()
    assert page.evaluate("() => window.stopped")  # the server hears of it
    expect(answer(page)).to_have_text(f"{TEXT} 하나 two")
    expect(form(page).get_by_role("alert")).to_have_count(0)


def test_script_text_stays_text(served: Any, opens: Opens) -> None:
    page = opens(served.url)
    page.route("**/translate", lambda route: route.fulfill(json={"translatedText": SCRIPT, "alternatives": [SCRIPT]}))
    ask(page, SCRIPT)
    expect(answer(page)).to_have_text(SCRIPT)
    frame = look(page)
    expect(frame.locator(".question")).to_have_text(SCRIPT)
    assert page.evaluate("() => window.harmed") is None
    assert frame.locator("html").evaluate("() => window.harmed") is None
    assert frame.locator("html").evaluate("() => window.origin") == "null"  # a world of its own
    assert page.locator("main script, main img[src=x]").count() == 0


def test_every_tool_answers_and_fits_a_phone(served: Any, opens: Opens) -> None:
    page = opens(served.url, viewport={"width": 360, "height": 740}, has_touch=True)
    for place, link in enumerate(page.locator("nav a").all()):
        link.click()
        expect(page.locator("section.tool").nth(place)).to_be_visible()
        name = page.evaluate("() => decodeURIComponent(location.hash.slice(1))")
        if name == "pictures":
            box = form(page).locator("canvas").bounding_box()
            assert box
            page.mouse.move(box["x"] + 40, box["y"] + 40)
            page.mouse.down()
            page.mouse.move(box["x"] + 120, box["y"] + 160, steps=4)
            page.mouse.up()
        elif name == "sales":
            form(page).locator("textarea").fill("day,sold\n" + "\n".join(f"{day},{day % 7}" for day in range(60)))
            ask(page, None)
        elif name == "answers":
            for field, text in zip(form(page).locator("textarea").all(), ("Who reads?", TEXT), strict=True):
                field.fill(text)
            ask(page, None)
        elif name == "vectors":
            for line, text in zip(form(page).locator("input").all(), (TEXT, "I drink water"), strict=False):
                line.fill(text)
            ask(page, None)
        else:
            ask(page, ASKS[name])
        expect(answer(page)).not_to_be_empty()
        expect(page.locator("section.tool:visible form.inside")).to_be_visible()
        assert page.evaluate(TOO_WIDE) == [], name
        assert form(page).locator(".complaint").count() == 0


def test_a_refusal_is_shown_beside_the_form(served: Any, opens: Opens) -> None:
    page = opens(served.url)
    busy = {"status": 503, "headers": {"Retry-After": "7"}, "json": {"error": "the model has too much to do"}}
    page.route("**/translate", lambda route: route.fulfill(**busy))
    ask(page, TEXT)
    expect(form(page).get_by_role("alert")).to_have_text(re.compile(r"busy.*7 s.*too much to do"))
    page.unroute("**/translate")
    ask(page, "a" * 20_001)
    expect(form(page).get_by_role("alert")).to_contain_text(re.compile("20,?000"))
    expect(form(page).locator("textarea")).to_have_value("a" * 20_001)
    page.route("**/translate", lambda route: route.abort())
    ask(page, TEXT)
    expect(form(page).get_by_role("alert")).to_contain_text("cannot be reached")
    page.unroute("**/translate")
    ask(page, TEXT)
    expect(answer(page)).not_to_be_empty()
    expect(form(page).get_by_role("alert")).to_have_count(0)


def test_a_key_is_asked_for_once_and_kept_in_this_tab(start: Callable[..., Any], opens: Opens) -> None:
    page = opens(start("en-ko", api_keys=("open sesame",)).url)
    for key in ("wrong", "open sesame"):
        if key == "wrong":
            ask(page, TEXT)
        page.get_by_role("dialog").get_by_label("API key").fill(key)
        page.get_by_role("dialog").get_by_role("button", name="Use this key").click()
    expect(answer(page)).not_to_be_empty()
    look(page)  # asks no more
    page.reload()
    ask(page, TEXT)
    expect(answer(page)).not_to_be_empty()
    stored_key = page.evaluate("() => [JSON.stringify(localStorage), document.cookie, JSON.stringify(sessionStorage)]")
    assert ["open sesame" in one for one in stored_key] == [False, False, True]
    assert "sesame" not in json.dumps(page.url)
