"""The pages of the course: every link leads somewhere, no text becomes code, and the server sends only its pages."""

from __future__ import annotations

import posixpath
import re
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from heedful.learn import site
from heedful.learn.chapters import LANGUAGES, ChapterError, read_chapter
from heedful.learn.rendering import anchor, catalog, render_chapter, render_markdown, render_page
from heedful.learn.server import CourseServer
from heedful.learn.site import find_pages, write_site


class Links(HTMLParser):
    """The links of a page, and the places that can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        values = dict(attrs)
        if tag == "a" and values.get("href"):
            self.links.append(str(values["href"]))
        if values.get("id"):
            self.ids.append(str(values["id"]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    assert write_site(folder) == len(find_pages())
    return folder


def test_every_link_of_the_site_leads_to_a_page_and_a_place_on_it(folder: Path) -> None:
    pages = {path.relative_to(folder).as_posix(): Links(path.read_text("utf-8")) for path in folder.rglob("*.html")}
    assert {"index.html", "en/index.html", "ko/index.html", "en/00.html", "ko/docs/learn.html"} <= pages.keys()
    broken = []
    for address, page in pages.items():
        for link in page.links:
            name, _, place = urllib.parse.unquote(link).partition("#")
            target = posixpath.normpath(posixpath.join(posixpath.dirname(address), name)) if name else address
            is_broken = target not in pages or (place and place not in pages[target].ids)
            if not link.startswith("http") and is_broken:
                broken.append((address, link))
    assert broken == []


def test_a_chapter_links_to_chapters_and_documents(folder: Path) -> None:
    page = find_pages()["ko/00.html"]
    pages = {**find_pages(), "ko/08.html": page}
    assert site._resolve(page, pages, "08") == "08.html"
    assert site._resolve(page, pages, "13") == ("13.html" if "ko/13.html" in pages else None)
    assert site._resolve(page, pages, "docs:serving") == "docs/serving.html"
    assert site._resolve(page, pages, "docs:design") == "../en/docs/design.html"  # there is no Korean one
    assert site._resolve(page, pages, "docs:serving#x") == "docs/serving.html#x"
    assert site._resolve(page, pages, "https://example.org/a") == "https://example.org/a"
    with pytest.raises(ChapterError, match="not to 'javascript:alert"):
        site._resolve(page, pages, "javascript:alert(1)")


def test_a_link_without_a_page_is_text() -> None:
    shown = render_markdown("a [first](x) and [second](y).", lambda target: "y.html" if target == "y" else None)
    assert shown == '<p>a <span>first</span> and <a href="y.html">second</a>.</p>\n'


def test_no_text_becomes_markup(tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script>"
    path = tmp_path / "en" / "00-x.md"
    path.parent.mkdir()
    path.write_text(
        f"---\ntitle: '{evil}'\nable: ['{evil}']\nneeds: []\n---\n{evil}\n\n:::: deep {evil}\n{evil}\n::::\n\n"
        f"::: formula\n{evil}\n:::\n\n```python\nprint('{evil}')\n```\n\n```python\nraise ValueError('{evil}')\n```\n",
        encoding="utf-8",
    )
    body = render_chapter(read_chapter(path), lambda target: target)
    assert "script" not in Links(body).tags
    assert body.count("alert(1)") == 10
    page = render_page(evil, body, language="en", contents="", document={"home": evil})
    assert Links(page).tags.count("script") == 2  # the shell, and its data
    assert "</script><script>" not in page


def test_only_the_script_of_the_page_may_run(folder: Path) -> None:
    for name in ("en/00.html", "ko/index.html", "en/docs/serving.html"):
        text = (folder / name).read_text("utf-8")
        assert "default-src 'none'; script-src 'sha256-" in text
        assert not re.search(r"""(?:src|href)=["'](?:https?:)?//(?!github)[^"']*\.(?:js|css)""", text)


def test_an_anchor_is_that_of_github() -> None:
    assert anchor("Six commands, step by step") == "six-commands-step-by-step"
    assert anchor("`heedful serve`: a request to `/translate`") == "heedful-serve-a-request-to-translate"
    assert anchor("The [core](x.md), in reading order") == "the-core-in-reading-order"
    assert anchor("한국어 문서 (2부)") == "한국어-문서-2부"


def test_both_languages_have_all_messages_of_the_shell() -> None:
    english, korean = (catalog(language) for language in LANGUAGES)
    assert english.keys() == korean.keys()
    for key in english:
        assert re.findall(r"\{\w+\}", english[key]) == re.findall(r"\{\w+\}", korean[key])


@pytest.fixture
def url() -> Iterator[str]:
    with CourseServer() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def status(url: str, method: str = "GET") -> int:
    request = urllib.request.Request(url, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            code: int = response.status
            return code
    except urllib.error.HTTPError as error:
        return error.code


def test_the_server_sends_what_the_site_has(url: str, folder: Path) -> None:
    with urllib.request.urlopen(f"{url}/ko/00.html?x=1", timeout=60) as response:
        assert response.headers["Content-Type"] == "text/html; charset=utf-8"
        assert response.read().decode() == (folder / "ko/00.html").read_text("utf-8")


def test_the_server_has_nothing_but_its_pages(url: str) -> None:
    assert status(f"{url}/") == 200
    for path in ("/en/99.html", "/../pyproject.toml", "/en/../../pyproject.toml", "/chapters.py", "/%2e%2e/x"):
        assert status(url + path) == 404
    assert status(f"{url}/en/00.html", "POST") == 501
