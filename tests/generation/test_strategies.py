"""The best of many tokens, found in a quicker way than torch's."""

from __future__ import annotations

import pytest
import torch

from heedful.generation.strategies import BLOCK, top


@pytest.mark.parametrize("size", [7, 4 * BLOCK, 25 * BLOCK, 25 * BLOCK + 1, 16_000])
@pytest.mark.parametrize("k", [1, 6])
@pytest.mark.parametrize("kind", ["distinct", "tied", "hidden", "ascending"])
def test_the_largest_of_each_row(size: int, k: int, kind: str) -> None:
    scores = torch.stack([torch.randperm(size).float() for _ in range(9)])
    if kind == "tied":
        scores = (scores / 50).floor()
    elif kind == "hidden":
        scores[scores < size - 3] = -torch.inf
    elif kind == "ascending":  # the best stand where no block is full
        scores = torch.arange(size).float().expand(9, -1)
    values, places = top(scores, k)
    assert torch.equal(values, scores.topk(k).values)
    assert torch.equal(scores.gather(1, places), values)
    assert all(len(set(row)) == k for row in places.tolist())
