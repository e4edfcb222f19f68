"""The document of a report holds the numbers it was given, chosen and counted; what cannot be shown is refused."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from heedful.core import Sinusoidal
from heedful.errors import PictureError
from heedful.lens.document import unpacked
from heedful.lens.report import AttentionMap, Confusion, CurveChart, ForecastPlot, ReportData, ScoredSample
from heedful.lens.report.document import (
    MOST_POINTS,
    attention_weights,
    averaged,
    cell,
    decimal,
    differences,
    number,
    position_table,
    report_document,
)
from tiny_report import full_report

EMPTY = ReportData(title="Nothing yet")
PARTS = [field.name for field in fields(ReportData) if field.name not in ("title", "language")]
FRAME = {"format", "kind", "language", "title", "arrays"}


def sections(data: ReportData) -> set[str]:
    return set(report_document(data)) - FRAME


@pytest.mark.parametrize("part", PARTS)
def test_a_missing_part_is_absent(part: str) -> None:
    name = "training" if part == "log" else part
    full = full_report()
    assert name in sections(full)
    assert sections(replace(full, **{part: getattr(EMPTY, part)})) == sections(full) - {name}
    assert sections(replace(EMPTY, **{part: getattr(full, part)})) == {name}


def test_curves_are_the_numbers_of_the_log() -> None:
    data = full_report()
    training = report_document(data)["training"]
    assert [key for key, _ in training["charts"]] == ["loss", "bleu", "", "lr"]
    for kind, points in training["charts"][0][1]:
        assert points == [[row["step"], row["loss"]] for row in data.log if row["kind"] == kind]
    assert training["lowest"] == ["1.125", "8"]
    assert (training["averaged"], training["broken"]) == (None, 0)


def test_zero_is_a_value_and_a_word_is_none() -> None:
    log = [{"kind": "valid", "step": step, "loss": loss} for step, loss in enumerate([1.0, 0.0, "nan", None, True, 2])]
    ((_, ((_, points),)),) = report_document(ReportData(title="x", log=log))["training"]["charts"]
    assert points == [[0, 1.0], [1, 0.0], [5, 2.0]]


def test_a_value_that_is_not_finite_is_a_gap() -> None:
    log = [{"kind": "train", "step": n, "loss": math.nan if n == 3 else 1.0} for n in range(5)]
    training = report_document(ReportData(title="x", log=log))["training"]
    assert training["charts"][0][1][0][1][3] == [3.0, None]
    assert training["broken"] == 1
    broken = [{"kind": "train", "step": n, "loss": math.inf} for n in range(5)]
    assert "training" not in report_document(ReportData(title="x", log=broken)), "a chart of gaps is no chart"


def test_long_curves_are_means_of_groups() -> None:
    points = [(float(n), float(n % 2)) for n in range(2 * MOST_POINTS)]
    assert averaged(points) == [(2 * n + 0.5, 0.5) for n in range(MOST_POINTS)]
    assert averaged(points[:3]) == points[:3]
    assert averaged([]) == []


@pytest.mark.parametrize("heads", [0, 3])
def test_attention_is_its_weights_and_their_mean(heads: int) -> None:
    shape = (heads, 4, 5) if heads else (4, 5)
    weights = torch.rand(*shape, generator=torch.Generator().manual_seed(0))
    document = report_document(ReportData(title="x", attention=[AttentionMap("map", list("abcde"), "wxyz", weights)]))
    (one,) = document["attention"]["maps"]
    mean = weights.mean(dim=0) if heads else weights
    np.testing.assert_allclose(unpacked(document["arrays"][one["mean"]]), mean.numpy(), atol=1e-6)
    maps = [unpacked(document["arrays"][name]) for name in one["heads"]]
    np.testing.assert_array_equal(np.array(maps).reshape(shape if heads else 0), weights.numpy() if heads else [])


@pytest.mark.parametrize(
    ("weights", "heads", "message"),
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
def test_maps_that_cannot_be_drawn_are_refused(weights: Tensor, heads: list[str] | None, message: str) -> None:
    with pytest.raises(PictureError, match=message):
        attention_weights(AttentionMap("map", ["a", "b"], ["c"], weights, heads))


def test_a_patch_without_a_weight_is_refused() -> None:
    plot = ForecastPlot("x", [1.0], [2.0], [3.0], patches=[(0, 1), (1, 2)], weights=[0.5])
    with pytest.raises(PictureError, match="2 patches and 1 weights"):
        report_document(ReportData(title="x", forecasts=[plot]))


def test_maps_are_left_out_when_there_are_too_many_cells() -> None:
    pieces = [f"단어{n}" for n in range(30)]
    maps = [AttentionMap(f"map {n}", pieces, pieces, torch.rand(8, 30, 30)) for n in range(12)]
    attention = report_document(ReportData(title="x", attention=maps))["attention"]
    assert ["map 0", True] in attention["left_out"], "the mean is shown, the heads are not"
    assert ["map 11", False] in attention["left_out"], "what is left out is said"
    assert len(attention["maps"]) == 5


def test_positions_hold_the_table_up_to_a_corner() -> None:
    table = Sinusoidal(128).table(100)
    document = report_document(ReportData(title="x", positions=table))
    present = unpacked(document["arrays"][document["positions"]["table"]])
    np.testing.assert_allclose(present, table.numpy(), atol=1e-6)
    large = report_document(ReportData(title="x", positions=torch.zeros(200, 512)))
    assert large["positions"]["size"] == [200, 512]
    assert large["arrays"][large["positions"]["table"]]["shape"] == [100, 128]
    wrongs: list[Any] = [[], [[]], [1.0], [[1.0], [1.0, 2.0]], [[math.nan]]]
    for wrong in wrongs:
        with pytest.raises(PictureError, match=r"\(T, D\)"):
            position_table(wrong)


def test_differences_are_marked_on_both_sides() -> None:
    reference, output = differences("the cat <sat> on a mat.", "the dog <sat> on mat!")
    assert [text for text, differs in reference if differs] == ["cat", "a ", "."]
    assert [text for text, differs in output if differs] == ["dog", "!"]
    assert "".join(text for text, _ in reference) == "the cat <sat> on a mat."
    assert differences("", "new") == ([], [("new", True)])
    assert differences("같다 .", "같다 .") == ([("같다 .", False)], [("같다 .", False)])


def test_samples_are_the_worst_the_best_and_others_each_once() -> None:
    samples = [ScoredSample(f"s{n}", "r", "o", float(n)) for n in range(40)]
    samples[17] = replace(samples[17], score=math.nan)
    present = report_document(ReportData(title="x", samples=samples))["samples"]
    sources = {name: [sample["source"] for sample in group] for name, group in present["groups"].items()}
    assert list(sources) == ["worst", "random", "best"]
    assert sources["worst"] == ["s17", "s0", "s1", "s2", "s3"]
    assert sources["best"] == ["s39", "s38", "s37", "s36", "s35"]
    assert len({source for group in sources.values() for source in group}) == 15
    assert (present["shown"], present["total"]) == ("15", "40")


def test_few_samples_are_all_shown_and_a_long_one_is_cut() -> None:
    for count in range(1, 5):
        samples = [ScoredSample(f"s{n}", "same", "same", float(n), True) for n in range(count)]
        groups = report_document(ReportData(title="x", samples=samples))["samples"]["groups"]
        present = [sample for group in groups.values() for sample in group]
        assert sorted(sample["source"] for sample in present) == [sample.source for sample in samples]
        assert all(sample["same"] for sample in present)
    long = report_document(ReportData(title="x", samples=[ScoredSample("a" * 700, "r", "", 0.0)]))
    ((sample,),) = long["samples"]["groups"].values()
    assert sample["source"].endswith("a… (+100)")


def test_a_confusion_is_shares_of_its_rows_and_a_list_of_mistakes() -> None:
    data = ReportData(title="x", confusion=Confusion(["cat", "dog"], [[6, 2], [0, 4]]))
    confusion = report_document(data)["confusion"]
    assert confusion["shares"] == [[0.75, 0.25], [0.0, 1.0]]
    assert confusion["mistakes"] == [["cat", "dog", "2"]]
    many = Confusion([str(n) for n in range(40)], [[1] * 40] * 40)
    drawn = report_document(ReportData(title="x", confusion=many))["confusion"]
    assert drawn["shares"] is None
    assert len(drawn["mistakes"]) == 12


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
    assert [cell(value) for value in (True, None, ["a", 2], 3.5)] == [True, "–", "a, 2", "3.50"]


def test_curves_have_their_points_and_long_ones_are_averaged() -> None:
    (chart,) = report_document(full_report())["curves"]
    assert chart == {
        "title": "loss",
        "x": "step",
        "lines": [["intact", [[0.0, 2.5], [1.0, 1.5]]], ["bare", [[0.0, 3.0]]]],
    }
    long = replace(EMPTY, curves=[CurveChart("loss", "step", {"intact": [(n, 1.0) for n in range(2 * MOST_POINTS)]})])
    assert len(report_document(long)["curves"][0]["lines"][0][1]) == MOST_POINTS
