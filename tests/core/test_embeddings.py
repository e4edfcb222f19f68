"""Embeddings: what is added, in which order patches stand, and what becomes of padding."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from tiny_models import D, V, close, shaken, tokens
from torch import nn

from heedful.core import PatchEmbedding, SeriesEmbedding, TokenEmbedding, VocabularyHead, padding
from heedful.core.masks import Grid


def test_token_vectors_are_scaled_and_segments_added() -> None:
    ids, segments = tokens(), torch.randint(0, 2, (3, 8))
    embedding = shaken(TokenEmbedding(V, D, n_segments=2))
    assert embedding.segments is not None
    x, mask = embedding(ids, segments=segments)
    close(x, embedding.weight[ids] * math.sqrt(D) + embedding.segments[segments])
    close(embedding(ids)[0], embedding.weight[ids] * math.sqrt(D) + embedding.segments[0])
    assert mask.parts == ()
    plain = shaken(TokenEmbedding(V, D, scale=False))
    close(plain(ids)[0], plain.weight[ids])


def test_one_matrix_may_serve_source_target_and_output() -> None:
    source = target = shaken(TokenEmbedding(V, D))
    head = VocabularyHead(D, V, embedding=source)
    model = nn.ModuleList([source, target, head])
    assert [parameter.shape for parameter in model.parameters()] == [(V, D)]

    def loss(a: TokenEmbedding, b: TokenEmbedding, c: VocabularyHead) -> torch.Tensor:
        return c(a(torch.tensor([[1, 2]]))[0] * b(torch.tensor([[3, 2]]))[0]).square().sum()

    (shared,) = torch.autograd.grad(loss(source, target, head), source.weight)
    apart = TokenEmbedding(V, D).double(), TokenEmbedding(V, D).double(), VocabularyHead(D, V).double()
    for part in apart:
        part.weight.detach().copy_(source.weight.detach())
    close(shared, torch.stack(torch.autograd.grad(loss(*apart), [part.weight for part in apart])).sum(0))


def test_nothing_that_replaces_parameters_unties_them() -> None:
    def tied() -> nn.Module:
        source = TokenEmbedding(V, D)
        return nn.ModuleList([source, VocabularyHead(D, V, embedding=source)])

    state = tied().state_dict()
    with torch.device("meta"):
        loaded, emptied = tied(), tied()
    loaded.load_state_dict(state, assign=True)
    for model in (loaded, emptied.to_empty(device="cpu"), copy.deepcopy(tied())):
        assert len(list(model.parameters())) == 1


@pytest.mark.parametrize("size", [8, (8, 12)])
def test_patches_stand_as_a_convolution_leaves_them(size: int | tuple[int, int]) -> None:
    embedding = shaken(PatchEmbedding(D, image_size=size, patch_size=4, n_channels=3, n_prefix=2))
    convolution = nn.Conv2d(3, D, kernel_size=4, stride=4).double()
    convolution.load_state_dict(
        {"weight": embedding.project.weight.reshape(D, 3, 4, 4), "bias": embedding.project.bias}
    )
    images = torch.randn(2, *embedding.shape, dtype=torch.float64)
    x, _ = embedding(images)
    close(x[:, :2], embedding.prefix.expand(2, -1, -1))
    close(x[:, 2:], convolution(images).flatten(2).transpose(1, 2))
    assert x.shape[1] == 2 + embedding.n_patches


def test_thirty_days_make_nine_patches_of_six() -> None:
    embedding = SeriesEmbedding(6, patch_length=6, stride=3)
    nn.init.eye_(embedding.project.weight)
    days = torch.arange(30.0)[None, :, None]
    x, _ = embedding(days)
    assert embedding.n_patches(30) == x.shape[1] == 9
    assert x[0].tolist() == [list(range(3 * p, 3 * p + 6)) for p in range(9)]


def test_all_channels_of_a_patch_share_its_vector() -> None:
    embedding = shaken(SeriesEmbedding(D, patch_length=2, stride=2, n_channels=3))
    series = torch.randn(2, 6, 3, dtype=torch.float64)
    by_hand = [
        torch.cat([series[:, p : p + 2, c] for c in range(3)], dim=1) @ embedding.project.weight.T for p in (0, 2, 4)
    ]
    close(embedding(series)[0], torch.stack(by_hand, dim=1) + embedding.project.bias)


def test_a_patch_is_real_where_all_of_its_days_are() -> None:
    embedding = shaken(SeriesEmbedding(D, patch_length=4, stride=2))
    series = torch.randn(2, 10, 1, dtype=torch.float64)
    keep = torch.tensor([[True] * 5 + [False] * 5, [False] * 3 + [True] * 7])
    x, mask = embedding(series, keep)
    patches = mask.real_keys(Grid(2, 4, 4, 0, x.device))
    assert patches is not None
    assert patches.tolist() == [[True, False, False, False], [False, False, True, True]]
    spoiled, _ = embedding(series.masked_fill(~keep[..., None], torch.nan), keep)
    close(spoiled, embedding(series.masked_fill(~keep[..., None], 0.0))[0])
    close(embedding(series, padding([5, 10]))[0][0], x[0])


@pytest.mark.parametrize(("length", "wanted"), [(6, 1), (9, 2), (30, 9)])
def test_patches_are_counted(length: int, wanted: int) -> None:
    assert SeriesEmbedding(D).n_patches(length) == wanted
    x, _ = SeriesEmbedding(D)(torch.zeros(1, length, 1))
    assert x.shape[1] == wanted


def test_the_newest_steps_are_never_dropped_in_silence() -> None:
    with pytest.raises(ValueError, match=r"8 steps .* without losing the newest; pass 6 or 9"):
        SeriesEmbedding(D)(torch.zeros(1, 8, 1))


IDS, PIXELS = torch.tensor([[1]]), torch.zeros(1, 3, 8, 8)


def words() -> TokenEmbedding:
    return TokenEmbedding(5, D)


def patches() -> PatchEmbedding:
    return PatchEmbedding(D, image_size=8, patch_size=4)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: words()(torch.tensor([[0, 5]])), ValueError, "token ids must be from 0 to 4, but one is 5"),
        (lambda: words()(torch.tensor([[0, -1]])), ValueError, "but one is -1"),
        (lambda: words()(torch.zeros(1, 2)), TypeError, r"integers of shape \(B, T\), not torch.float32"),
        (lambda: words()(torch.tensor([1])), TypeError, r"of shape \(1,\)"),
        (lambda: words()(IDS, segments=IDS), ValueError, "no segments; build it with n_segments"),
        (lambda: TokenEmbedding(5, D, n_segments=1)(IDS, segments=IDS), ValueError, "segments must be .* but one is 1"),
        (lambda: PatchEmbedding(D, image_size=10, patch_size=4), ValueError, "10 x 10 cannot be cut .* 4 x 4"),
        (lambda: patches()(PIXELS[:, :1]), ValueError, r"\(B, 3, 8, 8\), not \(1, 1, 8, 8\)"),
        (lambda: patches()(PIXELS.byte()), ValueError, "uint8"),
        (lambda: patches()(PIXELS, padding([1])), ValueError, "neither padding nor segments"),
        (lambda: SeriesEmbedding(D, stride=0), ValueError, "stride=0 must be at least 1"),
        (
            lambda: SeriesEmbedding(D)(torch.zeros(1, 5, 1)),
            ValueError,
            "5 steps cannot be cut into patches of 6 every 3",
        ),
        (lambda: SeriesEmbedding(D)(torch.zeros(1, 30)), ValueError, r"\(B, length, 1\), not \(1, 30\)"),
        (lambda: SeriesEmbedding(D)(torch.zeros(1, 30, 2)), ValueError, r"not \(1, 30, 2\)"),
    ],
)
def test_wrong_input_is_named(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
