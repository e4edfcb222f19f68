"""The quiz: its answers are those of the formulas, and both languages have every claim with its numbers."""

from __future__ import annotations

import json
import math
import re

import pytest
import torch
from torch import nn

from heedful.learn.chapters import LANGUAGES
from heedful.learn.figures import figure_data
from heedful.learn.rendering import HERE

TRUE = {
    "without-positions",
    "shift-is-linear",
    "odd-width",
    "beyond-the-table",
    "scaled-variance",
    "as-many-parameters",
    "neighbors-in-a-batch",
    "training-and-evaluation",
    "memory-of-attention",
}


def test_the_claims_that_hold_are_these() -> None:
    claims = figure_data("quiz", "en")["claims"]
    assert {claim["name"] for claim in claims if claim["holds"]} == TRUE
    assert len(claims) == 20


def test_the_numbers_agree_with_formulas_and_torch() -> None:
    values = {claim["name"]: claim["values"] for claim in figure_data("quiz", "en")["claims"]}
    assert values["doubled-exponent"]["value"] == pytest.approx(math.sin(0.1), abs=1e-5)
    attention = sum(weight.numel() for weight in nn.MultiheadAttention(512, 8).parameters())
    assert values["as-many-parameters"]["eight"] == f"{attention:,}"
    d, f = 512, 2048
    forward, norm = 2 * d * f + d + f, 2 * d
    encoder, decoder = attention + forward + 2 * norm, 2 * attention + forward + 3 * norm
    assert values["feed-forward-share"]["layer"] == f"{forward / encoder:.0%}"
    total = 6 * (encoder + decoder) + 37000 * d
    assert values["feed-forward-share"]["model"] == f"{12 * forward / total:.0%}"
    assert float(values["scaled-variance"]["raw"]) == pytest.approx(512, rel=0.1)
    assert values["big-negative-number"] == {"common": "0.20", "heedful": "0.00"}
    assert values["nan-times-zero"]["heedful"] == "1.50"
    assert values["bidirectional-state"]["state"] == torch.zeros(2, 64).numel()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_claim_has_its_texts_and_uses_its_numbers(language: str) -> None:
    messages = json.loads((HERE / "script" / "figures" / "quiz.json").read_text(encoding="utf-8"))[language]
    for claim in figure_data("quiz", language)["claims"]:
        assert messages[claim["name"]]
        assert set(re.findall(r"\{(\w+)\}", messages[claim["name"] + ".why"])) == set(claim["values"])
