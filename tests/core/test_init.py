"""How weights start: the bounds and deviations that init.py promises, and what a fresh model does with them."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from heedful import core

WIDTH, VOCABULARY = 128, 500

# How to build each, and how many matrices are packed into each of its parts.
MATRICES: dict[str, tuple[Callable[[], nn.Module], dict[str, int]]] = {
    "attention": (lambda: core.MultiHeadAttention(WIDTH, 4), {"q_proj": 1, "kv_proj": 2, "out_proj": 1}),
    "grouped": (lambda: core.MultiHeadAttention(WIDTH, 8, n_kv_heads=2), {"q_proj": 1, "kv_proj": 2, "out_proj": 1}),
    "feed-forward": (lambda: core.FeedForward(WIDTH, 512), {"up_proj": 1, "down_proj": 1}),
    "gated": (lambda: core.GatedFeedForward(WIDTH, 512, bias=True), {"gate_up_proj": 2, "down_proj": 1}),
    "patches": (lambda: core.PatchEmbedding(WIDTH, image_size=16, patch_size=8), {"project": 1}),
    "series": (lambda: core.SeriesEmbedding(WIDTH, patch_length=16), {"project": 1}),
    "classes": (lambda: core.ClassHead(core.MeanPool(), WIDTH, 64), {"out": 1}),
}


@pytest.mark.parametrize("name", MATRICES)
def test_each_matrix_starts_xavier_uniform_even_inside_a_packed_one(name: str) -> None:
    build, pieces = MATRICES[name]
    module = build()
    for part, n in pieces.items():
        layer = module.get_submodule(part)
        assert isinstance(layer, nn.Linear)
        assert not layer.bias.any()
        for matrix in layer.weight.detach().chunk(n):
            bound = math.sqrt(6 / sum(matrix.shape))
            assert 0.98 * bound < matrix.abs().max() <= bound
            assert matrix.var().item() == pytest.approx(2 / sum(matrix.shape), rel=0.08)
            assert abs(matrix.mean().item()) < 0.05 * bound


@pytest.mark.parametrize(
    "build",
    [
        lambda: core.TokenEmbedding(VOCABULARY, WIDTH),
        lambda: core.VocabularyHead(WIDTH, VOCABULARY),
        lambda: core.Learned(VOCABULARY, WIDTH),
    ],
    ids=["tokens", "head", "positions"],
)
def test_embeddings_start_with_deviation_one_over_root_d(build: Callable[[], nn.Module]) -> None:
    (table,) = build().parameters()
    assert table.std().item() == pytest.approx(WIDTH**-0.5, rel=0.02)
    assert abs(table.mean().item()) < 0.02 * WIDTH**-0.5


def test_norms_start_as_nothing_but_the_norm() -> None:
    norm = core.LayerNorm(WIDTH)
    assert norm.bias is not None
    assert norm.weight.eq(1).all()
    assert norm.bias.eq(0).all()
    assert core.RMSNorm(WIDTH).weight.eq(1).all()


@pytest.mark.parametrize("wrap", [core.PreNorm, core.PostNorm])
@torch.no_grad()
def test_a_fresh_model_keeps_activations_of_order_one(wrap: type[core.PreNorm | core.PostNorm]) -> None:
    embedding = core.TokenEmbedding(VOCABULARY, WIDTH)
    layers = []
    for _ in range(6):
        attention, feed_forward = core.MultiHeadAttention(WIDTH, 4), core.FeedForward(WIDTH, 512)
        layers.append(core.EncoderLayer(*(wrap(part, core.LayerNorm(WIDTH)) for part in (attention, feed_forward))))
    x, _ = embedding(torch.randint(0, VOCABULARY, (4, 32)))
    assert x.std().item() == pytest.approx(1.0, rel=0.05)
    seen: list[Tensor] = []
    for layer in layers:
        layer.register_forward_hook(lambda _, inputs, out: seen.append(out))
    hidden = core.Encoder(layers, norm=core.LayerNorm(WIDTH) if wrap is core.PreNorm else None)(x)
    assert all(0.5 < out.std().item() < 3 for out in seen)
    logits = core.VocabularyHead(WIDTH, VOCABULARY, embedding=embedding)(hidden)
    assert logits.std().item() == pytest.approx(1.0, rel=0.3)
