"""The figure of scaled scores against the formula of softmax and its Jacobian."""

from __future__ import annotations

import math

import pytest
import torch

from heedful.lab.measures import random_attention
from heedful.learn.figures import figure_data
from heedful.learn.figures.attention import DIVISORS, N_KEYS, N_QUERIES, WIDTHS


@pytest.mark.parametrize("way", DIVISORS)
@pytest.mark.parametrize("width", [1, 64, 1024])
def test_measures_follow_the_formulas(way: str, width: int) -> None:
    query, key, direction = random_attention(torch.Generator().manual_seed(0), N_QUERIES, N_KEYS)
    divisor = {"none": 1.0, "root": math.sqrt(width), "full": float(width)}[way]
    scores = query[0, 0, :, :width].double() @ key[0, 0, :, :width].double().T / divisor
    weights = scores.exp() / scores.exp().sum(dim=1, keepdim=True)
    jacobian = torch.diag_embed(weights) - weights[:, :, None] * weights[:, None]
    passed = (jacobian @ direction[:, :, None].double()).squeeze(-1).norm(dim=1)
    entropy = -(weights * weights.log2().clamp(min=-1e4)).sum(dim=1)
    expected = {"variance": scores.var(), "largest": weights.max(dim=1).values.mean(), "entropy": entropy.mean()}
    measured = figure_data("scaled-scores", "en")["measures"][way][WIDTHS.index(width)]
    for name, value in {**expected, "gradient": passed.mean()}.items():
        assert measured[name] == pytest.approx(float(value), rel=2e-3, abs=2e-4), name
    assert measured["weights"] == pytest.approx(weights[0].tolist(), abs=6e-4)


def test_only_the_root_keeps_attention_the_same_at_every_width() -> None:
    measures = figure_data("scaled-scores", "en")["measures"]
    largest = {way: [item["largest"] for item in items] for way, items in measures.items()}
    assert max(largest["root"]) - min(largest["root"]) < 0.1
    assert largest["none"][-1] > 0.9
    assert largest["full"][-1] < 0.15
