"""The map of the model: shapes and parameters from the paper's formulas."""

from __future__ import annotations

import pytest
from torch import nn

from heedful.learn.figures import figure_data

D, F, H, V, N = 512, 2048, 8, 37000, 6
DATA = figure_data("map-of-the-model", "en")


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def test_parameters_are_those_of_torch() -> None:
    attention = count(nn.MultiheadAttention(D, H, device="meta"))
    feed_forward = count(nn.Sequential(nn.Linear(D, F, device="meta"), nn.Linear(F, D, device="meta")))
    norm = count(nn.LayerNorm(D, device="meta"))
    for name, parameters in DATA["parameters"].items():
        expected = {"attention": attention, "forward": feed_forward, "norm": norm, "positions": 0}
        assert parameters == expected.get(name.rsplit("_", 1)[-1], V * D), name
    sizes = {"d_model": D, "nhead": H, "dim_feedforward": F, "device": "meta"}
    assert DATA["layers"] == {
        "encoder": count(nn.TransformerEncoderLayer(**sizes)),  # type: ignore[arg-type]
        "decoder": count(nn.TransformerDecoderLayer(**sizes)),  # type: ignore[arg-type]
    }
    assert DATA["total"] == V * D + N * sum(DATA["layers"].values())


def test_feed_forward_share_of_layer_parameters() -> None:
    parameters, layers = DATA["parameters"], DATA["layers"]
    feed_forward = parameters["encoder_feed_forward"]
    shares = [
        feed_forward / layers["encoder"],
        feed_forward / layers["decoder"],
        2 * feed_forward / sum(layers.values()),
    ]
    assert shares == pytest.approx([0.666, 0.499, 0.571], abs=5e-4)


def test_shapes_follow_the_sentence() -> None:
    source, target = len(DATA["source"]), len(DATA["target"])
    for name, shape in DATA["shapes"].items():
        length = source if name.startswith(("source", "encoder")) else target
        assert shape == [length, V if name == "head" else D], name
    assert DATA["weights"] == {
        "encoder_self_attention": [H, source, source],
        "decoder_self_attention": [H, target, target],
        "decoder_cross_attention": [H, target, source],
    }
    assert DATA["settings"] == {
        "d_model": D, "n_heads": H, "d_ff": F, "n_encoder_layers": N, "n_decoder_layers": N, "vocab_size": V
    }  # fmt: skip
