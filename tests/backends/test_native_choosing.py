"""Logprobs and the best of many tokens, found in a quicker way than torch's."""

from __future__ import annotations

import pytest
import torch

from heedful.backends.native.library import log_softmax, top

STRETCH = 256  # as layers.c has it


@pytest.mark.parametrize("size", [7, STRETCH, 3 * STRETCH, 3 * STRETCH + 1, 16_000])
@pytest.mark.parametrize("k", [1, 6])
@pytest.mark.parametrize("kind", ["distinct", "tied", "hidden", "ascending"])
def test_the_largest_of_each_row(size: int, k: int, kind: str) -> None:
    scores = torch.stack([torch.randperm(size).float() for _ in range(9)])
    if kind == "tied":
        scores = (scores / 50).floor()
    elif kind == "hidden":
        scores[scores < size - 3] = -torch.inf
    elif kind == "ascending":
        scores = torch.arange(size).float().expand(9, -1)
    values, places = top(scores, k)
    assert torch.equal(values, scores.topk(k).values)
    assert torch.equal(scores.gather(1, places), values)
    assert all(len(set(row)) == k for row in places.tolist())


@pytest.mark.parametrize("place", [0, 300, 999])
def test_what_is_no_number_is_seen_among_the_largest(place: int) -> None:
    scores = torch.randn(3, 1_000)
    scores[1, place] = torch.nan
    values, places = top(scores, 4)
    assert values.isnan().tolist() == [[False] * 4, [True, False, False, False], [False] * 4]
    assert places[1, 0] == place


@pytest.mark.parametrize("size", [1, 15, 17, 16_000])
@pytest.mark.parametrize("spread", [0.1, 3.0, 60.0])
def test_logprobs(size: int, spread: float) -> None:
    logits = torch.randn(9, size) * spread
    expected = logits.double().log_softmax(dim=-1)
    torch.testing.assert_close(log_softmax(logits).double(), expected, rtol=1e-6, atol=4e-6)


def test_logprobs_of_what_is_impossible_and_of_what_is_no_number() -> None:
    logits = torch.randn(4, 100)
    logits[0, 3] = -torch.inf
    logits[1, 3] = torch.nan
    logits[2, 3] = torch.inf
    logits[3] = -torch.inf
    expected = logits.log_softmax(dim=-1)
    torch.testing.assert_close(log_softmax(logits), expected, equal_nan=True)


def test_a_row_has_the_same_logprobs_alone_and_among_others() -> None:
    logits = torch.randn(7, 1_003)
    alone = log_softmax(logits[4:5].clone())
    assert torch.equal(log_softmax(logits)[4:5], alone)


def test_doubles_stay_doubles() -> None:
    logits = torch.randn(2, 50, dtype=torch.float64)
    assert torch.equal(log_softmax(logits), logits.log_softmax(dim=-1))
    assert torch.equal(top(logits, 3)[0], logits.topk(3).values)
