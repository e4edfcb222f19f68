"""Attention in bf16 has the gradients that it has written out in float64, whichever kernel runs it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from heedful.core import Mask, attend, attention_weights, causal, padding

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def parts_of(n_queries: int, n_keys: int) -> list[Tensor]:
    """Queries, keys and values as a model has them: the heads of a token beside each other."""
    sizes = (n_queries, n_keys, n_keys)
    return [torch.randn(64, n, 4, 64, device="cuda").bfloat16().transpose(1, 2) for n in sizes]


def assert_right(parts: Sequence[Tensor], keep: Mask, slope: Tensor) -> None:
    rounded = [part.detach().requires_grad_() for part in parts]
    exact = [part.detach().double().requires_grad_() for part in parts]
    query, key, value = rounded
    found = torch.autograd.grad(attend(query, key, value, keep=keep), rounded, slope)
    query, key, value = exact
    wanted = torch.autograd.grad(attention_weights(query, key, keep=keep) @ value, exact, slope.double())
    for mine, theirs in zip(found, wanted, strict=True):
        assert float((mine - theirs).norm() / theirs.norm()) < 0.02


@pytest.mark.parametrize(("n_queries", "n_keys"), [(16, 16), (44, 44), (48, 44), (64, 64), (31, 192)])
def test_gradients_with_a_mask(n_queries: int, n_keys: int) -> None:
    torch.manual_seed(n_keys)
    keep = torch.arange(n_keys, device="cuda") < torch.randint(1, n_keys + 1, (64, 1), device="cuda")
    slope = torch.randn(64, 4, n_queries, 64, device="cuda").bfloat16()
    assert_right(parts_of(n_queries, n_keys), padding(keep), slope)


@pytest.mark.parametrize("length", [20, 64, 256])
def test_gradients_that_are_laid_out_in_another_way_than_the_ones_before(length: int) -> None:
    torch.manual_seed(length)
    heads_first = torch.randn(64, 4, length, 64, device="cuda").bfloat16()
    for slope in (heads_first, heads_first.transpose(1, 2).contiguous().transpose(1, 2), heads_first):
        assert_right(parts_of(length, length), causal(), slope)
