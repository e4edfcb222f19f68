"""Attention over padded rows in bf16 has the gradients that it has written out in float64, whichever kernel runs it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from heedful.core import attend, attention_weights, padding

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def written_out(parts: Sequence[Tensor], keep: Tensor) -> Tensor:
    query, key, value = parts
    return attention_weights(query, key, keep=padding(keep)) @ value


@pytest.mark.parametrize(("n_queries", "n_keys"), [(16, 16), (44, 44), (48, 44), (64, 64), (31, 192)])
def test_gradients_with_a_mask(n_queries: int, n_keys: int) -> None:
    torch.manual_seed(n_keys)
    sizes = (n_queries, n_keys, n_keys)
    exact = [torch.randn(64, 4, n, 64, device="cuda").bfloat16().double().requires_grad_() for n in sizes]
    rounded = [part.detach().bfloat16().requires_grad_() for part in exact]
    query, key, value = rounded
    keep = torch.arange(n_keys, device="cuda") < torch.randint(1, n_keys + 1, (64, 1), device="cuda")
    slope = torch.randn(64, 4, n_queries, 64, device="cuda")
    wanted = torch.autograd.grad(written_out(exact, keep), exact, slope.double())
    found = torch.autograd.grad(attend(query, key, value, keep=padding(keep)), rounded, slope.bfloat16())
    for mine, theirs in zip(found, wanted, strict=True):
        assert float((mine - theirs).norm() / theirs.norm()) < 0.02
