"""The page around the views: modules become one script, and no text of a document becomes code."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import struct
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from heedful.errors import PictureError
from heedful.lens.page import bundle, render, write_page
from heedful.lens.page.bundle import ScriptBundleError, read_modules
from heedful.lens.page.rendering import HERE

NASTY = "</script><script>alert(1)</script> <!-- ]]> & \" ' </style> \u2028 <!-- title --> \\u003c"
NUMBERS = [0.0, 0.25, -1.5, 3.0]


def packed(values: list[float]) -> str:
    return base64.b64encode(zlib.compress(struct.pack(f"<{len(values)}f", *values))).decode()


def document(text: str = "I am a student", **more: Any) -> dict[str, Any]:
    token = {"text": text, "piece": text, "word": 0, "special": False}
    return {
        "format": 1,
        "kind": "reading",
        "language": "en",
        "model": {"name": text, "family": "bert", "task": "embedding", "parameters": 3, "facts": [[text, 1]]},
        "question": text,
        "answer": text,
        "sequences": {"source": [token, token]},
        "attentions": [],
        "layers": [],
        "classes": [{"label": text, "probability": 1.0}],
        "arrays": {"a0": {"shape": [2, 2], "type": "float32", "data": packed(NUMBERS)}},
        **more,
    }


class Elements(HTMLParser):
    """What a browser would make of a page: each element's attributes and text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None], str]] = []
        self.within = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs), ""))
        self.within = True

    def handle_endtag(self, tag: str) -> None:
        self.within = False

    def handle_data(self, data: str) -> None:
        if self.within:
            tag, attributes, text = self.found[-1]
            self.found[-1] = (tag, attributes, text + data)

    def all(self, tag: str) -> list[tuple[dict[str, str | None], str]]:
        return [(attributes, text) for name, attributes, text in self.found if name == tag]


def test_modules_stand_behind_what_they_need_and_each_once() -> None:
    sources = {
        "main.js": 'import { a } from "./a.js";\nimport { c as sea } from "./deep/c.js";\na(sea);',
        "a.js": 'import { c } from "./deep/c.js";\nexport function a(x) {\n  return c + x;\n}',
        "deep/c.js": 'import * as d from "../d.js";\nexport const c = d.one;',
        "d.js": "export const one = 1;\nexport class Two {}\nexport async function three() {}",
        "unused.js": "export const never = 0;",
    }
    script = bundle(sources)
    assert re.findall(r'^bundled\["(.+?)"\] = ', script, re.MULTILINE) == ["d.js", "deep/c.js", "a.js", "main.js"]
    assert 'const { c: sea } = bundled["deep/c.js"];' in script
    assert 'const d = bundled["d.js"];' in script
    assert "return { one, Two, three };" in script
    assert not re.search(r"^\s*(import|export)\b", script, re.MULTILINE)


def test_modules_in_a_circle_are_refused_with_the_way_round() -> None:
    sources = {
        "main.js": 'import { a } from "./a.js";',
        "a.js": '\nimport { b } from "./b.js";\nexport const a = 1;',
        "b.js": 'import { a } from "./a.js";\nexport const b = 1;',
    }
    with pytest.raises(ScriptBundleError, match=r"b\.js, line 1: .*a\.js → b\.js → a\.js"):
        bundle(sources)
    with pytest.raises(ScriptBundleError, match=r"main\.js → main\.js"):
        bundle({"main.js": 'import { a } from "./main.js";'})


@pytest.mark.parametrize(
    "line",
    [
        'import a from "./a.js";',
        'import "./a.js";',
        "import {",
        "import { a } from './a.js';",
        'import { a } from "https://example.org/a.js";',
        'const a = await import("./a.js");',
        "export default 1;",
        "export { a };",
        'export * from "./a.js";',
        "export let a = 1;",
        "export const { a, b } = c;",
        "console.log(import.meta.url);",
        'const s = "</script>";',
        'const s = "<!--";',
    ],
)
def test_other_syntax_is_refused_with_its_file_and_line(line: str) -> None:
    with pytest.raises(ScriptBundleError, match=r"main\.js, line 3: "):
        bundle({"main.js": f"// a page\n\n{line}", "a.js": "export const a = 1;"})


def test_code_that_only_resembles_imports_is_unchanged() -> None:
    text = "const important = 1;\nconst exported = { import: 2, export: 3 };\n// exports and imports"
    assert text in bundle({"main.js": text})


def test_missing_modules_and_exports_are_named() -> None:
    with pytest.raises(ScriptBundleError, match=r"main\.js, line 1: there is no module views/heads\.js"):
        bundle({"main.js": 'import * as heads from "./views/heads.js";'})
    with pytest.raises(ScriptBundleError, match=r"a\.js does not export b; it exports: a"):
        bundle({"main.js": 'import { b } from "./a.js";', "a.js": "export const a = 1;"})
    with pytest.raises(ScriptBundleError, match="no such module"):
        bundle({"other.js": ""})


@pytest.mark.parametrize("text", ["I am a student", "나는 학생이다", NASTY, "lone \udc80 surrogate", ""])
def test_every_text_comes_back_and_none_becomes_an_element(text: str) -> None:
    text_given = document(text)
    page = Elements(render(text_given).encode("utf-8", "backslashreplace").decode())
    plain = Elements(render(document("quiet")))
    assert [(tag, set(attributes)) for tag, attributes, _ in page.found] == [
        (tag, set(attributes)) for tag, attributes, _ in plain.found
    ]
    (document_text,) = [content for attributes, content in page.all("script") if attributes.get("id") == "document"]
    assert not set(document_text) & set("<>&"), "no parser can see a tag, a comment or a reference"
    read = json.loads(document_text)
    del text_given["arrays"]["a0"]["data"]
    assert read == text_given


def test_arrays_stand_in_elements_of_their_own() -> None:
    page = Elements(render(document()))
    (data,) = [text for attributes, text in page.all("script") if attributes.get("id") == "array-a0"]
    assert struct.unpack("<4f", zlib.decompress(base64.b64decode(data))) == tuple(NUMBERS)


@pytest.mark.parametrize("array", [{"a 0": {"data": ""}}, {"a0": {"data": "<b>"}}, {"a0": {}}])
def test_an_array_that_could_be_markup_is_refused(array: dict[str, dict[str, str]]) -> None:
    arrays = {name: {"shape": [0], "type": "uint8", **rest} for name, rest in array.items()}
    with pytest.raises(PictureError):
        render(document(arrays=arrays))


def test_numbers_that_json_lacks_are_refused() -> None:
    with pytest.raises(PictureError, match="null"):
        render(document(series={"context": [float("nan")]}))


def test_the_page_needs_nothing_else() -> None:
    text = render(document())
    page = Elements(text)
    assert not {tag for tag, _, _ in page.found} & {"link", "iframe", "img", "object", "embed", "base"}
    assert not any("src" in attributes or "href" in attributes for _, attributes, _ in page.found)
    assert not any(name.startswith("on") for _, attributes, _ in page.found for name in attributes)
    addresses = set(re.findall(r"https?:[^\"'\s)]*", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}, "the only address is the name of SVG"
    assert not re.search(r"@import|url\(|\bfetch\(|XMLHttpRequest|innerHTML|outerHTML|insertAdjacentHTML|eval\(", text)


def test_the_policy_allows_this_script_alone() -> None:
    page = Elements(render(document(NASTY)))
    (policy,) = [str(m["content"]) for m, _ in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    (code,) = [text for attributes, text in page.all("script") if not attributes]
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';")


def test_the_shell_is_small() -> None:
    sources = {path: text for path, text in read_modules(HERE / "script").items() if "/" not in path}
    shell = sum(len(text.encode()) for text in sources.values())
    shell += sum(len(path.read_bytes()) for path in [HERE / "template.html", *(HERE / "style").glob("[0-9]-*.css")])
    assert shell < 200_000


def test_the_language_is_the_documents_unless_another_is_asked_for(tmp_path: Path) -> None:
    write_page(tmp_path / "en.html", document())
    write_page(tmp_path / "ko.html", document(), language="ko")
    for language in ("en", "ko"):
        page = Elements((tmp_path / f"{language}.html").read_text(encoding="utf-8"))
        assert page.all("html")[0][0] == {"lang": language}
        (document_text,) = [text for attributes, text in page.all("script") if attributes.get("id") == "document"]
        assert json.loads(document_text)["language"] == language
    with pytest.raises(PictureError, match="'fr'"):
        write_page(tmp_path / "fr.html", document(), language="fr")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["en.html", "ko.html"]
