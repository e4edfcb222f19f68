"""SeriesWindows: which there are, in which part, in what order, and what of them counts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from series_files import TINY, prepared, table, walks

from heedful.errors import ConfigError, DataError
from heedful.families import PatchTSTConfig
from heedful.tasks.forecasting import ForecastingConfig, SeriesConfig
from heedful.tasks.forecasting.data import (
    WindowBatches,
    as_rows,
    as_windows,
    borders,
    filled,
    needed,
    prepare_series,
    spans,
)
from heedful.tasks.run import Files, TooLittleDataError

NAN = float("nan")


# Where parts begin and end


def test_etth1_split_matches_published_window_counts() -> None:
    """ETTh1 in months of 30 days: 12, 4, 4; 512 hours to 96. The counts are those that are published."""
    config, model = SeriesConfig(split=(8640, 2880, 2880)), PatchTSTConfig(context_length=512, horizon=96)
    windows = spans(config, model, 17_420)
    assert {part: n for part, (_, n) in windows.items()} == {"train": 8033, "valid": 2785, "test": 2785}
    assert {part: first for part, (first, _) in windows.items()} == {
        "train": 0,
        "valid": 8640 - 512,
        "test": 11520 - 512,
    }


@pytest.mark.parametrize("steps", [10, 99, 52_696, 7_588])
def test_default_split_matches_common_benchmarks(steps: int) -> None:
    train, valid, test = borders(SeriesConfig(), steps)
    assert (train, test - valid, test) == (int(steps * 0.7), int(steps * 0.2), steps)


@pytest.mark.parametrize(
    ("model", "sizes"),
    [
        ({"horizon": 1}, (30, 6, 3)),
        ({"horizon": 5}, (30, 6, 3)),
        ({"horizon": 24}, (144, 9, 4)),
        ({"horizon": 96, "preset": "patchtst-small"}, (512, 32, 16)),
        ({"horizon": 720}, (512, 32, 16)),
        ({"horizon": 96, "preset": "patchtst-42"}, (336, 16, 8)),
        ({"horizon": 96, "context_length": 48}, (48, 6, 3)),
        ({}, (30, 6, 3)),
    ],
)
def test_the_default_context_grows_with_the_horizon(model: dict[str, object], sizes: tuple[int, int, int]) -> None:
    model_config = ForecastingConfig.from_dict({"model": model}).patchtst
    assert (model_config.context_length, model_config.patch_length, model_config.stride) == sizes


def test_split_may_leave_steps_unused() -> None:
    assert borders(SeriesConfig(split=(0.5, 0.1, 0.1)), 100) == (50, 60, 70)


@pytest.mark.parametrize("split", [(0.7, 0.3), (0.7, 0.3, 0.3), (0.7, 0.0, 0.3), (100, 10.5, 10), (2, -1, 3), ()])
def test_invalid_splits_are_refused(split: tuple[float, ...]) -> None:
    with pytest.raises(ConfigError, match="split is three shares"):
        SeriesConfig(split=split)


def test_every_horizon_lies_in_its_part_and_each_comes_once(tmp_path: Path) -> None:
    data = prepared(tmp_path, walks(100))
    ends = (0, *borders(SeriesConfig(), 100))
    for (part, windows), begin, end in zip(data.metadata.windows.items(), ends, ends[1:], strict=False):
        begins = windows.begins(np.arange(len(windows)))
        first = max(begin, 12)
        assert (begins + 12).tolist() == list(range(first, end - 3 + 1)), part


@pytest.mark.parametrize(("context", "horizon"), [(12, 3), (30, 5), (16, 40)])
@pytest.mark.parametrize("split", [(0.7, 0.1, 0.2), (0.5, 0.25, 0.25), (0.3, 0.01, 0.01)])
def test_with_the_steps_that_are_needed_every_part_has_a_window(
    context: int, horizon: int, split: tuple[float, ...]
) -> None:
    config, model = SeriesConfig(split=split), TINY.changed(context_length=context, horizon=horizon)
    fewest = needed(config, model)
    assert all(n for steps in range(fewest, 2 * fewest) for _, n in spans(config, model, steps).values())
    assert not all(n for _, n in spans(config, model, fewest - 1).values())


def test_too_short_series_error_names_needed_steps(tmp_path: Path) -> None:
    fewest = needed(SeriesConfig(), TINY)
    assert all(len(windows) for windows in prepared(tmp_path, walks(fewest)).metadata.windows.values())
    with pytest.raises(TooLittleDataError, match=f"series has {fewest - 1} steps, and .* at least {fewest} are needed"):
        prepared(tmp_path, walks(fewest - 1))


def test_counts_that_leave_no_window(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a split of \[14, 3, 3\] steps leaves no window"):
        prepared(tmp_path, walks(100), split=(14, 3, 3))
    assert len(prepared(tmp_path, walks(100), split=(15, 3, 3)).train) == 1


def test_short_series_and_unused_steps_are_noted(tmp_path: Path) -> None:
    long, short = table(tmp_path / "long.csv", walks(100)), table(tmp_path / "short.csv", walks(20))
    _, readings = prepare_series(ForecastingConfig(model=TINY), Files((long, short)), tmp_path)
    assert readings.train.notes == [
        "short: 20 steps are too few for every part, for which it would take 22; it has windows for test"
    ]
    _, readings = prepare_series(
        ForecastingConfig(model=TINY, data=SeriesConfig(split=(60, 10, 20))), Files((long,)), tmp_path
    )
    assert readings.train.notes == ["long: the last 10 steps are beyond the split and not used"]
    assert readings.to_dict()["train"]["windows to test on"] == 18


# The scale


def test_the_scale_is_of_the_training_part_alone(tmp_path: Path) -> None:
    values = walks(100, 2)
    store = prepared(tmp_path, values).train.store
    np.testing.assert_allclose(store.scale.location, values[:70].mean(axis=0))
    np.testing.assert_allclose(store.scale.width, values[:70].std(axis=0))


def test_a_logarithm_that_cannot_be_taken_names_the_place(tmp_path: Path) -> None:
    values = walks(100)
    values[33] = 0
    with pytest.raises(DataError, match=r"series\.csv:35: the column 'a' holds 0, and transform=log needs"):
        prepared(tmp_path, values, transform="log")


def test_series_of_different_sizes_are_noted(tmp_path: Path) -> None:
    large, small = table(tmp_path / "large.csv", 1000 * walks(100)), table(tmp_path / "small.csv", walks(100))
    for transform, noted in (("none", True), ("log", False)):
        config = ForecastingConfig.from_dict({"model": TINY, "data": {"transform": transform}})
        _, readings = prepare_series(config, Files((large, small)), tmp_path)
        assert any("differ 1,000 times in size" in note for note in readings.train.notes) == noted


# What they hold


def test_a_window_is_what_stands_in_the_file(tmp_path: Path) -> None:
    values = walks(100, 3)
    data = prepared(tmp_path, values)
    cut = data.metadata.windows["test"].cut([0, 5])
    for row, begin in enumerate((80 - 12, 85 - 12)):
        np.testing.assert_allclose(data.train.store.scale.undo(cut.context)[row], values[begin : begin + 12], rtol=1e-6)
        np.testing.assert_allclose(
            data.train.store.scale.undo(cut.target)[row], values[begin + 12 : begin + 15], rtol=1e-6
        )


@pytest.mark.parametrize("group_size", [1, 3])
def test_rows_and_back(group_size: int) -> None:
    series = torch.randn(4, 5, 6)
    rows = as_rows(series, group_size)
    assert rows.shape == (4 * 6 // group_size, 5, group_size)
    assert torch.equal(rows[1, :, 0], series[0, :, group_size])
    assert torch.equal(as_windows(rows, 6), series)


@pytest.mark.parametrize("batch_tokens", [1, 70, 10_000])
def test_an_epoch_holds_every_window_once_in_batches_of_one_shape(tmp_path: Path, batch_tokens: int) -> None:
    data = prepared(tmp_path, walks(120, 2))
    batches = WindowBatches(data.train, batch_tokens, seed=3)
    epoch = list(batches.epoch(0))
    assert len(epoch) == batches.steps_per_epoch()
    assert sorted(window for batch in epoch for window in batch.rows) == list(range(len(data.train)))
    assert len({batch.context.shape for batch in epoch}) == 1
    assert max(epoch[0].context.shape[0] * TINY.n_patches, 1) <= max(batch_tokens, 2 * TINY.n_patches)
    assert sum(int(batch.counts.sum()) for batch in epoch) == len(data.train) * 3 * 2


def test_batch_filler_windows_do_not_count(tmp_path: Path) -> None:
    windows = prepared(tmp_path, walks(100)).train
    batch = windows.batch([4, 9], size=5)
    assert batch.rows == (4, 9)
    assert torch.equal(batch.context[[2, 3, 4]], batch.context[[0, 1, 0]])
    assert batch.counts.flatten(1).all(dim=1).tolist() == [True, True, False, False, False]


def test_an_order_is_a_function_of_seed_and_epoch_and_can_begin_anywhere(tmp_path: Path) -> None:
    windows = prepared(tmp_path, walks(100)).train

    def order(seed: int, epoch: int, start: int = 0) -> list[tuple[int, ...]]:
        return [batch.rows for batch in WindowBatches(windows, 50, seed).epoch(epoch, start)]

    assert order(1, 2) == order(1, 2)
    assert order(1, 2)[3:] == order(1, 2, 3)
    assert order(1, 2) != order(1, 3)
    assert order(1, 2) != order(2, 2)


# Gaps


def test_gaps_are_hidden_and_not_counted(tmp_path: Path) -> None:
    values = walks(100, 2)
    values[72, 1] = NAN
    data = prepared(tmp_path, values)
    windows = data.valid
    batch = windows.batch([0])  # the context is 58 to 69, the horizon 70 to 72
    assert batch.counts[:, :, 0].tolist() == [[True] * 3, [True, True, False]]
    assert batch.keep is not None
    assert batch.keep.all()
    later = windows.batch([3])
    assert later.keep is not None
    assert later.keep[0].all()
    assert (~later.keep[1]).nonzero().flatten().tolist() == [11]
    assert torch.isfinite(later.context).all()


def test_rows_without_a_complete_patch_are_not_scored(tmp_path: Path) -> None:
    values = walks(100, 2)
    values[30:70:3, 0] = NAN
    independent = prepared(tmp_path, values).valid.cut([0])
    assert independent.counts.any(axis=1).tolist() == [[False, True]]
    mixed = prepared(tmp_path, values, TINY.changed(channels="mixed", n_channels=2)).valid.cut([0])
    assert not mixed.counts.any()


def test_too_little_observed_is_refused(tmp_path: Path) -> None:
    values = walks(100)
    values[80:] = NAN
    with pytest.raises(TooLittleDataError, match="no window for test has both a whole patch of 4"):
        prepared(tmp_path, values)
    values[:] = NAN
    with pytest.raises(DataError, match="a: nothing was observed in the training part"):
        prepared(tmp_path, values)


def test_filled_uses_the_last_observed_value() -> None:
    context = np.array([[NAN, 1, NAN, NAN, 2, NAN], [NAN] * 6])[:, :, None]
    assert filled(context)[:, :, 0].tolist() == [[1, 1, 1, 1, 2, 2], [0] * 6]
