"""A real browser, once for all tests; a fresh window without a network for each; and nothing may go wrong in it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from browsing import Look
from tiny_looks import LOOKS, Document

from heedful.lens.page import write_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser

BROWSERS = ("chromium", "chromium-browser", "google-chrome")

# Before any script of the page: which arrays are read, and how many are inflated.
COUNTING = """
window.counted = { inflated: 0, read: [] };
window.DecompressionStream = class extends DecompressionStream {
  constructor(format) {
    super(format);
    window.counted.inflated += 1;
  }
};
const find = Document.prototype.getElementById;
Document.prototype.getElementById = function (id) {
  if (id.startsWith("array-") && !window.counted.read.includes(id.slice(6))) window.counted.read.push(id.slice(6));
  return find.call(this, id);
};
"""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is missing: pip install playwright")
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        pytest.skip(f"there is no browser: install one of {', '.join(BROWSERS)}, on Debian `apt install chromium`")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Document]]:
    """The page of a look and its document, each made when it is first asked for."""
    folder = tmp_path_factory.mktemp("pages")

    @cache
    def write(name: str) -> tuple[Path, Document]:
        document = LOOKS[name]()
        write_page(folder / f"{name}.html", document)
        return folder / f"{name}.html", document

    return write


@pytest.fixture
def look(browser: Browser, written: Callable[[str], tuple[Path, Document]]) -> Iterator[Callable[..., Look]]:
    """Opens the page of a look by its name. Whatever the test does with it, the browser must have no complaint."""
    opened: list[tuple[Any, Look]] = []

    def opens(name: str, address: str = "", **window: Any) -> Look:
        path, document = written(name)
        defaults = {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light", "offline": True}
        context = browser.new_context(**defaults | window)
        context.add_init_script(COUNTING)
        context.set_default_timeout(60_000)
        page = context.new_page()
        seen = Look(page, document, [], [])
        opened.append((context, seen))
        page.on("console", lambda message: seen.troubles.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: seen.troubles.append(str(error)))
        page.on("request", lambda request: seen.requests.append(request.url))
        page.goto(path.as_uri() + address)
        page.evaluate("async () => void (await window.heedful.ready)")
        return seen

    yield opens
    for context, seen in opened:
        context.close()
        assert seen.troubles == []
