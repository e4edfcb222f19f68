"""The report is one well-formed file that runs nothing but its script, fetches nothing and shows what it was given."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from test_page import Elements

from heedful.data.report import CorpusReport, ImageReport, PairReport, SeriesReport, TextReport
from heedful.errors import PictureError
from heedful.lens.page.rendering import HERE, LANGUAGES, catalog, modules, script, style
from heedful.lens.report import AttentionMap, ReportData, render, write_report
from heedful.tasks.forecasting.data import PARTS
from heedful.tasks.forecasting.scoring import SPOKEN
from heedful.tasks.question_answering.task import ANSWERABLE, UNANSWERABLE
from heedful.training.metrics import Trained, row_of
from tiny_report import full_report

ATTACKS = ["<script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>", "</style></title><b>", "&lt;{title}%s"]


def document(page: str) -> dict[str, Any]:
    (document_text,) = [text for attributes, text in Elements(page).all("script") if attributes.get("id") == "document"]
    assert not set(document_text) & set("<>&"), "no parser can see a tag, a comment or a reference"
    result: dict[str, Any] = json.loads(document_text)
    return result


def texts(value: object) -> set[str]:
    """Every text within, also the keys."""
    if isinstance(value, dict):
        return set(value).union(*map(texts, value.values()))
    if isinstance(value, list):
        return set().union(*map(texts, value))
    return {value} if isinstance(value, str) else set()


@pytest.mark.parametrize("attack", ATTACKS)
def test_text_in_any_field_stays_text(attack: str) -> None:
    harmless = re.sub(r"\S", "~", attack)
    safe, attacked = (Elements(render(full_report(text=text))) for text in (harmless, attack))
    shape = [[(tag, set(attributes)) for tag, attributes, _ in page.found] for page in (safe, attacked)]
    assert shape[0] == shape[1], "the text made or broke an element"
    assert not {"img", "iframe", "link", "object"} & {tag for tag, _, _ in attacked.found}
    document_text = texts(document(render(full_report(text=attack))))
    for part in ("Report", "model", "tiny", "test", "nrefs:1", "tense", "Transformer", "heads", "a note"):
        assert f"{part}{attack}" in document_text


def test_nothing_is_fetched_and_only_the_pages_script_runs() -> None:
    text = render(full_report())
    page = Elements(text)
    assert not any("src" in attributes or "href" in attributes for _, attributes, _ in page.found)
    assert not any(name.startswith("on") for _, attributes, _ in page.found for name in attributes)
    assert set(re.findall(r"https?:[^\"'\s)]*", text)) <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"@import|url\(|\bfetch\(|XMLHttpRequest|innerHTML|outerHTML|insertAdjacentHTML|eval\(", text)
    (policy,) = [str(m["content"]) for m, _ in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")


def test_the_scripts_of_both_pages_hold_only_what_they_need() -> None:
    report, look = script("report"), script("look")
    assert len(report) < 0.7 * len(look)
    used = {name for text in (report, look) for name in re.findall(r'^bundled\["(.+?)"\] = ', text, re.MULTILINE)}
    assert used == set(modules("look")), "a module that no page needs"


def test_a_report_of_nothing_is_still_a_page() -> None:
    page = render(ReportData(title="Nothing yet"))
    assert set(document(page)) == {"format", "kind", "language", "title", "arrays"}
    assert Elements(page).all("title") == [({}, "Nothing yet · Heedful")]


def test_a_large_report_stays_below_a_megabyte(tmp_path: Path) -> None:
    all_texts = [f"단어{n}" for n in range(30)]
    maps = [AttentionMap(f"map {n}", all_texts, all_texts, torch.rand(8, 30, 30)) for n in range(12)]
    full = full_report()
    log = [{"kind": "train", "step": n, "loss": 1 / n, "lr": n, "grad_norm": n} for n in range(1, 100_000)]
    data = replace(full, attention=maps, log=log, samples=[*full.samples] * 500)
    assert write_report(tmp_path / "deep" / "report.html", data).stat().st_size < 1_000_000


def test_the_same_data_gives_the_same_bytes(tmp_path: Path) -> None:
    one, other = (write_report(tmp_path / name, full_report()).read_bytes() for name in ("a.html", "b.html"))
    assert one == other
    assert b"\r" not in one


def test_what_cannot_be_written_is_replaced(tmp_path: Path) -> None:
    path = write_report(tmp_path / "r.html", ReportData(title="a\x00b\ud800c\x1b", notes=["\ufffe"]))
    page = path.read_text("utf-8")
    assert "<title>a\ufffdb\ufffdc\ufffd" in page
    assert document(page)["notes"] == ["\ufffd"]


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(PictureError, match=r"'kr' .*did you mean 'ko'|allowed: en, ko"):
        render(ReportData(title="x", language="kr"))


# Messages


def flat(messages: dict[str, Any], before: str = "") -> dict[str, str]:
    """Every message by its path: "look/tokens/title"."""
    result: dict[str, str] = {}
    for key, value in messages.items():
        result |= flat(value, f"{before}{key}/") if isinstance(value, dict) else {before + key: value}
    return result


def test_every_message_has_both_languages() -> None:
    english, korean = (flat(catalog(language)) for language in LANGUAGES)
    assert list(english) == list(korean), "the same keys in the same order"
    for key, text in english.items():
        # A particle of Korean follows the sound of a number; English has none.
        places = [set(re.findall(r"{(\w+)}", one)) - {"ro", "eul"} for one in (text, korean[key])]
        assert places[0] == places[1], f"{key} holds other values in one language"
        assert bool(text) == bool(korean[key]), key
        assert not re.search("[가-힣]", text), key
        is_formula = not re.search("[a-z]{3}", re.sub(r"{\w+}", "", text).replace("softmax", "").replace("exp", ""))
        assert re.search("[가-힣]", korean[key]) or text == korean[key] or is_formula or key == "look/tokens/and", key


def test_no_message_is_unused() -> None:
    """Keys may be put together from parts, as in `${part}.title`: every part must be named by a script."""
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (HERE / "script").rglob("*.js"))
    named = set(re.findall(r"[\w-]+", " ".join(re.findall(r'"[^"\n]*"|`[^`\n]*`', sources))))
    from_documents = {
        *("translation", "post", "pre", "batch"),  # the kind of a look, norms
        *("self_attention", "cross_attention", "feed_forward"),  # the parts of a layer
        *("sinusoidal", "learned", "alibi"),  # positions
        *("train", "valid", "worst", "random", "best"),  # kinds of a log's rows, groups of samples
        "distillation",  # a token of an image
    }
    python = (HERE.parent / "pictures.py").read_text("utf-8")
    pictures = set(re.findall(r"""(?<=["'])\w+(?=["'])|(?<=[ (])\w+(?==title)""", python))
    assert set(catalog("en")["pictures"]) <= pictures
    keys = flat({name: part for name, part in catalog("en").items() if name not in ("names", "phrases", "pictures")})
    unused = [key for key in keys if not set(key.rsplit("/", 1)[-1].split(".")) <= named | from_documents]
    assert unused == []


PACKAGE = HERE.parents[1]
# Their first argument is shown in a report.
REPORTING = {"drop", "drop_kept", "skip", "note", "change", "Score", "Format", "begin"}


def reported_strings() -> Iterator[tuple[str, str]]:
    """Every string that a report may show and that is not a user's own, with the file it comes from."""
    for path in sorted([*PACKAGE.glob("data/**/*.py"), *PACKAGE.glob("tasks/**/*.py"), *PACKAGE.glob("demo/**/*.py")]):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and node.args:
                called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                of = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
                is_of_data = "data" in path.parts or path.name == "data.py"  # a model card is English
                if called in REPORTING or (called == "append" and of.endswith("notes") and is_of_data):
                    named = "7: " if called == "append" else ""  # a series is named before its note
                    yield from ((path.name, named + text) for text in literals(node.args[0]))
                signatures = [keyword.value for keyword in node.keywords if keyword.arg == "signature"]
                yield from ((path.name, text) for value in signatures for text in literals(value) if " " in text)
            elif isinstance(node, ast.FunctionDef) and node.name == "title" and "tasks" in path.parts:
                for inner in ast.walk(node):  # the run is named before it
                    if isinstance(inner, ast.Return) and inner.value:
                        yield from ((path.name, f"7: {text}") for text in literals(inner.value))
            elif isinstance(node, ast.FunctionDef) and node.name == "report_series":
                keys = [key for inner in ast.walk(node) if isinstance(inner, ast.Dict) for key in inner.keys]
                yield from ((path.name, text) for key in keys if key for text in literals(key))
    trainer = ast.parse((PACKAGE / "training" / "trainer.py").read_text(encoding="utf-8"))
    for node in ast.walk(trainer):
        if isinstance(node, ast.FunctionDef) and node.name in ("why_stop", "stop_reason"):
            returned = [inner.value for inner in ast.walk(node) if isinstance(inner, ast.Return) and inner.value]
            yield from (("trainer.py", text) for value in returned for text in literals(value))
    event = Trained(*[0.0] * len(fields(Trained)))  # type: ignore[arg-type]
    yield from (
        ("tasks", text) for text in (*PARTS.values(), *SPOKEN, "MSE of 7", "MAE of 7", ANSWERABLE, UNANSWERABLE)
    )
    yield from (("metrics.py", key) for key in row_of(event) or () if key not in ("kind", "epoch", "time"))
    for report in (PairReport(), TextReport(), CorpusReport(), ImageReport(), SeriesReport()):
        yield from (("report.py", key) for key in report.to_dict())


def literals(node: ast.expr) -> Iterator[str]:
    """The strings of an expression, those with 7 in place of what is computed."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "7" for part in parts)
        case ast.IfExp(body=body, orelse=other):
            yield from literals(body)
            yield from literals(other)


def test_every_reported_string_is_in_the_catalogs() -> None:
    messages = catalog("en")
    patterns = [re.sub(r"\\{\w+\\}", ".+", re.escape(text)) for text in messages["phrases"].values()]
    missing = {
        (file, text)
        for file, text in reported_strings()
        if re.search("[a-z]", text)  # something is not computed
        and text.lower().replace(" ", "_") not in messages["names"]
        and not any(re.fullmatch(pattern, text) for pattern in patterns)
    }
    assert missing == set(), "add a label to `names` or a sentence to `phrases` of lens/page/locales/*.json"


def test_every_phrase_of_the_catalog_is_a_sentence_of_the_code() -> None:
    """A report is translated by matching these phrases: one that is reworded in the code alone stays English."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")]
    constants = [node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    sentences = "\n".join(text for text in constants if isinstance(text, str))
    computed = {"mse_of", "mae_of"}  # the metric's name is put together
    for key, phrase in catalog("en")["phrases"].items():
        if key in computed:
            continue
        parts = re.findall(r"[\w'= -]+", re.sub(r"{\w+}", "|", phrase))
        assert [part for part in parts if part.strip() not in sentences] == [], key


def test_every_color_named_is_there_in_light_and_dark() -> None:
    sheet = style()
    light, dark = (
        set(re.findall(r"(--[\w-]+):", block))
        for block in re.findall(r":root(?:\[data-theme=\"dark\"\])? {(.*?)\n}", sheet, re.DOTALL)[:2]
    )
    assert light >= dark
    assert {"--paper", "--ink", "--line", "--accent"} <= dark
    scripts = "".join(modules("look").values())
    named = set(re.findall(r"var\((--[\w-]+)\)", sheet + scripts))
    defined = set(re.findall(r"(--[\w-]+):", sheet))
    assert named <= defined
    assert sheet.count("{") == sheet.count("}")
