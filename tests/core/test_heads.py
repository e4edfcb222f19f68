"""Heads: what they make of a stack's output, and that padding has no say in it."""

from __future__ import annotations

import pytest
import torch
from tiny_models import D, V, close, shaken
from torch import Tensor, nn

from heedful.core import (
    ClassHead,
    ClsPool,
    ConcatPool,
    EnsembleHead,
    ForecastHead,
    Hidden,
    LayerNorm,
    MaxPool,
    MeanPool,
    PoolingHead,
    SpanHead,
    TokenPool,
    VocabularyHead,
    padding,
)

KEEP = torch.tensor([[True, True, True, True], [False, False, True, True], [True, False, False, False]])


@pytest.fixture
def x() -> Tensor:
    return torch.randn(3, 4, D, dtype=torch.float64)


def test_vocabulary_logits_are_a_product_with_the_table(x: Tensor) -> None:
    head = shaken(VocabularyHead(D, V, bias=True, transform=LayerNorm(D), scale=0.5))
    assert head.bias is not None
    close(head(x), head.transform(x) * 0.5 @ head.weight.T + head.bias)
    table = nn.Embedding(V, D).double()
    close(VocabularyHead(D, V, embedding=table)(x), x @ table.weight.T)
    with pytest.raises(ValueError, match=r"needs an embedding of shape \(5, 16\)"):
        VocabularyHead(D, 5, embedding=table)


@pytest.mark.parametrize("keep", [None, KEEP, padding([4, 2, 0])])
def test_hidden_gives_all_vectors(x: Tensor, keep: Tensor | None) -> None:
    assert Hidden()(x, keep) is x


def test_the_first_real_token_is_taken(x: Tensor) -> None:
    assert torch.equal(ClsPool()(x), x[:, 0])
    assert torch.equal(ClsPool()(x, padding(KEEP)), torch.stack([x[0, 0], x[1, 2], x[2, 0]]))


def test_a_token_is_counted_among_the_real_ones_even_beside_nan(x: Tensor) -> None:
    assert torch.equal(TokenPool(0)(x), ClsPool()(x))
    assert torch.equal(TokenPool(2)(x), x[:, 2])
    found = TokenPool(1)(x.masked_fill(~KEEP[..., None], torch.nan), padding(KEEP))
    assert torch.equal(found, torch.stack([x[0, 1], x[1, 3], torch.zeros_like(x[2, 0])]))
    with pytest.raises(ValueError, match="the index of a token is at least 0, not -1"):
        TokenPool(-1)


def test_the_mean_is_over_real_tokens_even_beside_nan(x: Tensor) -> None:
    close(MeanPool()(x), x.mean(dim=1))
    wanted = torch.stack([x[row][KEEP[row]].mean(dim=0) for row in range(3)])
    close(MeanPool()(x.masked_fill(~KEEP[..., None], torch.nan), padding(KEEP)), wanted)
    assert not MeanPool()(x, padding([4, 2, 0]))[2].any()


def test_pooling_and_classes_follow_the_pool(x: Tensor) -> None:
    pooled = shaken(PoolingHead(ClsPool(), nn.Linear(D, D), "tanh"))
    close(pooled(x, padding(KEEP)), torch.tanh(pooled.dense(ClsPool()(x, padding(KEEP)))))
    close(PoolingHead(MeanPool())(x), x.mean(dim=1))
    classes = shaken(ClassHead(MeanPool(), D, 5))
    close(classes(x, padding(KEEP)), MeanPool()(x, padding(KEEP)) @ classes.out_proj.weight.T + classes.out_proj.bias)


def test_an_average_is_the_mean_of_what_its_heads_say(x: Tensor) -> None:
    first, second = shaken(ClassHead(ClsPool(), D, 5)), shaken(ClassHead(TokenPool(1), D, 5))
    both = EnsembleHead([first, second])
    close(both(x), (first(x) + second(x)) / 2)
    close(both(x, padding(KEEP)), (first(x, padding(KEEP)) + second(x, padding(KEEP))) / 2)


def test_a_forecast_reads_all_patches_and_no_padding(x: Tensor) -> None:
    head = shaken(ForecastHead(ConcatPool(4), 4 * D, horizon=7, n_channels=2))
    flat = x.masked_fill(~KEEP[..., None], 0.0).reshape(3, 4 * D)
    wanted = (flat @ head.out_proj.weight.T + head.out_proj.bias).reshape(3, 7, 2)
    close(head(x.masked_fill(~KEEP[..., None], torch.nan), padding(KEEP)), wanted)
    with pytest.raises(ValueError, match="reads 4 patches, but there are 3"):
        head(x[:, :3])


def test_the_largest_values_are_those_of_real_tokens(x: Tensor) -> None:
    nobody = torch.tensor([[True, True, False, False], [False, False, False, False], [False, True, True, True]])
    close(MaxPool()(x), x.max(dim=1).values)
    wanted = torch.stack([x[0, :2].amax(dim=0), torch.zeros(D, dtype=x.dtype), x[2, 1:].amax(dim=0)])
    close(MaxPool()(x.masked_fill(~nobody[..., None], torch.nan), padding(nobody)), wanted)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_padding_can_neither_start_nor_end_a_span(x: Tensor, dtype: torch.dtype) -> None:
    head, x = shaken(SpanHead(D)).to(dtype), x.to(dtype)
    plain = x @ head.out_proj.weight.T + head.out_proj.bias
    close(head(x), plain, 1e-2 if dtype in (torch.bfloat16, torch.float16) else 1e-5)
    high = torch.where(KEEP[..., None], x, 1e3 * torch.sign(head.out_proj.weight.sum(dim=0)))  # padding that would win
    scores = head(high, padding(KEEP))
    assert torch.equal(scores[KEEP], head(x)[KEEP])
    assert KEEP.gather(1, scores.argmax(dim=1)).all()
    empty = head(x, padding([4, 0, 2]))
    assert empty.log_softmax(dim=1).isfinite().all()


def test_classes_of_every_token_are_those_of_its_vector(x: Tensor) -> None:
    head = shaken(ClassHead(Hidden(), D, 5))
    close(head(x, padding(KEEP)), x @ head.out_proj.weight.T + head.out_proj.bias)
