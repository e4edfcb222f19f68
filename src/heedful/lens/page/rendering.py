"""Render a document as one self-contained HTML file: no text in it can become code, and it needs no network."""

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from ... import files
from ...errors import PictureError, unknown
from .bundle import bundle, read_modules

Page = Literal["look", "report"]
HERE = Path(__file__).parent
LANGUAGES = ("en", "ko")
ARRAY_NAME = re.compile(r"[A-Za-z0-9_-]+")
BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")
PLACEHOLDER = re.compile(r"<!-- (\w+) -->")


def write_page(path: str | Path, document: Mapping[str, Any], *, language: str | None = None) -> None:
    """Write the page of a look document atomically.

    Args:
        path: the HTML file.
        document: what `heedful.tasks.inspection` gives.
        language: "en" or "ko"; the document's own if None.
    """
    files.write_text(path, render(document, language=language))


def render(document: Mapping[str, Any], *, language: str | None = None, page: Page = "look") -> str:
    """Return the page's HTML. Arrays stand apart from the document and are decoded only when a view needs them.

    Args:
        document: JSON data, with "arrays" by name.
        language: "en" or "ko"; the document's own if None.
        page: which entry script shows the document.
    """
    language = language or document.get("language", "en")
    if language not in LANGUAGES:
        raise PictureError(unknown("language", language, LANGUAGES))
    arrays = document.get("arrays", {})
    described = {name: {key: array[key] for key in ("shape", "type")} for name, array in arrays.items()}
    parts = {
        "policy": content_security_policy(script(page)),
        "style": style(),
        "script": script(page),
        "language": language,
        "title": html.escape(_title(document)),
        "document": script_json({**document, "language": language, "arrays": described}),
        "arrays": "".join(_elements(arrays)),
    }
    template = (HERE / "template.html").read_text(encoding="utf-8")
    return fill_template(template, parts)


def fill_template(template: str, parts: Mapping[str, str]) -> str:
    """Put parts of HTML into the places of a template, `<!-- name -->`."""
    return PLACEHOLDER.sub(lambda match: parts[match[1]], template)


@cache
def script(page: Page = "look") -> str:
    """Return one script with the modules that a page's entry needs, and its messages."""
    return bundle(modules(page), f"{page}.js")


@cache
def modules(page: Page) -> dict[str, str]:
    """Return every module by its path; `messages.js` is generated from the catalogs."""
    catalogs = {language: _messages(language, page) for language in LANGUAGES}
    return read_modules(HERE / "script") | {"messages.js": f"export const messages = {script_json(catalogs)};\n"}


def catalog(language: str) -> dict[str, Any]:
    """Return every message in a language: of both pages, of each view and section, and the names and sentences that
    come with a report's data.
    """
    messages: dict[str, Any] = json.loads((HERE / "locales" / f"{language}.json").read_text(encoding="utf-8"))
    return messages


def _messages(language: str, page: Page) -> dict[str, dict[str, str]]:
    """Return the messages of one page, by the name of the view or section."""
    messages = catalog(language)
    shared = {}
    if page == "report":
        positions = messages["look"]["positions"]
        shared = {"names": messages["names"], "phrases": messages["phrases"], "positions": positions}
    return {"common": messages["common"], **messages[page], **shared}


@cache
def style(*names: str) -> str:
    """Return the style sheets of these names, or all, concatenated in the order of their names."""
    sheets = sorted((HERE / "style").glob("*.css"))
    return "".join(path.read_text(encoding="utf-8") for path in sheets if not names or path.stem in names)


def _title(document: Mapping[str, Any]) -> str:
    title: str = document.get("title") or document.get("question") or document["model"]["name"]
    return f"{title if len(title) <= 80 else title[:79] + '…'} · Heedful"


def content_security_policy(code: str) -> str:
    """Return the content security policy: only this script, only embedded images, no network."""
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def script_json(value: object) -> str:
    """Encode as JSON in which no text can end the surrounding script element."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError as error:
        raise PictureError(
            f"the document cannot be written as JSON: {error}; use null where there is no number"
        ) from None
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _elements(arrays: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name, array in arrays.items():
        if not ARRAY_NAME.fullmatch(name):
            raise PictureError(f"{name!r} is not a valid array name; use letters, digits, - and _")
        if not BASE64.fullmatch(array.get("data", "!")):
            raise PictureError(f"array {name!r} has no data, or data that is not base64")
        yield f'<script type="text/plain" id="array-{name}">{array["data"]}</script>\n'
