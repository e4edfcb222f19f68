"""The report is one well-formed file that runs nothing, fetches nothing and shows only what it was given."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch
from page_reader import full_report, parsed

from heedful.errors import PictureError
from heedful.lens.report import AttentionMap, ReportData, render, write_report
from heedful.lens.report.markup import escape, tag
from heedful.lens.report.names import NAMES
from heedful.lens.report.style import stylesheet
from heedful.lens.report.words import LANGUAGES, WORDS, Words, decimal, number

ATTACKS = ["<script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>", "</style></title><b>", "&lt;{title}%s"]
EMPTY = ReportData(title="Nothing yet")
PARTS = [field.name for field in fields(ReportData) if field.name not in ("title", "language")]


def shown(data: ReportData) -> list[str]:
    names = [section.attributes["id"] for section in parsed(render(data)).find("section")]
    return [name or "" for name in names]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_full_report_is_well_formed_and_complete(language: str) -> None:
    page = parsed(render(full_report(language)))
    assert page.find("html", lang=language)
    assert page.find("meta", charset="utf-8")
    sections = page.find("section")
    assert sorted(section.attributes["id"] or "" for section in sections) == sorted(
        "training" if part == "log" else part for part in PARTS
    )
    links = [link.attributes["href"] for link in page.find("nav")[0].find("a")]
    assert links == [f"#{section.attributes['id']}" for section in sections]
    ids = [node.attributes["id"] for node in page.walk() if "id" in node.attributes]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("attack", ATTACKS)
def test_text_in_any_field_stays_text(attack: str) -> None:
    harmless = re.sub(r"\S", "~", attack)
    safe, attacked = (parsed(render(full_report(text=text))) for text in (harmless, attack))
    names = [node.name for node in attacked.walk()]
    assert names == [node.name for node in safe.walk()], "the text made or broke an element"
    assert not {"script", "img", "iframe", "link", "object"} & set(names)
    for before, after in zip(safe.walk(), attacked.walk(), strict=True):
        assert set(before.attributes) == set(after.attributes), "the text made an attribute"
    for part in ("Report", "model", "tiny", "test", "nrefs:1", "tense", "Transformer", "heads", "a note"):
        assert f"{part}{attack}" in attacked.text


def test_nothing_is_fetched_and_nothing_runs() -> None:
    markup = render(full_report())
    page = parsed(markup)
    for node in page.walk():
        for key, value in node.attributes.items():
            assert not key.startswith("on"), f"<{node.name} {key}>"
            if key in ("href", "src", "xlink:href", "data", "action"):
                assert re.match(r"#[a-z_]+$|data:image/png;base64,", value or ""), f"<{node.name} {key}={value!r}>"
    assert "//" not in re.sub(r"base64,[^\"]*", "", markup), "a page without scripts needs no // but in an address"
    assert "@import" not in markup
    assert "url(" not in markup
    policy = page.find("meta", http_equiv="Content-Security-Policy")[0].attributes["content"] or ""
    assert policy.startswith("default-src 'none';")
    assert "script-src" not in policy


@pytest.mark.parametrize("part", PARTS)
def test_a_missing_part_is_absent(part: str) -> None:
    name = "training" if part == "log" else part
    full = full_report()
    assert name in shown(full)
    assert shown(replace(full, **{part: getattr(EMPTY, part)})) == [other for other in shown(full) if other != name]
    assert shown(replace(EMPTY, **{part: getattr(full, part)})) == [name]


def test_a_report_of_nothing_is_still_a_page() -> None:
    page = parsed(render(EMPTY))
    assert page.find("h1")[0].text == "Nothing yet"
    assert not page.find("section")
    assert not page.find("nav")


@pytest.mark.parametrize("table", [WORDS, NAMES], ids=["words", "names"])
def test_every_label_has_both_languages(table: dict[str, tuple[str, str]]) -> None:
    for key, label in table.items():
        assert len(label) == len(LANGUAGES), key
        assert all(label), key
        places = [sorted(re.findall(r"{(\w+)}", text)) for text in label]
        assert places[0] == places[1], f"{key} holds other values in one language"
        assert not re.search("[가-힣]", label[0]), key
        assert re.search("[가-힣]", label[1]) or label[0] == label[1], key


def test_the_korean_page_has_no_english_labels() -> None:
    text = parsed(render(full_report("ko"))).find("body")[0].text
    english = {label[0] for label in (*WORDS.values(), *NAMES.values()) if label[0] != label[1] and "{" not in label[0]}
    given = {"Run", "Model", "Exact match", "Test", "the output", "mean", "source", "test"}
    assert [label for label in english - given if re.search(rf"\b{re.escape(label)}\b", text)] == []


def test_a_large_report_stays_below_a_megabyte(tmp_path: Path) -> None:
    words = [f"단어{n}" for n in range(30)]
    maps = [AttentionMap(f"map {n}", words, words, torch.rand(8, 30, 30)) for n in range(12)]
    full = full_report()
    log = [{"kind": "train", "step": n, "loss": 1 / n, "lr": n, "grad_norm": n} for n in range(1, 100_000)]
    data = replace(full, attention=maps, log=log, samples=[*full.samples] * 500)
    path = write_report(tmp_path / "deep" / "report.html", data)
    assert path.stat().st_size < 1_000_000
    page = parsed(path.read_text("utf-8"))
    left_out = page.find("p", class_="note")[0].text
    assert "map 0 (each head)" in left_out
    assert "map 11" in left_out, "what is left out is said"


def test_the_same_data_gives_the_same_bytes(tmp_path: Path) -> None:
    one, other = (write_report(tmp_path / name, full_report()).read_bytes() for name in ("a.html", "b.html"))
    assert one == other
    assert b"\r" not in one


def test_what_cannot_be_written_is_replaced(tmp_path: Path) -> None:
    path = write_report(tmp_path / "r.html", ReportData(title="a\x00b\ud800c\x1b", notes=["\ufffe"]))
    assert "a\ufffdb\ufffdc\ufffd" in path.read_text("utf-8")


def test_markup_is_escaped_once() -> None:
    inner = tag("b", "a < b & c")
    assert inner == "<b>a &lt; b &amp; c</b>"
    assert tag("p", inner, None, " > ", title='"', hidden=None) == f'<p title="&quot;">{inner} &gt; </p>'
    assert escape(inner) is inner


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(PictureError, match=r"'kr' .*did you mean 'ko'|allowed: en, ko"):
        render(ReportData(title="x", language="kr"))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (12345, "12,345"),
        (4000.0, "4,000"),
        (0.123456, "0.1235"),
        (3e-05, "3e-05"),
        (1e38, "1e+38"),
        (float("nan"), "–"),
    ],
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert number(value) == text


def test_values_of_a_column_have_equal_places() -> None:
    assert [decimal(value) for value in (94.1, 7.0, 0.0871, 0.0, 1e-5)] == ["94.10", "7.00", "0.0871", "0.000", "1e-05"]
    korean = Words("ko")
    assert [korean.value(value) for value in (True, None, ["a", 2], 3.5)] == ["예", "–", "a, 2", "3.50"]


def test_every_colour_named_is_there_in_light_and_dark() -> None:
    style = stylesheet()
    dark = re.search(r"prefers-color-scheme:dark\){:root{(.*?)}}", style)
    light = re.match(r":root{(.*?)}", style)
    assert light
    assert dark
    named = [set(re.findall(r"(--\w+):", block.group(1))) for block in (light, dark)]
    assert named[0] == named[1]
    assert set(re.findall(r"var\((--\w+)\)", style)) - {"--hue", "--korean"} <= named[0]
    assert style.count("{") == style.count("}")
