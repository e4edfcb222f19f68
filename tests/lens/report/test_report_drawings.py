"""Charts, maps and pictures say the numbers they were given: coordinates are read back and compared."""

from __future__ import annotations

import base64
import io
import itertools
import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from page_reader import Node, full_report, parsed
from PIL import Image
from torch import Tensor

from heedful.core import Sinusoidal
from heedful.errors import PictureError
from heedful.lens.report import AttentionMap, Confusion, ForecastPlot, ReportData, Sample, ScoreRow, SeenImage, render
from heedful.lens.report.charts import Axis, Point, Series, line_chart
from heedful.lens.report.curves import MOST_POINTS, averaged
from heedful.lens.report.differences import marked
from heedful.lens.report.heatmap import attention_figure
from heedful.lens.report.palette import LEVELS, ON_DARK, ON_LIGHT, level_of, ramp
from heedful.lens.report.positions import signed_png, table_of
from heedful.lens.report.words import Words

ENGLISH = Words("en")


def read_back(chart: Node) -> list[list[tuple[float, float]]]:
    """The lines of a chart in the units of its own axes, by the places of their marks."""
    scales = []
    for axis in ("x", "y"):
        marks = [(node.number(axis), float(node.text.replace(",", ""))) for node in chart.find("text", class_=axis)]
        (at, value), (far, other) = marks[0], marks[-1]
        shift = 4 if axis == "y" else 0  # letters stand a little below their line
        scales.append((at - shift, value, (other - value) / (far - at)))
    (x0, x_value, x_unit), (y0, y_value, y_unit) = scales
    lines = [re.findall(r"([-\d.]+),([-\d.]+)", line.attributes["points"] or "") for line in chart.find("polyline")]
    return [
        [(x_value + (float(x) - x0) * x_unit, y_value + (float(y) - y0) * y_unit) for x, y in line] for line in lines
    ]


def test_the_curves_are_at_their_numbers() -> None:
    data = full_report()
    chart = parsed(render(data)).find("section", id="training")[0].find("figure", class_="chart")[0]
    assert chart.find("b")[0].text == "Loss"
    assert [key.text for key in chart.find("span", class_="key")] == ["training", "validation"]
    lines = read_back(chart)
    for line, kind in zip(lines, ("train", "valid"), strict=True):
        rows = [row for row in data.log if row["kind"] == kind]
        for (x, y), row in zip(line, rows, strict=True):
            assert [x, y] == pytest.approx([row["step"], row["loss"]], abs=0.03)


def test_every_quantity_of_the_log_has_a_chart() -> None:
    section = parsed(render(full_report())).find("section", id="training")[0]
    assert [chart.find("b")[0].text for chart in section.find("figure")] == ["Loss", "BLEU", "", "Learning rate"]
    assert "Lowest validation loss: 1.125, at step 8." in section.text


def test_zero_is_a_value_and_a_word_is_none() -> None:
    log = [{"kind": "valid", "step": step, "loss": loss} for step, loss in enumerate([1.0, 0.0, "nan", None, True, 2])]
    chart = parsed(render(ReportData(title="x", log=log))).find("figure", class_="chart")[0]
    assert [[round(y, 1) for _, y in line] for line in read_back(chart)] == [[1.0, 0.0, 2.0]]


def test_a_value_that_is_not_finite_is_a_gap() -> None:
    points = [Point(0, 1.0), Point(1, 2.0), Point(2, math.nan), Point(3, math.inf), Point(4, 1.5)]
    chart = parsed(line_chart("loss", [Series("a", points)], "step"))
    assert [len(line) for line in read_back(chart)] == [2, 1]
    assert line_chart("loss", [Series("a", points[2:4])], "step") == ""
    log = [{"kind": "train", "step": n, "loss": math.nan if n == 3 else 1.0} for n in range(5)]
    assert "gaps in the curves: 1." in render(ReportData(title="x", log=log))


@pytest.mark.parametrize("values", [[0.0], [5.0, 5.0], [1e-14, 2e-14], [1e9, 1e9 + 1e-7], [-3.0, 1e30], [0.97, 0.99]])
def test_axes_hold_all_their_values_between_round_marks(values: list[float]) -> None:
    for rounded in (True, False):
        axis = Axis.over(values, 10, 110, rounded=rounded)
        assert axis.ticks == sorted(set(axis.ticks))
        assert all(10 <= axis.at(value) <= 110 for value in values)
    assert 2 <= len(Axis.over(values, 0, 100, rounded=True).ticks) <= 7


def test_long_curves_are_means_of_groups() -> None:
    points = [Point(float(n), float(n % 2)) for n in range(2 * MOST_POINTS)]
    assert averaged(points) == [Point(2 * n + 0.5, 0.5) for n in range(MOST_POINTS)]
    assert averaged(points[:3]) == points[:3]
    assert averaged([]) == []


def test_scores_by_length_stand_over_their_bucket() -> None:
    section = parsed(render(full_report())).find("section", id="by_length")[0]
    buckets = [node.number("x") for node in section.find("text", class_="x")]
    assert [node.text for node in section.find("text", class_="x")] == ["1–5", "6–10", "11+"]
    dots = section.find("circle")
    assert [dot.number("cx") for dot in dots] == [*buckets, buckets[0], buckets[2]], "GRU has no 6–10"
    assert dots[1].text == "Transformer · 6–10 (20 sentences): 60"
    heights = {float(node.text): node.number("y") - 4 for node in section.find("text", class_="y")}
    unit = (heights[100] - heights[0]) / 100
    assert [round((dot.number("cy") - heights[0]) / unit, 0) for dot in dots] == [90, 60, 30, 80, 10]


def test_bars_are_as_long_as_their_share() -> None:
    section = parsed(render(full_report())).find("section", id="constructions")[0]
    assert [bar.number("width") for bar in section.find("rect", class_="fill")] == [75.0, 0.0]
    assert [cell.text for cell in section.find("td", class_="number")] == ["75.0 % (45/60)", "– (0)"]
    assert [cell.text for cell in section.find("th", scope="row")] == ["tense", "polarity"]


@pytest.mark.parametrize("heads", [0, 3])
def test_every_weight_is_a_cell_in_its_place_and_colour(heads: int) -> None:
    shape = (heads, 4, 5) if heads else (4, 5)
    weights = torch.rand(*shape, generator=torch.Generator().manual_seed(0))
    sources, targets = ["나는", "<b>", "간다", "👍", "."], ["I", "go", "&", "x" * 50]
    figure = parsed(attention_figure(AttentionMap("map", sources, targets, weights), ENGLISH))
    drawings = figure.find("svg", role="img")
    maps = [weights.mean(dim=0), *weights] if heads else [weights]
    assert len(drawings) == len(maps)
    for drawing, expected in zip(drawings, maps, strict=True):
        top = float(expected.max() if drawing is drawings[0] else weights.max())
        drawn = {(int(cell.number("y")), int(cell.number("x"))): cell for cell in cells(drawing)}
        for place in itertools.product(range(4), range(5)):
            level = level_of(float(expected[place]) / top)
            assert (place in drawn) == (level > 0), "what is next to nothing is the ground's"
            if level:
                assert drawn[place].attributes["class"] == f"h{level}"
                assert drawn[place].text.endswith(f" ← {sources[place[1]]}: {expected[place]:.2f}")
    labels = [node.text for node in drawings[0].find("text")]
    assert labels == [*targets[:3], "x" * 17 + "…", *sources]


def cells(drawing: Node) -> list[Node]:
    return [cell for cell in drawing.find("rect") if (cell.attributes["class"] or "").startswith("h")]


def test_words_stand_beside_their_row_and_column() -> None:
    weights = torch.eye(3)
    drawing = parsed(attention_figure(AttentionMap("map", ["가", "나", "다"], ["a", "b", "c"], weights), ENGLISH))
    group = drawing.find("g")[0].attributes["transform"] or ""
    left, top, size = map(float, re.findall(r"[\d.]+", group))
    texts = drawing.find("text")
    assert [round((node.number("y") - top) / size - 0.5) for node in texts[:3]] == [0, 1, 2]
    starts = [float(re.findall(r"[\d.]+", node.attributes["transform"] or "")[0]) for node in texts[3:]]
    assert [math.floor((start - left) / size) for start in starts] == [0, 1, 2]


@pytest.mark.parametrize(
    ("weights", "heads", "words"),
    [
        (torch.ones(2, 2), None, "names 1 target and 2 source words"),
        (torch.ones(1, 1, 1, 2), None, r"must be \(T, S\)"),
        (torch.ones(2), None, r"must be \(T, S\)"),
        ([], None, "none of them 0"),
        (torch.full((1, 2), 3.0), None, "were they scores"),
        (torch.full((1, 2), math.nan), None, "were they scores"),
        (torch.ones(2, 1, 2), ["one"], "names 1 heads and has 2"),
    ],
)
def test_maps_that_cannot_be_drawn_are_refused(weights: Tensor, heads: list[str] | None, words: str) -> None:
    with pytest.raises(PictureError, match=words):
        attention_figure(AttentionMap("map", ["a", "b"], ["c"], weights, heads), ENGLISH)


@pytest.mark.parametrize(("stops", "sign"), [(ON_LIGHT, -1), (ON_DARK, 1)], ids=["light", "dark"])
def test_the_ramp_is_read_by_lightness_alone(stops: tuple[str, ...], sign: int) -> None:
    """Whoever sees no hue sees every step go the same way."""
    colours = ramp(stops)
    linear = [[(int(colour[n : n + 2], 16) / 255) ** 2.2 for n in (1, 3, 5)] for colour in colours]
    light = [0.2126 * red + 0.7152 * green + 0.0722 * blue for red, green, blue in linear]
    assert len(colours) == LEVELS
    assert (colours[0], colours[-1]) == (stops[0], stops[-1])
    assert all(sign * (after - before) > 0 for before, after in itertools.pairwise(light))


def pixels_of(png: bytes) -> Tensor:
    return torch.from_numpy(np.array(Image.open(io.BytesIO(png)).convert("RGBA"))).int()


def test_the_picture_of_positions_holds_the_table() -> None:
    table = Sinusoidal(128).table(100)
    href = parsed(render(ReportData(title="x", positions=table))).find("image")[0].attributes["href"] or ""
    pixels = pixels_of(base64.b64decode(href.removeprefix("data:image/png;base64,")))
    assert pixels.shape == (100, 128, 4)
    sign = torch.where(pixels[..., 2] > pixels[..., 0], 1, -1)  # blue above zero, orange below
    torch.testing.assert_close(sign * pixels[..., 3] / 255, table.to(torch.float32), atol=0.02, rtol=0)
    assert len(href) < 12_000


def test_zero_is_clear_and_a_table_of_zeros_is_drawn() -> None:
    assert pixels_of(signed_png([[0.0, 0.0]]))[..., 3].tolist() == [[0, 0]]


def test_waves_are_the_dimensions_that_are_there() -> None:
    table = Sinusoidal(64).table(100)
    section = parsed(render(ReportData(title="x", positions=table))).find("section", id="positions")[0]
    chart = section.find("figure", class_="chart")[0]
    assert [key.text for key in chart.find("span", class_="key")] == ["Dimension 0", "Dimension 10", "Dimension 50"]
    for line, dimension in zip(read_back(chart), (0, 10, 50), strict=True):
        assert [y for _, y in line] == pytest.approx(table[:, dimension].tolist(), abs=0.01)


def test_a_large_table_says_which_corner_is_shown() -> None:
    page = render(ReportData(title="x", positions=torch.zeros(200, 512)))
    assert "The first 100 of 200 positions × the first 128 of 512 dimensions" in page
    wrongs: list[Any] = [[], [[]], [1.0], [[1.0], [1.0, 2.0]], [[math.nan]]]
    for wrong in wrongs:
        with pytest.raises(PictureError, match=r"\(T, D\)"):
            table_of(wrong)


def test_differences_are_marked_on_both_sides() -> None:
    reference, output = marked("the cat <sat> on a mat.", "the dog <sat> on mat!")
    assert reference == "the <del>cat</del> &lt;sat&gt; on <del>a </del>mat<del>.</del>"
    assert output == "the <ins>dog</ins> &lt;sat&gt; on mat<ins>!</ins>"
    assert marked("", "new") == ("", "<ins>new</ins>")
    assert marked("같다 .", "같다 .") == ("같다 .", "같다 .")


def test_samples_are_the_worst_the_best_and_others_each_once() -> None:
    samples = [Sample(f"s{n}", "r", "o", float(n)) for n in range(40)]
    samples[17] = replace(samples[17], score=math.nan)
    section = parsed(render(ReportData(title="x", samples=samples))).find("section", id="samples")[0]
    sources = [sample.find("dd")[0].text for sample in section.find("div", class_="sample")]
    assert [heading.text for heading in section.find("h3")] == ["Worst", "At random", "Best"]
    assert sources[:5] == ["s17", "s0", "s1", "s2", "s3"]
    assert sources[-5:] == ["s39", "s38", "s37", "s36", "s35"]
    assert len(set(sources)) == 15
    assert "15 of 40 are shown." in section.text


def test_few_samples_are_all_shown() -> None:
    for count in range(1, 5):
        samples = [Sample(f"s{n}", "same", "same", float(n), True) for n in range(count)]
        section = parsed(render(ReportData(title="x", samples=samples))).find("section", id="samples")[0]
        sources = [sample.find("dd")[0].text for sample in section.find("div", class_="sample")]
        assert sorted(sources) == [sample.source for sample in samples]
        assert "as expected" in section.text
    long = ReportData(title="x", samples=[Sample("a" * 700, "r", "", 0.0)])
    assert "… (+100)" in render(long)
    assert "(empty)" in render(long)


def test_what_was_read_is_shown_in_the_form_it_has() -> None:
    reading = {
        "files": [{"path": f"part-{n}.tsv", "pairs": n} for n in range(50)],
        "kept": 12000,
        "dropped": {"empty": {"count": 1, "first": ["a.tsv:3"]}, "odd reason": 3},
        "characters": {"source": {"mean": 21.3, "longest": 80}, "target": {"mean": 30.0, "longest": 95}},
        "skipped_files": {},
    }
    section = parsed(render(ReportData(title="x", language="ko", reading=reading))).find("section", id="reading")[0]
    assert section.find("dd")[0].text == "12,000"
    assert [heading.text for heading in section.find("h3")] == ["파일", "제외함", "문장의 글자 수"]
    assert [bar.number("width") for bar in section.find("rect", class_="fill")] == [25.0, 75.0]
    assert "비어 있음처음 나온 곳: a.tsv:3" in section.text
    assert "50개 중 40개를 보여 줍니다." in section.text
    last = section.find("table")[-1]
    assert [[cell.text for cell in row.children if isinstance(cell, Node)] for row in last.find("tr")] == [
        ["", "평균", "최대"],
        ["원문", "21.30", "80"],
        ["번역문", "30.00", "95"],
    ]


def test_a_comparison_has_a_column_for_every_key() -> None:
    section = parsed(render(full_report())).find("section", id="comparison")[0]
    assert [cell.text for cell in section.find("th", scope="col")] == ["Run", "BLEU", "Time"]
    assert [cell.text for cell in section.find("td")] == ["31.25", "–", "–", "1:02"]


def test_scores_come_with_interval_and_signature() -> None:
    section = parsed(render(full_report())).find("section", id="scores")[0]
    assert [cell.text for cell in section.find("td")] == ["31.25 (30.50 – 32.00)"]
    assert section.find("dd", class_="mono")[0].text == "nrefs:1"


def test_a_set_has_one_row_and_a_metric_one_column() -> None:
    scores = [ScoreRow("a", "BLEU", 1.0), ScoreRow("a", "chrF", 2.0), ScoreRow("b", "BLEU", 3.0)]
    section = parsed(render(ReportData(title="x", scores=scores))).find("section", id="scores")[0]
    assert [cell.text for cell in section.find("th", scope="col")] == ["Set", "BLEU", "chrF"]
    assert [cell.text for cell in section.find("th", scope="row")] == ["a", "b"]
    assert [cell.text for cell in section.find("td")] == ["1.00", "2.00", "3.00", "–"]


def test_a_confusion_is_drawn_as_shares_and_its_mistakes_are_listed() -> None:
    data = ReportData(title="x", confusion=Confusion(["cat", "dog"], [[6, 2], [0, 4]]))
    page = parsed(render(data))
    cells = {node.text for node in page.find("rect") if node.find("title")}
    assert {"cat ← cat: 0.75", "cat ← dog: 0.25", "dog ← dog: 1.00"} <= cells
    assert [item.text for item in page.find("li") if "taken" in item.text] == ["cat taken for dog: 2"]


def test_patches_stand_under_their_steps_and_the_most_seen_is_the_strongest() -> None:
    plot = ForecastPlot("x", [1.0, 2.0, 3.0, 4.0], [5.0], [6.0], patches=[(0, 2), (2, 4)], weights=[0.2, 0.8])
    page = parsed(render(ReportData(title="x", forecasts=[plot])))
    first, second = [node for node in page.find("rect") if "h" in (node.attributes.get("class") or "")]
    assert first.number("x") + first.number("width") == pytest.approx(second.number("x"), abs=0.2)
    assert int((second.attributes["class"] or "h0")[1:]) > int((first.attributes["class"] or "h0")[1:])


def test_what_a_head_saw_most_of_an_image_is_not_veiled() -> None:
    seen = SeenImage("x", b"png", [("a", 1.0)], "a", [[[0.8, 0.1], [0.1, 0.0]]])
    page = parsed(render(ReportData(title="x", images=[seen])))
    veils = [
        (node.number("x"), node.number("y"), node.number("fill-opacity")) for node in page.find("rect", class_="veil")
    ]
    assert (0.0, 0.0) not in {(x, y) for x, y, _ in veils}
    assert max(veils, key=lambda veil: veil[2])[:2] == max((x, y) for x, y, _ in veils)
