"""Attention in the terminal: every row has the width it should, whatever the letters and however narrow."""

from __future__ import annotations

import io
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text
from torch import Tensor

from heedful.errors import PictureError
from heedful.lens.terminal import NARROWEST, SHADES, attention_text, fit, readable, sparkline

KOREAN = ["나는", "딥러닝을", "사랑한다", "."]
ENGLISH = ["I", "love", "deep", "learning"]
AWKWARD = [
    "가",
    "e\u0301",
    "\u0301",
    "\u1161",
    "👩\u200d👩\u200d👧",
    "❤\ufe0f",
    "👍🏽",
    "🇰🇷",
    "<0xEC>",
    "\ufffd",
    "\t",
    "\x1b[31m",
    "",
    "ㅋㅋㅋ" * 20,
]


def even(targets: int, sources: int) -> Tensor:
    return torch.full((targets, sources), 1 / sources)


def rows(text: Text) -> list[str]:
    return text.plain.split("\n")


def printed_by(console: Console, text: Text) -> str:
    with console.capture() as capture:
        console.print(text)
    return capture.get()


def test_each_cell_stands_under_its_word_in_its_shade() -> None:
    weights = torch.tensor([[0.8, 0.0, 0.0, 0.2], [0.0, 0.0, 1.0, 0.0], [0.0, 0.6, 0.4, 0.0], [0.3, 0.7, 0.0, 0.0]])
    lines_of = rows(attention_text(weights, ENGLISH, KOREAN))
    assert lines_of[:5] == [
        "          나는  딥러닝을  사랑한다  . ",
        "I         ████                      ░░",
        "love                      ████████    ",
        "deep            ▓▓▓▓▓▓▓▓  ▒▒▒▒▒▒▒▒    ",
        "learning  ▒▒▒▒  ▓▓▓▓▓▓▓▓              ",
    ]
    assert lines_of[5:] == ["", "░░ ≥0.05  ▒▒ ≥0.25  ▓▓ ≥0.5  ██ ≥0.75"]


def test_rows_of_a_panel_are_equally_wide() -> None:
    for width in (NARROWEST, 17, 30, 80):
        panels = "\n".join(rows(attention_text(even(4, 4), KOREAN, ENGLISH, width=width))).split("\n\n")
        for panel in panels[:-1] if "≥" in panels[-1] else panels:
            assert len({cell_len(row) for row in panel.split("\n")}) == 1


@given(
    targets=st.lists(st.text(max_size=12) | st.sampled_from(AWKWARD), min_size=1, max_size=4),
    sources=st.lists(st.text(max_size=12) | st.sampled_from(AWKWARD), min_size=1, max_size=6),
    width=st.integers(NARROWEST, 60),
)
def test_no_row_is_wider_than_the_terminal(targets: list[str], sources: list[str], width: int) -> None:
    text = attention_text(even(len(targets), len(sources)), targets, sources, width=width, title="제목" * 40)
    assert max(cell_len(row) for row in rows(text)) <= width
    printed = printed_by(Console(file=io.StringIO(), width=width), text).removesuffix("\n").split("\n")
    assert [row.rstrip() for row in printed] == [row.rstrip() for row in rows(text)], "a row was wrapped"


def test_a_narrow_terminal_gets_panels_and_every_source_is_in_one() -> None:
    sources = [f"w{number}" for number in range(20)]
    text = attention_text(torch.eye(20), sources, sources, width=40)
    headers = [row.split() for row in rows(text) if row.startswith("   ")]
    assert len(headers) > 1
    assert [word for header in headers for word in header] == sources
    assert text.plain.count("██") == 20 + 1  # each word once, and the legend


def test_the_map_reads_the_same_without_colour() -> None:
    weights = torch.tensor([[0.9, 0.1]])
    text = attention_text(weights, ["I"], ["나는", "학생"])
    assert text.spans, "there is color where it can be shown"
    plain = printed_by(Console(file=io.StringIO(), no_color=True, width=80), text)
    assert "████" in plain
    assert "\x1b" not in plain


@pytest.mark.parametrize(
    ("share", "shade"), [(0.04, " "), (0.05, "░"), (0.25, "▒"), (0.5, "▓"), (0.74, "▓"), (0.75, "█"), (1.0, "█")]
)
def test_a_shade_is_a_share_of_the_brightest(share: float, shade: str) -> None:
    row = rows(attention_text(torch.tensor([[share * 0.5]], dtype=torch.float64), ["a"], ["b"], brightest=0.5))[1]
    assert row == f"a  {shade * 2}"
    assert shade in SHADES


def test_labels_cannot_move_the_cursor() -> None:
    assert readable("\x1b[2J\n") == "\\x1b[2J\\n"
    assert readable("\u1112\u1161\u11ab") == "한"
    assert readable("\u0301") == "◌\u0301"
    assert [cell_len(readable(label)) for label in ("👩\u200d👩\u200d👧", "❤\ufe0f", "👍🏽")] == [6, 1, 2]


@pytest.mark.parametrize(
    ("text", "columns", "fitted"),
    [
        ("한국어", 6, "한국어"),
        ("한국어", 5, "한국…"),
        ("한국어", 4, "한… "),
        ("한", 1, "…"),
        ("a", 3, "a  "),
        ("ab", 0, ""),
    ],
)
def test_fit_counts_columns(text: str, columns: int, fitted: str) -> None:
    assert fit(text, columns) == fitted
    assert cell_len(fitted) == columns


def test_bad_maps_are_refused() -> None:
    with pytest.raises(PictureError, match="12 columns, got 11"):
        attention_text(even(1, 1), ["a"], ["b"], width=11)
    with pytest.raises(PictureError, match=r"1 × 2 .* got \(2, 1\)"):
        attention_text(even(2, 1), ["a"], ["b", "c"])
    for wrong in (float("nan"), -0.1, 3.0):
        with pytest.raises(PictureError, match="from 0 to 1"):
            attention_text(torch.tensor([[wrong]]), ["a"], ["b"])


def test_a_sparkline_rises_where_the_values_do() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
    assert sparkline([0, 2, 4, 6, 7, 7, 0, 0], width=4) == "▂▆█▁"  # means 1, 5, 7, 0
    assert sparkline([3, 3, 3]) == "▁▁▁"
    assert sparkline([]) == ""
    assert sparkline([0, math.nan, 7, math.inf]) == sparkline([0, math.nan, 7, -math.inf]) == "▁!█!"
    assert [len(sparkline(range(n), width=10)) for n in (5, 10, 11, 999)] == [5, 10, 10, 10]
