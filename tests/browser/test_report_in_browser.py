"""The report in a real browser: what is drawn stands at its numbers, in both languages, and no text becomes code."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from browsing import CELLS, HANGUL, expect, point, press

from heedful.lens.page.rendering import catalog
from heedful.lens.report import AttentionMap, Confusion, ForecastPlot, ReportData, ScoreRow, SeenImage, write_report
from tiny_report import full_report

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

SECTIONS = [
    *("facts", "scores", "notes", "constructions", "by_length", "comparison", "curves", "confusion", "samples"),
    *("continuations", "images", "forecasts", "attention", "training", "reading", "positions"),
]
DOT = (  # the smallest picture there is
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00:~\x9bU"
    b"\x00\x00\x00\nIDATx\x9cc`\x00\x00\x00\x02\x00\x01H\xaf\xa4q\x00\x00\x00\x00IEND\xaeB`\x82"
)
Opens = Callable[..., "Page"]


def report(language: str = "en", text: str = "") -> ReportData:
    full = full_report(language, text)
    return replace(full, images=[replace(image, png=DOT) for image in full.images])


@pytest.fixture
def opens(browser: Browser, tmp_path: Path) -> Iterator[Opens]:
    """Opens the page of a report from a file, without a network; the browser has no complaint."""
    opened: list[Any] = []
    troubles: list[str] = []

    def open_page(data: ReportData, **window: Any) -> Page:
        settings: dict[str, Any] = {
            "viewport": {"width": 1280, "height": 900},
            "color_scheme": "light",
            "offline": True,
        } | window
        context = browser.new_context(**settings)
        opened.append(context)
        context.set_default_timeout(60_000)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.goto(write_report(tmp_path / f"{len(opened)}.html", data).as_uri())
        page.evaluate("() => void dispatchEvent(new Event('beforeprint'))")  # every section is drawn
        expect(page.locator(".figure-stage.waiting")).to_have_count(0)
        return page

    yield open_page
    for context in opened:
        context.close()
    assert troubles == []


def section(page: Page, name: str) -> Locator:
    return page.locator(f'section[data-view="{name}"]')


def texts(drawn: Locator) -> list[str]:
    return drawn.all_text_contents()


def points(chart: Locator) -> list[list[list[float]]]:
    """The lines of a chart in the units of its axes, by the places of their marks."""
    drawn = chart.evaluate("""(chart) => {
      const place = (node) => { const b = node.getBBox(); return [b.x + b.width / 2, Number(node.getAttribute("y"))]; };
      const value = (node) => Number(node.textContent.replace("−", "-").replaceAll(",", ""));
      const marks = [...chart.querySelectorAll("svg g[role=img] > g:nth-of-type(1) text")];
      const feet = [...chart.querySelectorAll("svg g[role=img] > g:nth-of-type(2) text")];
      return {
        ys: marks.map((node) => [place(node)[1] - 4, value(node)]),
        xs: feet.map((node) => [place(node)[0], value(node)]),
        lines: [...chart.querySelectorAll("svg g[role=img] > path")].map((node) => node.getAttribute("d")),
      };
    }""")
    (x0, x_value), (x1, x_other) = drawn["xs"][0], drawn["xs"][-1]
    (y0, y_value), (y1, y_other) = drawn["ys"][0], drawn["ys"][-1]
    return [
        [
            [
                x_value + (float(x) - x0) * (x_other - x_value) / (x1 - x0),
                y_value + (float(y) - y0) * (y_other - y_value) / (y1 - y0),
            ]
            for x, y in re.findall(r"[ML]([-\d.]+) ([-\d.]+)", path)
        ]
        for path in drawn["lines"]
    ]


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_section_is_drawn_in_both_languages_and_themes(language: str, scheme: str, opens: Opens) -> None:
    page = opens(report(language), color_scheme=scheme)
    expect(page.locator("html")).to_have_attribute("lang", language)
    expect(page.locator("html")).to_have_attribute("data-theme", scheme)
    names = page.locator("section.view").evaluate_all("(nodes) => nodes.map((node) => node.dataset.view)")
    assert names == SECTIONS
    assert page.locator(".failure").count() == 0
    assert len(texts(page.locator("nav a"))) == len(SECTIONS)
    assert all(bool(HANGUL.search(text)) == (language == "ko") for text in texts(page.locator("h2")))
    press(page, f"language:{'ko' if language == 'en' else 'en'}")
    expect(page.locator("#view-scores h2")).to_have_text("점수" if language == "en" else "Scores")


def test_the_korean_page_has_no_english_labels(opens: Opens) -> None:
    text = opens(report("ko")).locator("#page").inner_text()
    english, korean = (
        {
            (name, key): message
            for name, part in {"names": messages["names"], **messages["report"]}.items()
            for key, message in part.items()
        }
        for messages in map(catalog, ("en", "ko"))
    )
    labels = {message for key, message in english.items() if message != korean[key] and "{" not in message}
    data_labels = {"Run", "Model", "Exact match", "Test", "the output", "mean", "source", "test"}  # the data's own
    assert [label for label in labels - data_labels if re.search(rf"\b{re.escape(label)}\b", text)] == []


def test_sentences_of_the_data_are_translated_and_the_readers_own_words_are_not(opens: Opens) -> None:
    data = ReportData(
        title="day: close: 5 steps from 30",
        language="ko",
        scores=[ScoreRow("test", "MSE of tomorrow = today", 1.5, signature="context 64, stride 32")],
        notes=["It beat tomorrow = today: MSE 1.5 against 3, 50.0 % less."],
        reading={
            "columns": ["text", "day"],
            "notes": [
                "day: the last 3 steps are beyond the split and not used",
                "texts truncated at 8 tokens: 1 (a:1)",
            ],
            "files": [{"path": "text", "format": "table"}],
            "labels": {"question": 3, "time": 1},
            "skipped_files": {},
        },
    )
    page = opens(data)
    expect(page.locator("h1")).to_have_text("day: close, 30스텝을 읽고 5스텝 예측")
    expect(page).to_have_title("day: close, 30스텝을 읽고 5스텝 예측 · Heedful")
    expect(section(page, "scores")).to_contain_text("‘내일 = 오늘’ 예측의 MSE")
    expect(section(page, "scores")).to_contain_text("컨텍스트 64, 간격 32")
    expect(section(page, "notes")).to_contain_text("‘내일 = 오늘’ 예측보다 낫습니다. MSE 1.5 대 3, 50.0% 작습니다.")
    reading = section(page, "reading")
    assert texts(reading.locator("dd")) == ["text, day"]
    assert texts(reading.locator("h3 ~ p[dir]")) == [
        "day: 마지막 3스텝은 분할에 들지 않아 쓰지 않습니다",
        "토큰 8개까지만 남긴 텍스트: 1 (a:1)",
    ]
    assert texts(reading.locator("tbody th, tbody td")) == ["text", "표"]
    expect(reading.locator("svg").last).to_contain_text("question")
    expect(reading.locator("svg").last).to_contain_text("time")


def test_text_in_any_field_stays_text(opens: Opens) -> None:
    attack = "<img src=x onerror=window.broken=1>"
    page = opens(report(text=attack))
    press(page, "language:ko")
    expect(page.locator("html")).to_have_attribute("lang", "ko")
    assert page.evaluate("() => typeof window.broken") == "undefined"
    assert page.locator("#page img, #page script").count() == 0
    expect(page.locator("h1")).to_have_text(f"Report{attack}")
    text = page.locator("#page").text_content() or ""
    for part in ("tiny", "nrefs:1", "Transformer", "heads", "a note", "ROMEO:", "seven.png", "price"):
        assert f"{part}{attack}" in text, part


def test_curves_stand_at_their_numbers(opens: Opens) -> None:
    data = report()
    training = section(opens(data), "training")
    assert texts(training.locator("figcaption b")) == ["Loss", "BLEU", "", "Learning rate"]
    for line, kind in zip(points(training.locator("figure").first), ("train", "valid"), strict=True):
        rows = [row for row in data.log if row["kind"] == kind]
        for (x, y), row in zip(line, rows, strict=True):
            assert [x, y] == pytest.approx([row["step"], row["loss"]], abs=0.06)
    expect(training).to_contain_text("Lowest validation loss: 1.125, at step 8.")


def test_a_value_that_is_not_finite_is_a_gap(opens: Opens) -> None:
    losses = [1.0, 2.0, float("nan"), float("inf"), 1.5]
    log = [{"kind": "train", "step": step, "loss": loss} for step, loss in enumerate(losses)]
    training = section(opens(ReportData(title="x", log=log)), "training")
    path = training.locator("svg g[role=img] > path").get_attribute("d") or ""
    assert (path.count("M"), path.count("L")) == (2, 1)
    expect(training).to_contain_text("left out of the curves: 2.")


def test_scores_by_length_stand_over_their_bucket(opens: Opens) -> None:
    drawn = section(opens(report()), "by_length")
    titles = texts(drawn.locator("circle title"))
    assert titles[1] == "Transformer · 6–10 (20 sentences): 60"
    assert len(titles) == 5, "GRU has no 6–10"
    lines = [path.get_attribute("d") or "" for path in drawn.locator("svg g[role=img] > path").all()]
    assert [line.count("M") for line in lines] == [1, 2]


def test_bars_are_as_long_as_their_share(opens: Opens) -> None:
    drawn = section(opens(report()), "constructions")
    widths = [float(node.get_attribute("width") or "") for node in drawn.locator("svg rect").all()]
    assert widths[1] / widths[0] == pytest.approx(0.75)
    assert widths[3] == 0
    assert texts(drawn.locator("svg text")) == ["tense", "75.0% (45/60)", "polarity", "– (0)"]


def test_every_weight_is_a_cell_in_its_place_and_color(opens: Opens) -> None:
    weights = torch.rand(3, 4, 5, generator=torch.Generator().manual_seed(0))
    sources, targets = ["a", "<b>", "c", "d", "."], ["I", "go", "&", "x" * 50]
    page = opens(ReportData(title="x", attention=[AttentionMap("map", sources, targets, weights)]))
    drawn = section(page, "attention")
    large = drawn.locator("svg.map")
    names = texts(large.locator("> g").first.locator("text"))
    assert names == [*sources, *targets[:3], "x" * 13 + "…"]

    def check(expected: torch.Tensor) -> None:
        expect(drawn.locator(f"{CELLS} + text")).to_have_text([f"{value:.2f}" for value in expected.flatten().tolist()])
        fills = [cell.get_attribute("fill") or "" for cell in large.locator("g > rect:not(.cross)").all()]
        light = [sum(map(int, re.findall(r"\d+", fill))) for fill in fills]
        order = torch.argsort(expected.flatten()).tolist()
        assert [light[place] for place in order] == sorted(light, reverse=True), "more is always darker"

    check(weights.mean(dim=0))
    expect(drawn.locator(".thumb")).to_have_count(3)
    drawn.locator(".thumb").nth(1).click()
    expect(drawn.locator("figcaption span")).to_have_text("Head 1")
    check(weights[1])
    cell = large.locator("g > rect:not(.cross)").nth(7)
    cell.scroll_into_view_if_needed()
    point(page, cell)
    expect(drawn.locator(".said")).to_have_text(f"go ← c: {weights[1][1, 2]:.2f}")


def test_tables_have_the_rows_and_columns_of_their_data(opens: Opens) -> None:
    scores = [ScoreRow("a", "BLEU", 1.0), ScoreRow("a", "chrF", 2.0), ScoreRow("b", "BLEU", 3.0)]
    table = section(opens(ReportData(title="x", scores=scores)), "scores")
    assert texts(table.locator("thead th")) == ["Set", "BLEU", "chrF"]
    assert texts(table.locator("tbody th")) == ["a", "b"]
    assert texts(table.locator("td")) == ["1.00", "2.00", "3.00", "–"]
    many = [ScoreRow("a", f"metric {n}", 1.0) for n in range(6)]
    tall = section(opens(ReportData(title="x", scores=many)), "scores")
    assert texts(tall.locator("thead th")) == ["Score", "a"]
    page = opens(report())
    assert texts(section(page, "scores").locator("td")) == ["31.25 (30.50 – 32.00)"]
    assert texts(section(page, "scores").locator("dd.mono")) == ["nrefs:1"]
    assert texts(section(page, "comparison").locator("thead th")) == ["Run", "BLEU", "Time"]
    assert texts(section(page, "comparison").locator("td")) == ["31.25", "–", "–", "1:02"]


def test_data_report_groups_are_bars_or_tables(opens: Opens) -> None:
    reading = {
        "files": [{"path": f"part-{n}.tsv", "pairs": n} for n in range(50)],
        "kept": 12000,
        "dropped": {"empty": {"count": 1, "first": ["a.tsv:3"]}, "odd reason": 3},
        "characters": {"source": {"mean": 21.3, "longest": 80}, "target": {"mean": 30.0, "longest": 95}},
        "skipped_files": {},
    }
    drawn = section(opens(ReportData(title="x", language="ko", reading=reading)), "reading")
    assert texts(drawn.locator("dd")) == ["12,000"]
    assert texts(drawn.locator("h3")) == ["파일", "제외", "문자 수"]
    widths = [float(node.get_attribute("width") or "") for node in drawn.locator("svg rect").all()]
    assert [widths[1] / widths[0], widths[3] / widths[2]] == pytest.approx([0.25, 0.75])
    expect(drawn).to_contain_text("처음 나온 곳: a.tsv:3")
    expect(drawn).to_contain_text("50개 중 40개를 보여 줍니다.")
    last = drawn.locator("table").last
    assert [texts(row.locator("th, td")) for row in last.locator("tr").all()] == [
        ["", "평균", "최대"],
        ["원문", "21.30", "80"],
        ["타깃", "30.00", "95"],
    ]


def test_samples_mark_what_differs(opens: Opens) -> None:
    drawn = section(opens(report()), "samples")
    assert texts(drawn.locator("h3")) == ["Worst", "Random", "Best"]
    assert set(texts(drawn.locator("dd del"))) == {"reference"}
    assert set(texts(drawn.locator("dd ins"))) == {"output"}
    expect(drawn).to_contain_text("12 of 12 are shown.")


def test_a_confusion_is_drawn_as_shares_and_its_mistakes_are_listed(opens: Opens) -> None:
    data = ReportData(title="x", confusion=Confusion(["cat", "dog"], [[6, 2], [0, 4]]))
    drawn = section(opens(data), "confusion")
    assert texts(drawn.locator(f"{CELLS} + text")) == ["0.75", "0.25", "1.00"]
    assert texts(drawn.locator("li")) == ["cat classified as dog: 2"]


def test_patches_stand_under_their_steps_and_the_most_seen_is_the_strongest(opens: Opens) -> None:
    plot = ForecastPlot("x", [1.0, 2.0, 3.0, 4.0], [5.0], [6.0], {"naive": [4.0]}, [(0, 2), (2, 4)], [0.2, 0.8])
    drawn = section(opens(ReportData(title="x", forecasts=[plot])), "forecasts")
    names = [text for text in texts(drawn.locator("svg text")) if text.isalpha()]
    assert names == ["known", "forecast", "actual", "naive"]
    read = "(bars) => bars.map((bar) => ['x', 'fill'].map((key) => bar.getAttribute(key)))"
    (first, pale), (second, deep) = drawn.locator('svg rect[rx="3"]').evaluate_all(read)
    assert float(first) < float(second)
    assert sum(map(int, re.findall(r"\d+", pale))) > sum(map(int, re.findall(r"\d+", deep)))


def test_what_a_head_saw_most_of_an_image_has_the_strongest_color(opens: Opens) -> None:
    seen = SeenImage("x", DOT, [("a", 1.0)], "a", [[[0.8, 0.1], [0.1, 0.0]]])
    drawn = section(opens(ReportData(title="x", images=[seen])), "images")
    read = "(veils) => veils.map((veil) => ['x', 'y', 'opacity'].map((key) => Number(veil.getAttribute(key))))"
    veils = drawn.locator('svg g[pointer-events="none"] rect').evaluate_all(read)
    assert [tuple(veil[:2]) for veil in veils if veil[2] == 1] == [(0, 0)]
    assert len(veils) == 3, "what was not looked at is clear"
    expect(drawn).to_contain_text("correct")


def test_positions_say_which_corner_is_shown(opens: Opens) -> None:
    drawn = section(opens(ReportData(title="x", positions=torch.rand(200, 512))), "positions")
    expect(drawn).to_contain_text("The first 100 of 200 positions × the first 128 of 512 dimensions")
    expect(drawn.locator("svg image").first).to_be_visible()
    whole = section(opens(report()), "positions")
    expect(whole.locator("svg image").first).to_be_visible()
    expect(whole.locator(".figure-note")).to_have_count(0)


def test_paper_is_always_light(opens: Opens) -> None:
    page = opens(report(), color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.emulate_media(media="print", color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.emulate_media(media="screen", color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_nothing_is_wider_than_a_phone_and_one_section_has_no_contents(opens: Opens) -> None:
    page = opens(report(), viewport={"width": 360, "height": 740})
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
    single = opens(ReportData(title="Nothing yet"))
    expect(single.locator("h1")).to_have_text("Nothing yet")
    assert single.locator("nav, section").count() == 0
