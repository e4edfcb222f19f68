"""Every pair once, the same order for the same seed and epoch, few shapes and little padding."""

from __future__ import annotations

import math
import tracemalloc
from itertools import combinations, islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from heedful.data.batch import Batch, Sequences
from heedful.data.loader import Loader, LoaderConfig, Shard
from heedful.data.store import TokenStore
from heedful.errors import DataError
from id_batches import sequences_of

CONFIG = LoaderConfig(batch_tokens=256)


class Lengths(TokenStore):
    """A store in memory with these lengths; it notes which rows are asked for."""

    def __init__(self, lengths: Any) -> None:
        self.lengths = np.array(lengths, dtype=np.int32)
        self.requested_rows: list[int] = []

    def sides(self, rows: NDArray[np.intp]) -> tuple[Sequences, Sequences]:
        self.requested_rows += rows.tolist()
        source, target = ([np.full(n, row + 3) for n, row in zip(ns, rows, strict=True)] for ns in self.lengths[rows].T)
        return sequences_of(source), sequences_of(target)


def natural(count: int, seed: int = 0) -> Lengths:
    """Lengths as sentences have them: many short ones, few long ones, both sides alike."""
    random = np.random.default_rng(seed)
    common = random.lognormal(2.3, 0.5, size=(count, 1))
    return Lengths(np.clip(common * np.exp(random.normal(0, 0.15, size=(count, 2))), 1, 100))


def lopsided() -> Lengths:
    """Pairs whose longer side changes with the length: a bucket's sides are not those of its longest pair."""
    return Lengths([(7, 1)] * 400 + [(1, 11)] * 200 + [(15, 1)] * 1000)


def rows(batches: Any) -> list[tuple[int, ...]]:
    return [batch.rows for batch in batches]


def padding(batches: list[Batch]) -> float:
    places = sum(batch.source.numel() + batch.target_in.numel() for batch in batches)
    return 1 - sum(int(mask.sum()) for batch in batches for mask in (batch.source_mask, batch.target_mask)) / places


@given(
    st.lists(st.tuples(st.integers(0, 70), st.integers(0, 70)), min_size=1, max_size=60),
    st.integers(1, 300),
    st.integers(1, 8),
)
def test_any_lengths_give_every_pair_once_in_shapes_within_the_budget(
    lengths: list[tuple[int, int]], batch_tokens: int, n_shapes: int
) -> None:
    loader = Loader(Lengths(lengths), LoaderConfig(batch_tokens=batch_tokens, n_shapes=n_shapes), seed=1)
    for batches in (list(loader.epoch(0)), list(loader.in_order())):
        assert sorted(row for batch in batches for row in batch.rows) == list(range(len(lengths)))
        assert len(batches) == loader.steps_per_epoch(0)
        assert {batch.shape for batch in batches} == set(loader.shapes)
        assert len(loader.shapes) <= n_shapes
        for batch in batches:
            b, s, t = batch.shape
            assert b * max(s, t) <= batch_tokens or b == 1
            assert b - 1 <= len(batch.rows) <= b
            missing = (0,) * (b - len(batch.rows))
            assert batch.source_lengths == (*(lengths[row][0] + 1 for row in batch.rows), *missing)
            assert batch.target_lengths == (*(lengths[row][1] + 1 for row in batch.rows), *missing)
            for place, row in enumerate(batch.rows):
                assert set(batch.source[place].tolist()) <= {row + 3, 0, 2}
        assert loader.padding_share == pytest.approx(padding(batches))


def test_the_order_is_that_of_seed_and_epoch() -> None:
    store = natural(800)
    orders = {(seed, epoch): rows(Loader(store, CONFIG, seed).epoch(epoch)) for seed in range(2) for epoch in range(2)}
    assert rows(Loader(natural(800), CONFIG, 1).epoch(1)) == orders[1, 1]
    assert len({tuple(order) for order in orders.values()}) == 4
    all_shards = [{frozenset(batch) for batch in order} for order in orders.values()]
    assert not all_shards[0] & all_shards[1]  # other company, too, not only another order of the same batches


def test_batches_come_shuffled_across_shapes() -> None:
    shapes = [batch.shape for batch in Loader(natural(2000), CONFIG).epoch(0)]
    changes = sum(one != other for one, other in pairwise(shapes))
    assert changes > len(shapes) / 2


@pytest.mark.parametrize("start", [0, 1, 17, 40])
def test_an_epoch_starts_anywhere_without_making_what_came_before(start: int) -> None:
    store = natural(800)
    loader = Loader(store, CONFIG, 3)
    whole = list(loader.epoch(5))
    store.requested_rows.clear()
    rest = list(loader.epoch(5, start=start))
    assert rows(rest) == rows(whole)[start:]
    assert all((one.source == other.source).all() for one, other in zip(rest, whole[start:], strict=True))
    assert store.requested_rows == [row for batch in rest for row in batch.rows]


def test_an_epoch_can_start_at_its_end_and_not_beyond() -> None:
    loader = Loader(natural(100), CONFIG)
    steps = loader.steps_per_epoch(0)
    assert list(loader.epoch(0, start=steps)) == []
    for outside in (-1, steps + 1):
        with pytest.raises(DataError, match=f"has {steps} steps and cannot start at step {outside}"):
            loader.epoch(0, start=outside)


@pytest.mark.parametrize("of", [2, 3, 50])
def test_shares_of_a_batch_have_one_shape_and_every_row_once(of: int) -> None:
    loader = Loader(natural(300), CONFIG, 3)
    every = [list(loader.epoch(1, 2, Shard(index, of))) for index in range(of)]
    for whole, *parts in zip(loader.epoch(1, 2), *every, strict=True):
        b, s, t = whole.shape
        assert {part.shape for part in parts} == {(math.ceil(b / of), s, t)}
        assert [part.rows for part in parts] == [whole.rows[index::of] for index in range(of)]
        for index, part in enumerate(parts):
            n = len(part.rows)
            assert torch.equal(part.target_out[:n], whole.target_out[: len(whole.rows)][index::of])
            assert not part.source_mask[n:].any()
            assert not part.target_mask[n:].any()
    with pytest.raises(ValueError, match="the index of one of 2 shards is from 0 to 1, not 2"):
        Shard(2, 2)


def test_in_order_goes_from_short_to_long() -> None:
    store = natural(500)
    widths = [store.lengths[row].max() for batch in Loader(store, CONFIG).in_order() for row in batch.rows]
    assert widths == sorted(widths)


def least_cost(lengths: NDArray[np.int32], batch_tokens: int, n_shapes: int) -> int:
    """The places of the best division into buckets, found by trying all."""
    ended = lengths + 1
    widths = -(-ended.max(axis=1) // 4) * 4
    ends = sorted(set(widths.tolist()))
    best = []
    for count in range(n_shapes):
        for cuts in combinations(ends[:-1], count):
            total, below = 0, 0
            for end in (*cuts, ends[-1]):
                inside = ended[(widths > below) & (widths <= end)]
                s, t = -(-inside.max(axis=0) // 4) * 4
                b = max(1, batch_tokens // max(s, t))
                total += -(-len(inside) // b) * b * (s + t)
                below = end
            best.append(total)
    return min(best)


@pytest.mark.parametrize("n_shapes", [1, 2, 3])
@pytest.mark.parametrize("store", [natural(300, 0), natural(300, 1), lopsided()], ids=["one", "two", "lopsided"])
def test_no_other_division_computes_less(store: Lengths, n_shapes: int) -> None:
    loader = Loader(store, LoaderConfig(batch_tokens=200, n_shapes=n_shapes))
    count = dict.fromkeys(loader.shapes, 0)
    for batch in loader.in_order():
        count[batch.shape] += 1
    chosen = sum(count[b, s, t] * max(1, 200 // max(s, t)) * (s + t) for b, s, t in loader.shapes)
    assert chosen == least_cost(store.lengths, 200, n_shapes)


def test_more_shapes_leave_less_padding() -> None:
    store = natural(5000)
    shares = [Loader(store, LoaderConfig(batch_tokens=2048, n_shapes=n)).padding_share for n in (1, 2, 4, 8)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.8
    assert shares[-1] < 0.25


def test_thousands_of_different_lengths_are_planned() -> None:
    lengths = np.arange(1, 20_001).repeat(2).reshape(-1, 2)
    loader = Loader(Lengths(lengths), LoaderConfig(batch_tokens=40_000))
    assert len(loader.shapes) == 8
    assert loader.padding_share < 0.15


def test_many_pairs_take_little_memory() -> None:
    store = natural(200_000)
    tracemalloc.start()
    loader = Loader(store, LoaderConfig(batch_tokens=4096))
    list(islice(loader.epoch(0), 2))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200_000 * 100  # bytes a pair, at the most; kept are 8


def test_a_store_on_disk_is_loaded(tmp_path: Path) -> None:
    pairs = [([5] * (index % 9 + 1), [6] * (index % 7 + 1), ("a.tsv", index + 1)) for index in range(100)]
    store = TokenStore.write(tmp_path, pairs, vocab_size=10)
    batch = next(Loader(store, CONFIG, 2).epoch(0, start=3))
    for place, row in enumerate(batch.rows):
        source, target, (_, line) = pairs[row]
        assert batch.source[place].tolist()[: len(source) + 1] == [*source, 2]
        assert batch.target_out[place].tolist()[: len(target) + 1] == [*target, 2]
        assert store.place(row) == f"a.tsv:{line}"
