"""The figures of chapter 3 show the formula's numbers."""

from __future__ import annotations

import math

import pytest
import torch

from heedful.learn.figures import figure_data
from heedful.learn.figures.inputs import shift_matrices


def angle(pos: int, pair: int, d_model: int) -> float:
    return pos / 10000 ** (2 * pair / d_model)


def test_the_map_is_the_formula() -> None:
    table = figure_data("position-map", "en")["table"]
    assert (len(table), len(table[0])) == (100, 128)
    for pos, dimension in ((0, 0), (1, 2), (99, 127), (50, 100), (7, 11)):
        wave = math.cos if dimension % 2 else math.sin
        assert table[pos][dimension] == pytest.approx(wave(angle(pos, dimension // 2, 128)), abs=5.1e-4)


def test_the_hands_are_the_formula_and_the_fitted_matrices_are_rotations() -> None:
    data = figure_data("clock-hands", "en")
    assert len(data["hands"]) == data["positions"] + len(data["shifts"])
    for n, pair in enumerate(data["pairs"]):
        for pos in (0, 3, 80):
            turned = angle(pos, pair, data["d_model"])
            assert data["hands"][pos][n] == pytest.approx([math.sin(turned), math.cos(turned)], abs=1e-5)
        for k in (0, 5, 40):
            turned = angle(k, pair, data["d_model"])
            rotation = [[math.cos(turned), math.sin(turned)], [-math.sin(turned), math.cos(turned)]]
            torch.testing.assert_close(torch.tensor(data["shifts"][k][n]), torch.tensor(rotation), atol=2e-5, rtol=0)
        assert data["degrees"][n] == pytest.approx(math.degrees(angle(1, pair, data["d_model"])), abs=1e-3)


def test_no_matrix_fits_positions_that_only_count() -> None:
    """Squares of positions move by an amount that depends on the position, so the fit must miss."""
    pos = torch.arange(20.0, dtype=torch.float64)
    pairs = torch.stack([pos**2, torch.ones(20)], dim=-1)[:, None]
    (matrix,) = shift_matrices(pairs, 1)[1]
    assert (pairs[:19, 0] @ matrix.T - pairs[1:, 0]).abs().max() > 1


def test_the_schemes_follow_their_definitions() -> None:
    maps = {name: torch.tensor(rows) for name, rows in figure_data("position-schemes", "en")["maps"].items()}
    distance = torch.arange(24)[None] - torch.arange(24)[:, None]
    waves = torch.tensor(
        [[sum(math.cos(angle(d, i, 128)) for i in range(64)) / 64 for d in row] for row in distance.tolist()]
    )
    torch.testing.assert_close(maps["sinusoidal"], waves, atol=6e-4, rtol=0)
    turns = torch.tensor(
        [[sum(math.cos(angle(d, i, 64)) for i in range(32)) / 32 for d in row] for row in distance.tolist()]
    )
    torch.testing.assert_close(maps["rotary"], turns, atol=6e-4, rtol=0)
    torch.testing.assert_close(maps["alibi"], -0.25 * distance.abs().float(), atol=1e-6, rtol=0)
    near = maps["relative"][:8, :8].long()
    torch.testing.assert_close(near, torch.where(distance > 0, 16 + distance, -distance)[:8, :8])
    torch.testing.assert_close(maps["learned"].diagonal(), torch.ones(24))
