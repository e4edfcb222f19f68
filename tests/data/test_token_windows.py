"""Windows: what is drawn depends on (seed, epoch, step) alone; what is scored is every token once."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from heedful.data.loader import Shard
from heedful.data.text_batch import RandomWindows, TokenWindows, every_window
from heedful.errors import DataError

ROW = np.arange(1000, dtype=np.uint16)


def test_a_drawn_window_is_a_slice_and_its_targets_are_one_further() -> None:
    (batch, *_) = RandomWindows(ROW, context=16, batch=5).epoch(0)
    assert batch.ids.shape == (5, 17)
    assert batch.ids.dtype == torch.int64
    assert batch.keep is None
    for start, ids in zip(batch.starts, batch.ids.tolist(), strict=True):
        assert ids == list(range(start, start + 17))
    assert torch.equal(batch.targets, batch.inputs + 1)


def test_what_is_drawn_depends_on_seed_epoch_and_step_alone() -> None:
    def drawn(epoch: int, start: int = 0, seed: int = 3) -> list[tuple[int, ...]]:
        return [batch.starts for batch in RandomWindows(ROW, context=16, batch=5, seed=seed).epoch(epoch, start)]

    steps = drawn(2)
    assert len(steps) == 1000 // 80 == RandomWindows(ROW, context=16, batch=5).steps_per_epoch(2)
    assert drawn(2, start=7) == steps[7:]
    assert len({*steps, *drawn(1), *drawn(2, seed=4)}) == 3 * len(steps)


@pytest.mark.parametrize("of", [1, 2, 5, 7])
def test_shares_are_drawn_as_one(of: int) -> None:
    windows = RandomWindows(ROW, context=16, batch=5, seed=3)
    every = [list(windows.epoch(2, 4, Shard(index, of))) for index in range(of)]
    for whole, *parts in zip(windows.epoch(2, 4), *every, strict=True):
        for index, part in enumerate(parts):
            n = len(part.starts)
            assert part.starts == whole.starts[index::of]
            assert part.ids.shape == (-(-5 // of), 17)
            assert torch.equal(part.ids[:n], whole.ids[index::of])
            if of in (1, 5):
                assert part.keep is None
            else:
                assert part.keep is not None
                assert part.keep.tolist() == [[True] * 16] * n + [[False] * 16] * (len(part.ids) - n)


def test_every_place_may_be_drawn_the_last_one_too() -> None:
    windows = RandomWindows(ROW[:20], context=16, batch=64)
    starts = Counter(start for epoch in range(20) for batch in windows.epoch(epoch) for start in batch.starts)
    assert set(starts) == {0, 1, 2, 3}
    assert windows.steps_per_epoch() == 1
    assert set(next(RandomWindows(ROW[:17], context=16, batch=4).epoch(0)).starts) == {0}
    with pytest.raises(DataError, match=r"16 tokens, too few for one window of 16 .* lower the context to 15"):
        RandomWindows(ROW[:16], context=16, batch=4)


@pytest.mark.parametrize("length", [2, 3, 9, 16, 17, 18, 100, 101])
@pytest.mark.parametrize("stride", [1, 5, 8, 16])
@pytest.mark.parametrize("batch", [1, 4])
def test_every_token_counts_once_with_enough_before_it(length: int, stride: int, batch: int) -> None:
    scored = Counter[int]()
    for windows in every_window(ROW[:length], context=16, stride=stride, batch=batch):
        assert windows.ids.shape == (batch, 17)
        assert windows.keep is not None
        for row in range(batch):
            for place in range(16):
                if windows.keep[row, place]:
                    target = int(windows.targets[row, place])
                    scored[target] += 1
                    assert place + 1 >= min(target, 16 - stride + 1)
                    assert windows.inputs[row, : place + 1].tolist() == list(range(target - place - 1, target))
    assert scored == Counter(range(1, length))


def test_nothing_to_predict_is_no_window() -> None:
    assert list(every_window(ROW[:1], context=16, stride=8, batch=2)) == []
    with pytest.raises(ValueError, match="a stride goes from 1 to the context, 16, not 17"):
        list(every_window(ROW, context=16, stride=17, batch=2))


def test_a_batch_moves_whole() -> None:
    (first, *_) = every_window(ROW[:40], context=16, stride=16, batch=2)
    moved = first.to("cpu")
    assert isinstance(moved, TokenWindows)
    assert torch.equal(moved.ids, first.ids)
    assert moved.keep is not None
    assert first.keep is not None
    assert torch.equal(moved.keep, first.keep)
