"""Pictures show the numbers handed in, under the labels handed in, in letters that are really there."""

from __future__ import annotations

import math
import subprocess
import sys
import unicodedata
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import torch
from matplotlib import font_manager, rcParams
from matplotlib.figure import Figure
from matplotlib.text import Text
from torch import Tensor

from heedful.core import Sinusoidal
from heedful.errors import HeedfulError, MissingDependencyError, PictureError
from heedful.lens import pictures

SVG = "{http://www.w3.org/2000/svg}"
KOREAN = ["나는", "딥러닝을", "사랑한다"]
ENGLISH = ["I", "love", "deep", "learning"]


def weights(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)).softmax(dim=-1)


def maps(figure: Figure) -> list[Any]:
    """The panels that hold an image."""
    return [axes for axes in figure.axes if axes.images]


def images(figure: Figure) -> list[Tensor]:
    return [torch.tensor(axes.images[0].get_array().data) for axes in maps(figure)]


def texts(figure: Figure) -> list[str]:
    figure.draw_without_rendering()
    return [text.get_text() for text in figure.findobj(Text) if text.get_visible() and text.get_text()]


def ticks(axis: Any) -> list[str]:
    return [label.get_text() for label in axis.get_ticklabels()]


@pytest.fixture
def no_hangul_font(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "installed_families", lambda: ["DejaVu Sans", "DejaVu Serif"])
    monkeypatch.setattr(pictures, "notice_new_fonts", lambda: None)


# Positions


def test_the_positional_map_shows_sine_and_cosine_of_100_positions_by_128_dimensions() -> None:
    figure = pictures.positional_map(Sinusoidal(128).table(100))
    (image,) = images(figure)
    assert image.shape == (100, 128)
    for position, dimension in [(0, 0), (1, 0), (7, 31), (99, 64), (99, 127)]:
        angle = position / 10000 ** (dimension // 2 * 2 / 128)
        wave = math.cos(angle) if dimension % 2 else math.sin(angle)
        assert image[position, dimension].item() == pytest.approx(wave, abs=1e-6)
    assert {"Positional encoding", "Position", "Dimension", "Value"} <= set(texts(figure))


def test_zero_is_the_middle_of_the_positional_colours() -> None:
    figure = pictures.positional_map(torch.tensor([[-0.5, 3.0], [1.0, 0.0]]))
    assert maps(figure)[0].images[0].get_clim() == (-3.0, 3.0)


def test_waves_are_the_columns_asked_for_in_that_order() -> None:
    table = Sinusoidal(128).table(100)
    figure = pictures.positional_waves(table)
    lines = [torch.as_tensor(line.get_ydata()) for axes in figure.axes for line in axes.lines]
    waves = [line for line in lines if len(line) == 100]
    for wave, dimension in zip(waves, (0, 10, 50, 100), strict=True):
        torch.testing.assert_close(wave, table[:, dimension].double())
    names = [text for text in texts(figure) if text.startswith("Dimension ")]
    assert names == ["Dimension 0", "Dimension 10", "Dimension 50", "Dimension 100"]


@pytest.mark.parametrize("dimensions", [(0, 64), (-1,), ()])
def test_waves_of_dimensions_that_are_not_there_are_refused_with_those_that_are(dimensions: tuple[int, ...]) -> None:
    with pytest.raises(PictureError, match="0 to 63"):
        pictures.positional_waves(Sinusoidal(64).table(10), dimensions)


def test_a_table_of_one_position_or_of_zeros_can_be_drawn() -> None:
    for table in (torch.ones(1, 3), torch.zeros(4, 3)):
        texts(pictures.positional_map(table))
        texts(pictures.positional_waves(table, (0, 2)))


# Attention


def test_an_attention_map_shows_its_weights_queries_down_and_keys_across() -> None:
    data = weights(3, 4)
    figure = pictures.attention_map(data, ["a", "b", "c"], ENGLISH, title="layer 0")
    (image,) = images(figure)
    torch.testing.assert_close(image, data.double())
    (panel,) = maps(figure)
    assert ticks(panel.yaxis) == ["a", "b", "c"]
    assert ticks(panel.xaxis) == ENGLISH
    assert panel.yaxis_inverted(), "the first query stands at the top"
    assert {"layer 0", "Query", "Key", "Weight"} <= set(texts(figure))


def test_tokens_without_labels_are_numbered() -> None:
    (panel,) = maps(pictures.attention_map(weights(2, 3)))
    assert (ticks(panel.yaxis), ticks(panel.xaxis)) == (["0", "1"], ["0", "1", "2"])


@pytest.mark.parametrize("n_heads", [1, 5, 8])
def test_every_head_is_shown_in_order_on_one_colour_scale(n_heads: int) -> None:
    data = weights(n_heads, 3, 4)
    figure = pictures.attention_heads(data, ["a", "b", "c"], ENGLISH)
    torch.testing.assert_close(torch.stack(images(figure)), data.double())
    assert [axes.get_title() for axes in maps(figure)] == [f"head {head}" for head in range(n_heads)]
    assert {axes.images[0].get_clim() for axes in maps(figure)} == {(0.0, data.max().item())}


def test_heads_that_were_chosen_keep_their_numbers() -> None:
    figure = pictures.attention_heads(weights(2, 3, 3), heads=[2, 7])
    assert [axes.get_title() for axes in maps(figure)] == ["head 2", "head 7"]


def test_every_column_of_heads_names_its_keys_and_every_row_its_queries() -> None:
    queries, keys = ["q0", "q1"], ["k0", "k1"]
    figure = pictures.attention_heads(weights(5, 2, 2), queries, keys)
    named = [(ticks(axes.yaxis), ticks(axes.xaxis)) for axes in maps(figure)]
    assert named == [(queries, []), ([], keys), ([], keys), ([], keys), (queries, keys)]


def test_sixty_long_labels_are_all_there_and_do_not_touch() -> None:
    labels = [f"internationalization{n}" for n in range(60)]
    figure = pictures.attention_map(weights(60, 60), labels, labels)
    (panel,) = maps(figure)
    assert ticks(panel.xaxis) == ticks(panel.yaxis) == labels
    figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in panel.yaxis.get_ticklabels()]
    assert all(below.y1 <= above.y0 for above, below in pairwise(boxes))
    assert panel.xaxis.get_ticklabels()[0].get_rotation() == 45


def test_of_very_many_labels_as_many_are_shown_as_there_is_room_for() -> None:
    labels = [f"token {n}" for n in range(400)]
    (panel,) = maps(pictures.attention_map(torch.full((400, 400), 1 / 400), labels, labels))
    numbers = [labels[int(place)] for place in panel.get_xticks()]
    assert 40 < len(numbers) < 400
    assert ticks(panel.xaxis) == numbers


def test_everything_drawn_lies_inside_the_figure() -> None:
    figure = pictures.attention_heads(weights(3, 5, 5), title="A title that is a good deal wider than the three panels")
    width, height = figure.get_size_inches()
    box = figure.get_tightbbox()
    assert (box.x0 > 0, box.y0 > 0, box.x1 < width, box.y1 < height) == (True, True, True, True)


def test_a_row_that_sees_nothing_and_a_half_precision_tensor_with_gradients_can_be_drawn() -> None:
    data = torch.zeros(2, 2, dtype=torch.bfloat16, requires_grad=True)
    (image,) = images(pictures.attention_map(data))
    assert image.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_weights_beyond_the_brightest_are_marked_on_the_colour_bar() -> None:
    data = torch.tensor([[0.9, 0.1]])
    (clipped,) = maps(pictures.attention_map(data, brightest=0.5))[0].images
    assert (clipped.get_clim(), clipped.colorbar.extend) == ((0.0, 0.5), "max")
    (whole,) = maps(pictures.attention_map(data, brightest=1.0))[0].images
    assert (whole.get_clim(), whole.colorbar.extend) == ((0.0, 1.0), "neither")


@pytest.mark.parametrize(
    ("draw", "messages"),
    [
        (lambda: pictures.attention_map(weights(1, 8, 3, 3)), r"\(Tq, Tk\).*\(1, 8, 3, 3\).*\[0\]"),
        (lambda: pictures.attention_heads(weights(3, 3)), r"\(H, Tq, Tk\).*\(3, 3\)"),
        (lambda: pictures.attention_heads(weights(0, 3, 3)), r"\(H, Tq, Tk\).*\(0, 3, 3\)"),
        (lambda: pictures.positional_map(torch.zeros(5)), r"\(T, D\).*\(5,\)"),
        (lambda: pictures.attention_map(weights(3, 4), ["a", "b"]), "2 queries.*3"),
        (lambda: pictures.attention_map(weights(3, 4), keys=["a"] * 5), "5 keys.*4"),
        (lambda: pictures.attention_heads(weights(2, 3, 4), heads=[0]), "1 heads.*2"),
        (lambda: pictures.attention_map(torch.tensor([[2.0, -1.0]])), "between 0 and 1, got -1 to 2"),
        (lambda: pictures.attention_map(torch.tensor([[math.nan, 0.5]])), "NaN"),
        (lambda: pictures.attention_map(weights(3, 4), brightest=0.0), "above 0"),
        (lambda: pictures.positional_map(torch.zeros(2, 2), language="kr"), "'kr'.*allowed: en, ko"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_words(draw: Any, messages: str) -> None:
    with pytest.raises(ValueError, match=messages) as refusal:
        draw()
    assert isinstance(refusal.value, HeedfulError)


# Letters


def test_korean_without_a_font_says_what_to_install(no_hangul_font: None) -> None:
    says_so = "apt install fonts-nanum"
    with pytest.raises(MissingDependencyError, match=says_so):
        pictures.positional_map(torch.zeros(2, 2), language="ko")
    with pytest.raises(MissingDependencyError, match=says_so):
        pictures.attention_map(weights(3, 4), KOREAN, ENGLISH)
    with pytest.raises(MissingDependencyError, match=says_so):
        pictures.attention_map(weights(3, 4), title="어텐션")


def test_english_needs_no_korean_font(no_hangul_font: None) -> None:
    assert texts(pictures.attention_map(weights(4, 4), ENGLISH, ENGLISH))


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_every_korean_letter_has_a_glyph_in_the_fonts_of_its_text(hangul_font: str, form: Any) -> None:
    from fontTools.ttLib import TTFont  # type: ignore[import-untyped]

    labels = [unicodedata.normalize(form, token) for token in KOREAN]
    figure = pictures.attention_map(weights(3, 4), labels, ENGLISH, language="ko")
    korean = [text for text in figure.findobj(Text) if any(letter >= "가" for letter in text.get_text())]
    assert {*KOREAN, "어텐션", "쿼리", "키", "가중치"} == {text.get_text() for text in korean}
    (families,) = {tuple(text.get_fontfamily()) for text in korean}
    assert hangul_font in families
    glyphs: set[int] = set()
    for family in families:
        path = font_manager.findfont(font_manager.FontProperties(family=[family]), fallback_to_default=False)
        assert "LastResort" not in path, "its glyphs are boxes"
        with TTFont(path, fontNumber=0, lazy=True) as font:
            glyphs |= set(font.getBestCmap())
    assert {ord(letter) for text in korean for letter in text.get_text()} <= glyphs


def test_all_pictures_can_be_labelled_in_korean(hangul_font: str, tmp_path: Path) -> None:
    table = Sinusoidal(128).table(20)
    drawn = {
        "map": (pictures.positional_map(table, language="ko"), {"위치 인코딩", "위치", "차원", "값"}),
        "waves": (pictures.positional_waves(table, language="ko"), {"위치 인코딩", "위치", "값", "차원 0", "차원 100"}),
        "heads": (pictures.attention_heads(weights(2, 3, 3), KOREAN, KOREAN, language="ko"), {"헤드 0", "헤드 1"}),
    }
    for name, (figure, messages) in drawn.items():
        assert messages <= set(texts(figure))
        pictures.save(figure, tmp_path / f"{name}.png")  # a missing glyph warns, and here a warning is an error


def test_a_last_resort_font_which_draws_boxes_is_never_chosen() -> None:
    assert not [family for family in pictures.installed_families() if "resort" in family.lower()]


def test_a_font_installed_after_matplotlib_made_its_list_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = font_manager.fontManager
    monkeypatch.setattr(manager, "ttflist", [entry for entry in manager.ttflist if entry.name != "DejaVu Serif"])
    assert "DejaVu Serif" not in pictures.installed_families()
    pictures.notice_new_fonts()
    assert "DejaVu Serif" in pictures.installed_families()


def test_what_no_font_can_draw_is_written_as_its_escape(no_hangul_font: None) -> None:
    labels = ["line\nbreak", "\x00", "\ud800", "\U0001fae0", "▁ok…"]
    (panel,) = maps(pictures.attention_map(weights(1, 5), keys=labels))
    assert ticks(panel.xaxis) == [r"line\nbreak", r"\x00", r"\ud800", r"\U0001fae0", "▁ok…"]


def test_a_very_long_label_is_cut() -> None:
    (panel,) = maps(pictures.attention_map(weights(1, 2), keys=["a" * 500, "b"]))
    assert ticks(panel.xaxis) == ["a" * 31 + "…", "b"]


def test_tokens_are_text_and_neither_formulas_nor_markup(tmp_path: Path) -> None:
    labels = ["$x_1$", "<script>", "&amp;", "-->", "\\frac{"]
    figure = pictures.attention_map(weights(5, 5), labels, labels, title="$\\alpha$ <b>")
    path = pictures.save(figure, tmp_path / "tokens.svg")
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    root: Any = ElementTree.parse(path, parser).getroot()
    assert not list(root.iter(f"{SVG}script"))
    glyphs = [  # each text stands in a comment before its outlines
        (group[0].text.strip(), len(list(group.iter(f"{SVG}use"))))
        for group in root.iter(f"{SVG}g")
        if len(group) and group[0].tag is ElementTree.Comment
    ]
    assert glyphs.count(("$x_1$", len("$x_1$"))) == 2, "a formula would have two glyphs"
    assert ("&lt;script&gt;", len("<script>")) in glyphs
    assert ("&amp;amp;", len("&amp;")) in glyphs


# Files


@pytest.mark.parametrize("suffix", ["png", "svg", "PNG"])
def test_a_saved_file_is_what_its_name_says_and_the_same_every_time(tmp_path: Path, suffix: str) -> None:
    def written(name: str) -> bytes:
        figure = pictures.attention_heads(weights(2, 3, 4), ["a", "b", "c"], ENGLISH)
        return pictures.save(figure, tmp_path / "new" / "folder" / f"{name}.{suffix}").read_bytes()

    first, second = written("first"), written("second")
    assert first == second
    if suffix.lower() == "png":
        assert first.startswith(b"\x89PNG\r\n\x1a\n")
    else:
        assert ElementTree.fromstring(first).tag == f"{SVG}svg"


@pytest.mark.parametrize("name", ["picture.jpg", "picture"])
def test_another_kind_of_file_is_refused_with_the_kinds_there_are(tmp_path: Path, name: str) -> None:
    figure = pictures.positional_map(torch.zeros(2, 2))
    with pytest.raises(PictureError, match=rf"\.png or \.svg.*'{name}'"):
        pictures.save(figure, tmp_path / "folder" / name)
    assert not (tmp_path / "folder").exists()


def test_drawing_and_saving_leave_matplotlib_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(rcParams, "svg.hashsalt", "mine")
    before = dict(rcParams)
    pictures.save(pictures.attention_map(weights(2, 2)), tmp_path / "map.svg")
    assert dict(rcParams) == before


def test_matplotlib_is_imported_only_to_draw_and_pyplot_never() -> None:
    code = """
import sys, torch
from heedful.lens import pictures
assert "matplotlib" not in sys.modules
pictures.positional_map(torch.zeros(2, 2))
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_matplotlib_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r"pip install matplotlib"):
        pictures.positional_map(torch.zeros(2, 2))
