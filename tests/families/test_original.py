"""The original Transformer: its counts, its defaults, and every part exchangeable by one word."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import heedful
from heedful.core import EncoderDecoder, PostNorm, PreNorm
from heedful.families import OriginalConfig


def test_the_parameters_of_base_are_those_of_the_formula() -> None:
    vocabulary, d, f, n = 37000, 512, 2048, 6
    attention = 4 * (d * d + d)
    feed_forward = d * f + f + f * d + d
    norm = 2 * d
    encoder_layer = attention + feed_forward + 2 * norm
    decoder_layer = 2 * attention + feed_forward + 3 * norm
    with torch.device("meta"):
        model = heedful.build("base")
    assert sum(p.numel() for p in model.parameters()) == vocabulary * d + n * (encoder_layer + decoder_layer)


def test_the_default_is_post_norm_without_a_final_norm_and_pre_norm_has_one() -> None:
    post, pre = heedful.build(OriginalConfig(d_model=32, n_heads=2)), heedful.build("tiny", norm="pre")
    assert isinstance(post, EncoderDecoder)
    assert isinstance(pre, EncoderDecoder)
    for stack in (post.encoder, post.decoder):
        assert isinstance(stack.norm, nn.Identity)
    for stack in (pre.encoder, pre.decoder):
        assert isinstance(stack.norm, heedful.core.LayerNorm)
    assert any(isinstance(part, PostNorm) for part in post.modules())
    assert not any(isinstance(part, PreNorm) for part in post.modules())


@pytest.mark.parametrize(("tied", "tables"), [("all", 1), ("output", 2), ("none", 3)])
def test_tied_determines_the_number_of_matrices(tied: str, tables: int) -> None:
    model = heedful.build("tiny", tied=tied, vocab_size=50)
    shapes = [tuple(parameter.shape) for parameter in model.parameters()]
    assert shapes.count((50, 128)) == tables


@pytest.mark.parametrize(
    "change",
    [
        {"positions": "learned", "max_length": 16},
        {"positions": "relative"},
        {"positions": "rotary"},
        {"positions": "alibi"},
        {"positions": "none"},
        {"norm": "pre", "norm_kind": "rms"},
        {"feed_forward": "gated", "activation": "silu"},
        {"activation": "gelu_tanh"},
        {"n_kv_heads": 1},
        {"d_head": 10},
        {"bias": False},
        {"target_vocab_size": 40, "tied": "output"},
    ],
    ids=str,
)
def test_each_part_can_be_exchanged(change: dict[str, Any]) -> None:
    config = OriginalConfig(
        vocab_size=50, d_model=32, n_heads=4, d_ff=48, n_encoder_layers=2, n_decoder_layers=2
    ).changed(**change)
    model = heedful.build(config.to_dict()).double()
    source, target = torch.randint(0, 40, (2, 7)), torch.randint(0, 40, (2, 5))
    logits = model(source, target)
    assert logits.shape == (2, 5, config.target_vocab_size or 50)
    logits.square().mean().backward()
    assert all(p.grad is not None and bool(p.grad.isfinite().all()) for p in model.parameters())


def test_token_order_matters_only_with_positions() -> None:
    """Without positions an encoder is blind to order; with any scheme it is not."""
    tokens = torch.tensor([[3, 1, 2]])
    swapped = torch.tensor([[2, 1, 3]])
    for scheme in ("none", "sinusoidal", "learned", "relative", "rotary", "alibi"):
        torch.manual_seed(0)
        model = heedful.build("tiny", vocab_size=8, positions=scheme, max_length=8).double().eval()
        assert isinstance(model, EncoderDecoder)
        same = torch.allclose(model.encode(tokens), model.encode(swapped).flip(1), atol=1e-9)
        # Distances alone do not tell left from right.
        assert same == (scheme in ("none", "alibi")), scheme
