"""The figures of chapter 4 show what torch's formula gives."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from heedful.learn.figures import figure_data


def close(seen: object, expected: Tensor, atol: float) -> None:
    torch.testing.assert_close(torch.tensor(seen), expected, atol=atol, rtol=0)


@pytest.mark.parametrize("kind", ["self", "cross"])
def test_one_query_is_the_formula_by_head(kind: str) -> None:
    data = figure_data("one-query", "en")
    part = data[kind]
    query, key, value = (torch.tensor(part[name]) for name in ("query", "key", "value"))
    assert query.shape == (4, len(part["queries"]), 8)
    assert key.shape == value.shape == (4, len(data["keys"]), 8)
    weights = torch.softmax(query @ key.transpose(1, 2) / math.sqrt(8), dim=-1)
    close(part["weights"], weights, atol=4e-3)  # of rounded queries and keys
    close(part["output"], weights @ value, atol=2e-2)


def test_the_example_of_the_text_holds() -> None:
    data = figure_data("one-query", "en")
    assert data["cross"]["queries"] == ["나는", "트랜스포머", "를", "공부한다"]
    assert data["cross"]["weights"][1][3][data["keys"].index("study")] > 0.8


def test_the_shapes_and_every_step_between_the_matrices() -> None:
    data = figure_data("attention-shapes", "en")
    matrices = {name: torch.tensor(rows) for name, rows in data["matrices"].items()}
    assert matrices["x"].shape == (4, 512)
    assert all(matrices[name].shape == (4, 64) for name in ("query", "key", "value", "output"))
    close(data["matrices"]["scores"], matrices["query"] @ matrices["key"].T, atol=0.2)
    close(data["matrices"]["weights"], torch.softmax(matrices["scores"] / 8, dim=-1), atol=6e-3)
    close(data["matrices"]["output"], matrices["weights"] @ matrices["value"], atol=5e-2)
