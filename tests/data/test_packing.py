"""Tensors in one piece of memory."""

from __future__ import annotations

import pytest
import torch

from heedful.data import batch as batch_module
from heedful.data.batch import cut, pinned_together, whole_of


@pytest.fixture
def kinds(monkeypatch: pytest.MonkeyPatch) -> list[torch.Tensor]:
    monkeypatch.setattr(batch_module, "_pinned", lambda size: torch.empty(size, dtype=torch.uint8))  # needs no GPU
    return [
        torch.arange(7),
        torch.tensor([[True, False, True]]),
        torch.randn(2, 3, dtype=torch.bfloat16),
        torch.zeros(0, 4),
        torch.tensor(2.5, dtype=torch.float64),
        torch.randn(4, 6)[:, ::2],
    ]


def test_they_are_what_they_were(kinds: list[torch.Tensor]) -> None:
    packed = pinned_together(kinds)
    for mine, tensors in zip(packed, kinds, strict=True):
        assert mine.dtype == tensors.dtype
        assert mine.is_contiguous()
        assert torch.equal(mine, tensors)


def test_one_copy_moves_all(kinds: list[torch.Tensor]) -> None:
    whole = whole_of(pinned_together(kinds))
    assert whole is not None
    room = cut(torch.zeros_like(whole), kinds)
    target = whole_of(room)
    assert target is not None
    target.copy_(whole)
    assert all(torch.equal(mine, tensors) for mine, tensors in zip(room, kinds, strict=True))


def test_what_lies_elsewhere_is_no_whole(kinds: list[torch.Tensor]) -> None:
    packed = pinned_together(kinds)
    assert whole_of([]) is None
    assert whole_of(kinds) is None
    assert whole_of(packed[:-1]) is None  # a part of the memory
    assert whole_of([packed[0].clone(), *packed[1:]]) is None
    assert whole_of([packed[0], packed[2], packed[1], *packed[3:]]) is None
