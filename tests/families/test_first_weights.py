"""How the published families' weights start, where their papers say otherwise than the core."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import heedful


@torch.no_grad()
@pytest.mark.parametrize("preset", ["gpt2-tiny", "bart-tiny", "bert-tiny", "llama-tiny"])
def test_matrices_start_normal_with_std_002(preset: str) -> None:
    model = heedful.build(preset)
    last = (".out_proj.weight", ".down_proj.weight") if preset == "gpt2-tiny" else ()
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1 and parameter.numel() > 5000 and not name.endswith(last):
            assert float(parameter.std()) == pytest.approx(0.02, rel=0.1), name
        elif parameter.dim() == 1:
            assert set(parameter.tolist()) <= {0.0, 1.0}, name


@torch.no_grad()
def test_gpt2_scales_residual_projections_by_depth() -> None:
    model = heedful.build("gpt2-tiny", n_layers=8)
    for name, parameter in model.named_parameters():
        if name.endswith((".out_proj.weight", ".down_proj.weight")):
            assert float(parameter.std()) == pytest.approx(0.02 / 4, rel=0.1), name


@torch.no_grad()
def test_t5_initial_scores_have_unit_variance_without_scaling() -> None:
    model: Any = heedful.build("t5-tiny")
    x = torch.randn(4, 50, 128)
    attention = model.encoder.layers[0].self_attention.sublayer
    query, (key, _) = attention.q_proj(x).unflatten(-1, (4, 32)).transpose(1, 2), attention.keys_values(x)
    assert float((query @ key.transpose(-2, -1)).std()) == pytest.approx(1.0, rel=0.2)
    assert float(model.source_embedding.weight.std()) == pytest.approx(1.0, rel=0.05)
