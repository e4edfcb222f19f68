"""The figures of masks against literal tables, torch's attention, and what gradients say about leaks."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional as F

from heedful.core import Sinusoidal
from heedful.learn.figures import figure_data
from heedful.learn.figures.masking import first_scores, masked_layers

N = 5
LOWER = torch.ones(N, N).tril()
REAL = torch.tensor([1, 1, 1, 1, 0])
NEAR = LOWER.triu(-1)
EXPECTED = {"none": torch.ones(N, N), "causal": LOWER, "padding": REAL.expand(N, N), "both": LOWER * REAL}


def test_masks_to_begin_with_are_the_tables_of_the_text() -> None:
    masks = figure_data("draw-a-mask", "en")["masks"]
    for name, table in {**EXPECTED, "window": NEAR * REAL}.items():
        assert masks[name] == table.int().tolist(), name


@pytest.mark.parametrize("name", ["none", "causal", "padding", "both", "window"])
def test_what_reaches_what_is_the_mask_or_the_bypass_once_for_each_layer(name: str) -> None:
    """The script of the page computes this for masks that a reader draws; the data is measured by gradients."""
    data = figure_data("draw-a-mask", "en")
    step = torch.tensor(data["masks"][name]).bool() | torch.eye(N, dtype=torch.bool)
    reach = torch.linalg.matrix_power(step.double(), data["layers"]) > 0
    assert data["reached"][name] == reach.tolist()


def test_scores_give_the_output_of_torch() -> None:
    stack, x = masked_layers()
    wrap: Any = stack.layers[0].self_attention
    with torch.no_grad():
        normed = F.layer_norm(x + Sinusoidal(x.shape[-1]).table(N), x.shape[-1:])
        query = normed @ wrap.sublayer.q_proj.weight.T + wrap.sublayer.q_proj.bias
        both = normed @ wrap.sublayer.kv_proj.weight.T + wrap.sublayer.kv_proj.bias
        key, value = both.chunk(2, dim=-1)
        expected = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        weights = first_scores().masked_fill(LOWER == 0, -torch.inf).softmax(dim=-1)
    torch.testing.assert_close(weights @ value[0], expected[0], atol=1e-5, rtol=1e-5)
    assert figure_data("draw-a-mask", "ko")["scores"][0][0] == pytest.approx(float(first_scores()[0, 0]), abs=1e-3)


@pytest.mark.parametrize("language", ["en", "ko"])
def test_shapes_combine_as_the_text_says(language: str) -> None:
    data = figure_data("mask-shapes", language)
    real = torch.tensor([[token != "<pad>" for token in row] for row in data["tokens"]])
    assert data["padding"] == real.int().tolist()
    assert data["causal"] == LOWER.int().tolist()
    assert data["both"] == (LOWER.bool() & real[:, None, :]).int().tolist()
