"""The figure of chapter 2: pieces that spell the text, and vectors as torch's embedding gives them."""

from __future__ import annotations

import math

import torch

from heedful.learn.figures import figure_data
from heedful.learn.figures.inputs import TEXTS, course_tokenizer


def test_pieces_spell_the_text_and_the_chapters_sentence_is_four_tokens() -> None:
    data = figure_data("text-to-vectors", "en")
    assert [item["text"] for item in data["texts"]] == TEXTS
    for item in data["texts"]:
        assert "".join(piece["text"] for piece in item["pieces"]) == f" {item['text']}"
        ids = [token for piece in item["pieces"] for token in piece["ids"]]
        assert course_tokenizer().decode(ids) == item["text"]
    assert [piece["text"] for piece in data["texts"][0]["pieces"]] == [" I", " am", " a", " student"]
    assert any(len(piece["ids"]) == 3 for piece in data["texts"][4]["pieces"])  # a letter in bytes


def test_scaling_and_positions_are_the_formula() -> None:
    for item in figure_data("text-to-vectors", "en")["texts"]:
        rows, scaled, positions = (torch.tensor(item["stages"][name]) for name in ("rows", "scaled", "positions"))
        torch.testing.assert_close(scaled, rows * math.sqrt(512), atol=0.013, rtol=0)  # of rounded rows
        waves = [[math.sin(p / 10000 ** (i / 512)) for i in range(0, 64, 2)] for p in range(len(rows))]
        torch.testing.assert_close(positions[:, 0::2], torch.tensor(waves), atol=6e-4, rtol=0)
        assert item["lengths"]["positions"] == 16
        assert abs(item["lengths"]["scaled"] - math.sqrt(512) * item["lengths"]["rows"]) < 1.2


def test_the_same_token_has_the_same_row_in_every_text() -> None:
    rows: dict[int, list[float]] = {}
    for item in figure_data("text-to-vectors", "en")["texts"]:
        ids = [token for piece in item["pieces"] for token in piece["ids"]]
        for token, row in zip(ids, item["stages"]["rows"], strict=True):
            assert rows.setdefault(token, row) == row
    assert len(rows) > 20
