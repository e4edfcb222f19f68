"""Start, end, shift and padding, against literal matrices and a loop."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.data import batch as batch_module
from heedful.data.batch import Batch, SpecialTokens, copied, moved, pinned, tensors_of
from heedful.data.text_batch import TextBatch, TokenWindows
from heedful.errors import DataError
from heedful.tasks.forecasting.data import WindowBatch
from heedful.tasks.images.data import ImageBatch
from heedful.tasks.masked.data import MaskedBatch
from id_batches import batch_of

PAIRS = [([11, 12, 13], [21]), ([14], [22, 23])]
ids = st.lists(st.integers(3, 60_000), max_size=7)


def test_a_batch_written_out() -> None:
    batch = batch_of(PAIRS, shape=(3, 5, 4), rows=[70, 4])
    assert batch.source.tolist() == [[11, 12, 13, 2, 0], [14, 2, 0, 0, 0], [0] * 5]
    assert batch.target_in.tolist() == [[1, 21, 0, 0], [1, 22, 23, 0], [0] * 4]
    assert batch.target_out.tolist() == [[21, 2, 0, 0], [22, 23, 2, 0], [0] * 4]
    assert batch.source_mask.int().tolist() == [[1, 1, 1, 1, 0], [1, 1, 0, 0, 0], [0] * 5]
    assert batch.target_mask.int().tolist() == [[1, 1, 0, 0], [1, 1, 1, 0], [0] * 4]
    assert batch.source_lengths == (4, 2, 0)
    assert batch.target_lengths == (2, 3, 0)
    assert batch.rows == (70, 4)
    assert batch.shape == (3, 5, 4)
    assert batch.source.dtype == batch.target_in.dtype == batch.target_out.dtype == torch.int64
    assert batch.source_mask.dtype == batch.target_mask.dtype == torch.bool


def test_without_a_shape_the_smallest_is_taken() -> None:
    batch = batch_of(PAIRS)
    assert batch.shape == (2, 4, 3)
    assert batch.rows == (0, 1)


def test_other_special_ids_are_used_throughout() -> None:
    batch = batch_of(PAIRS, special=SpecialTokens(9, 8, 7))
    assert batch.source.tolist() == [[11, 12, 13, 7], [14, 7, 9, 9]]
    assert batch.target_in.tolist() == [[8, 21, 9], [8, 22, 23]]
    assert batch.target_out.tolist() == [[21, 7, 9], [22, 23, 7]]


@given(st.lists(st.tuples(ids, ids), max_size=5), st.integers(0, 2), st.integers(0, 3), st.integers(0, 3))
def test_every_batch_equals_the_loop(
    pairs: list[tuple[list[int], list[int]]], more: int, wider: int, longer: int
) -> None:
    width = max((len(source) for source, _ in pairs), default=0) + 1 + wider
    length = max((len(target) for _, target in pairs), default=0) + 1 + longer
    stored = [(np.array(source, dtype=np.uint16), np.array(target, dtype=np.uint16)) for source, target in pairs]
    batch = batch_of(stored, shape=(len(pairs) + more, width, length))

    def padded(sequence: list[int], size: int) -> list[int]:
        return sequence + [0] * (size - len(sequence))

    empty: list[list[int]] = [[]] * more
    assert batch.source.tolist() == [padded(row, width) for row in [*[[*s, 2] for s, _ in pairs], *empty]]
    assert batch.target_in.tolist() == [padded(row, length) for row in [*[[1, *t] for _, t in pairs], *empty]]
    assert batch.target_out.tolist() == [padded(row, length) for row in [*[[*t, 2] for _, t in pairs], *empty]]
    assert tuple(batch.source_mask.sum(dim=1).tolist()) == batch.source_lengths
    assert tuple(batch.target_mask.sum(dim=1).tolist()) == batch.target_lengths


@pytest.mark.parametrize("shape", [(1, 4, 3), (2, 3, 3), (2, 4, 2)])
def test_nothing_is_cut_off(shape: tuple[int, int, int]) -> None:
    with pytest.raises(DataError, match=r"cannot hold pairs that need \(2, 4, 3\)"):
        batch_of(PAIRS, shape=shape)


def test_all_tensors_move_to_the_device_and_the_host_keeps_its_numbers() -> None:
    batch = batch_of(PAIRS)
    moved = batch.to("meta")
    tensors = [value for value in vars(moved).values() if isinstance(value, torch.Tensor)]
    assert [tensor.device.type for tensor in tensors] == ["meta"] * 5
    assert (moved.source_lengths, moved.target_lengths, moved.shape) == ((4, 2), (2, 3), (2, 4, 3))


@pytest.mark.parametrize("kind", [Batch, TextBatch, MaskedBatch, TokenWindows, ImageBatch, WindowBatch])
def test_every_kind_of_batch_moves_to_a_gpu_in_one_copy_from_pinned_memory(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []

    def pinned_room(size: int) -> torch.Tensor:
        steps.append("pinned")
        return torch.empty(size, dtype=torch.uint8)

    def copy(tensor: torch.Tensor, device: str, *, non_blocking: bool = False) -> torch.Tensor:
        steps.append(f"{device}, {non_blocking}")
        return tensor.clone()

    monkeypatch.setattr(batch_module, "_pinned", pinned_room)
    monkeypatch.setattr(torch.Tensor, "to", copy)
    values = [torch.tensor(n) if "Tensor" in str(field.type) else (n,) for n, field in enumerate(fields(kind))]
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    there = kind(*values).to("cuda")
    assert type(there) is kind
    for field, value in zip(fields(kind), values, strict=True):
        assert getattr(there, field.name) == value
    assert steps == ["pinned", "cuda, True"]
    steps.clear()
    kind(*values).to("cpu")
    assert steps == ["cpu, True"] * len(tensors)


@pytest.mark.parametrize("in_one_piece", [True, False])
def test_a_copy_has_memory_of_its_own(in_one_piece: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_module, "_pinned", lambda size: torch.empty(size, dtype=torch.uint8))  # needs no GPU
    batch = pinned(batch_of(PAIRS)) if in_one_piece else batch_of(PAIRS)
    copy = copied(batch)
    for mine, other in zip(tensors_of(copy).values(), tensors_of(batch).values(), strict=True):
        assert torch.equal(mine, other)
        other.zero_()
        assert mine.any()
    assert (batch_module.whole_of(list(tensors_of(copy).values())) is not None) == in_one_piece


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_what_is_pinned_is_not_pinned_again() -> None:
    batch = pinned(batch_of(PAIRS))
    assert batch.source.is_pinned()
    assert pinned(batch).source.data_ptr() == batch.source.data_ptr()
    there = batch.to("cuda")
    assert there.source.tolist() == batch.source.tolist()
    assert pinned(there).source is there.source


def test_what_is_not_there_does_not_move() -> None:
    batch = moved(TokenWindows(torch.zeros(1, 3), None, (7,)), "meta")
    assert (batch.ids.device.type, batch.keep, batch.starts) == ("meta", None, (7,))
