"""The pages of the course and of the documentation in both languages, by address, and the static site of them."""

import base64
import html
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .. import files
from .chapters import LANGUAGES, NUMBERS, Chapter, ChapterError, read_chapters
from .rendering import catalog, render_chapter, render_markdown, render_page

ROOT = Path(__file__).parents[3]  # of a checkout, which has the documentation
IMAGES = {".png": "image/png", ".svg": "image/svg+xml"}
WEB = re.compile(r"https?://|#")


@dataclass(frozen=True)
class SitePage:
    """A page before it is rendered: a chapter, a document of the documentation, or the list of all (no source)."""

    address: str  # such as ko/03.html, from the root of the site
    title: str
    source: Chapter | Path | None = None

    @property
    def language(self) -> str:
        return self.address[:2]

    @property
    def chapter(self) -> Chapter | None:
        return self.source if isinstance(self.source, Chapter) else None


Pages = Mapping[str, SitePage]


def find_pages() -> Pages:
    """Return every page by its address."""
    pages = [SitePage(f"{language}/index.html", catalog(language)["title"]) for language in LANGUAGES]
    for language in LANGUAGES:
        pages += [SitePage(f"{language}/{item.number}.html", item.title, item) for item in read_chapters(language)]
    for path in sorted([*ROOT.glob("README*.md"), *ROOT.glob("docs/**/*.md")]) if (ROOT / "docs").is_dir() else []:
        pages.append(
            SitePage(_document_address(path), _read(path).partition("\n")[0].strip("# ").replace("`", ""), path)
        )
    return {page.address: page for page in pages}


def _document_address(path: Path) -> str:
    """docs/serving.md is en/docs/serving.html, docs/ko/serving.md is ko/docs/serving.html."""
    inside = path.relative_to(ROOT).as_posix().removeprefix("docs/")
    language, name = ("ko", inside.removeprefix("ko/")) if re.search(r"\bko\b", inside) else ("en", inside)
    return f"{language}/docs/{name.replace('.ko.', '.').removesuffix('.md')}.html"


def _read(path: Path) -> str:
    """Read a document without the comment above it, which a generated one has."""
    return re.sub(r"\A<!--.*?-->\s*", "", path.read_text(encoding="utf-8"))


def render_site_page(page: SitePage, pages: Pages) -> str:
    """Return the HTML of a page; the cells of a chapter are run, and its figures computed."""
    other = {language: f"{language}{page.address[2:]}" for language in LANGUAGES}
    document = {
        "home": _relative(page, f"{page.language}/index.html"),
        "languages": {name: _relative(page, to if to in pages else f"{name}/index.html") for name, to in other.items()},
        "chapter": page.chapter.number if page.chapter else None,
    }
    title, resolve = f"{page.title} · {catalog(page.language)['title']}", partial(_resolve, page, pages)
    match page.source:
        case Chapter() as chapter:
            body = render_chapter(chapter, resolve) + _neighbors(page, pages)
        case Path() as path:
            body = f'<article class="document">{render_markdown(_read(path), resolve)}</article>'
        case None:
            title, body = page.title, _overview(page, pages)
    return render_page(
        title,
        body,
        language=page.language,
        contents=_contents(page, pages) if page.source else "",
        document=document,
        figures=[block.title for block in page.chapter.all("figure")] if page.chapter else [],
    )


def write_site(folder: Path) -> int:
    """Write all pages below a folder and return their number."""
    pages = find_pages()
    for page in pages.values():
        target = folder / page.address
        target.parent.mkdir(parents=True, exist_ok=True)
        files.write_text(target, render_site_page(page, pages))
    links = " · ".join(f'<a href="{name}/index.html" lang="{name}">{catalog(name)["title"]}</a>' for name in LANGUAGES)
    entry = f'<!DOCTYPE html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=en/index.html">{links}\n'
    files.write_text(folder / "index.html", entry)
    return len(pages)


def _relative(page: SitePage, address: str) -> str:
    return posixpath.relpath(address, posixpath.dirname(page.address))


def _resolve(page: SitePage, pages: Pages, target: str) -> str | None:
    """Resolve a link, None if there is no such page: of a chapter 08 or docs:serving, of a document a path.

    Images of documents are embedded.
    """
    name, sign, anchor = target.partition("#")
    if WEB.match(target):
        return target
    if isinstance(page.source, Path):
        path = (page.source.parent / name).resolve()
        if path.suffix in IMAGES and path.is_file():
            return f"data:{IMAGES[path.suffix]};base64,{base64.b64encode(path.read_bytes()).decode()}"
        addresses = [_document_address(path)] if path.suffix == ".md" and path.is_relative_to(ROOT) else []
    elif name in NUMBERS:
        addresses = [f"{page.language}/{name}.html"]
    elif name.startswith("docs:"):
        addresses = [f"{language}/docs/{name[5:]}.html" for language in (page.language, "en")]
    else:
        raise ChapterError(f"{page.address}: a link leads to a chapter (08), docs:NAME or https://…, not to {target!r}")
    return next((_relative(page, address) + sign + anchor for address in addresses if address in pages), None)


def _of_language(page: SitePage, pages: Pages, kind: type) -> list[SitePage]:
    return [other for other in pages.values() if other.language == page.language and isinstance(other.source, kind)]


def _item(page: SitePage, other: SitePage, more: str = "") -> str:
    current, title = ' aria-current="page"' if other == page else "", html.escape(other.title)
    link = f'<a href="{_relative(page, other.address)}"{current}>'
    if other.chapter is None:
        return f"<li>{link}{title}</a></li>"
    number = other.chapter.number
    return f'<li data-chapter="{number}">{link}<span class="number">{int(number)}</span> {title}</a>{more}</li>'


def _contents(page: SitePage, pages: Pages) -> str:
    """Return the list beside a page: of the chapters, or of the documents beside one of these."""
    kind, key = (Path, "documents") if isinstance(page.source, Path) else (Chapter, "chapters")
    items = "".join(_item(page, other) for other in _of_language(page, pages, kind))
    label = catalog(page.language)[key]
    listed = f"<details><summary>{label}</summary><ul>{items}</ul></details>"
    return f'<nav class="contents" aria-label="{label}">{listed}</nav>'


def _neighbors(page: SitePage, pages: Pages) -> str:
    """Return links to the chapter before and the one after."""
    addresses = [other.address for other in _of_language(page, pages, Chapter)]
    at, messages = addresses.index(page.address), catalog(page.language)
    links = [
        f'<a rel="{key}" href="{_relative(page, addresses[to])}"><span>{messages[key]}</span> '
        f"{html.escape(pages[addresses[to]].title)}</a>"
        for key, to in (("prev", at - 1), ("next", at + 1))
        if 0 <= to < len(addresses)
    ]
    return f'<nav class="neighbors" aria-label="{messages["neighbors"]}">{"".join(links)}</nav>'


def _overview(page: SitePage, pages: Pages) -> str:
    messages = catalog(page.language)
    chapters = "".join(
        _item(page, other, f"<p>{html.escape(other.chapter.able[0])}</p>" if other.chapter else "")
        for other in _of_language(page, pages, Chapter)
    )
    documents = "".join(_item(page, other) for other in _of_language(page, pages, Path))
    lower = f'<h2>{messages["documents"]}</h2><ul class="documents">{documents}</ul>' if documents else ""
    return (
        f'<header class="opening"><h1>{messages["title"]}</h1><p class="lead">{messages["lead"]}</p></header>'
        f'<ol class="chapters">{chapters}</ol>{lower}'
    )
