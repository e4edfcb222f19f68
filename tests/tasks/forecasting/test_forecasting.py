"""What `load` gives for a forecaster: the steps that follow, in the form of what was given, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import heedful
from heedful.errors import ConfigError, DataError
from heedful.families import PatchTSTConfig, ViTConfig, read_published
from heedful.tasks.bundle import Bundle, BundleError
from heedful.tasks.forecasting import ForecastSettings, SeriesForecaster, predictor
from heedful.tasks.predictor import ItemError
from published_pairs import files, reference
from published_series import SERIES

SMALL = PatchTSTConfig(d_model=20, n_heads=5, d_ff=23, n_layers=2, horizon=7)
NAN = float("nan")


def small_forecaster(columns: tuple[str, ...] = (), **changes: Any) -> SeriesForecaster:
    torch.manual_seed(0)
    config = SMALL.changed(**changes)
    return SeriesForecaster(config, heedful.build(config), ForecastSettings(columns=columns))


def prices(length: int = 30, channels: int = 3, seed: int = 0) -> NDArray[np.float64]:
    walks = np.random.default_rng(seed).normal(size=(length, channels)).cumsum(axis=0)
    return walks + 50 + 10 * np.arange(channels)


def close(mine: Any, wanted: Any, tolerance: float = 1e-6) -> None:
    np.testing.assert_allclose(mine, wanted, rtol=tolerance, atol=tolerance)


# Against transformers


@pytest.mark.parametrize("name", SERIES)
def test_published_forecaster_matches_transformers(name: str, tmp_path: Path) -> None:
    model = reference(name)
    checkpoint = read_published(files(model)[0], {key: tensor.clone() for key, tensor in model.state_dict().items()})
    imported = SeriesForecaster.from_checkpoint(checkpoint, tmp_path)
    length, channels = model.config.context_length, model.config.num_input_channels
    series = [prices(length, channels, seed) for seed in range(3)]
    with torch.no_grad():
        wanted = model(torch.tensor(np.stack(series), dtype=torch.float32)).prediction_outputs
    close(imported.predict(series), wanted, 1e-5)


# Forms


def test_none_one_and_many() -> None:
    model = small_forecaster()
    assert (model.task, model.predict([])) == ("forecasting", [])
    (single,) = model.predict([prices()])
    assert (len(single), len(single[0]), type(single[0][0])) == (7, 3, float)
    assert len(model.predict([prices(seed=seed) for seed in range(5)])) == 5


def test_a_forecast_has_the_form_of_its_series() -> None:
    model, days = small_forecaster(), prices(channels=1)
    flat = [float(day) for day in days[:, 0]]
    numbers, rows, array, table = model.predict([flat, [[day] for day in flat], days[:, 0], days])
    assert [type(value) for value in (*numbers, *array)] == [float] * 14
    assert rows == table == [[value] for value in numbers] == [[value] for value in array]


def test_whole_numbers_are_numbers() -> None:
    model = small_forecaster()
    close(*model.predict([list(range(30)), [float(n) for n in range(30)]]))
    close(*model.predict([np.arange(30, dtype=np.int16), np.arange(30, dtype=np.float32)]))


def test_the_newest_steps_of_a_longer_series_are_read() -> None:
    model, long = small_forecaster(), prices(100)
    for whole in (long, long.tolist(), tuple(long.tolist())):
        close(*model.predict([whole, long[-30:]]))
    assert not np.allclose(*model.predict([long, long[:30]]))


def test_large_prices_keep_their_precision() -> None:
    model, series = small_forecaster(), prices()
    model.module.scale.eps = 1e-20
    near, far = model.predict([series, series + 2.0**40])
    close(np.array(far) - 2.0**40, near, 1e-3)


# Neighbours and batches


@pytest.mark.parametrize("mixed", [False, True])
def test_an_answer_does_not_depend_on_its_neighbours(mixed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_forecaster(channels="mixed", n_channels=3) if mixed else small_forecaster()
    several = [prices(seed=seed, length=30 + seed) for seed in range(4)]
    several[2][3, 1] = NAN
    several += [] if mixed else [prices(channels=1, seed=8), prices(channels=5, seed=9)]
    single = [model.predict([item])[0] for item in several]
    for tokens in (1, 36, 4096):
        monkeypatch.setattr(predictor, "BATCH_TOKENS", tokens)
        for item, other in zip(model.predict(several), single, strict=True):
            close(item, other)


def test_batches_are_bounded_whatever_the_channels(monkeypatch: pytest.MonkeyPatch) -> None:
    model, seen = small_forecaster(), list[int]()
    monkeypatch.setattr(predictor, "BATCH_TOKENS", 27)  # a channel of 30 steps has 9 patches
    model.module.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0].shape[0] * inputs[0].shape[2]))
    model.predict([prices(channels=5), prices(channels=2)])
    assert seen == [3, 3, 1]


# Gaps


@pytest.mark.parametrize("mixed", [False, True])
def test_gaps_are_passed_to_the_module(mixed: bool) -> None:
    model = small_forecaster(channels="mixed", n_channels=3) if mixed else small_forecaster()
    series = prices()
    series[11] = NAN
    keep = torch.ones(1, 30, dtype=torch.bool)
    keep[0, 11] = False
    with torch.no_grad():
        (wanted,) = model.module(torch.tensor(series)[None], keep)
    gaps = [None if np.isnan(row).any() else row.tolist() for row in series]
    listed = [[None] * 3 if row is None else row for row in gaps]
    for form in (series, listed):
        close(model.predict([form])[0], wanted)
    whole = prices()
    assert not np.allclose(model.predict([whole])[0], wanted, rtol=1e-3)


def test_a_gap_in_one_channel_leaves_the_others_as_they_are() -> None:
    model, whole, gap = small_forecaster(), prices(), prices()
    gap[4, 1] = NAN
    without_gap, with_gap = (np.array(answer) for answer in model.predict([whole, gap]))
    close(with_gap[:, [0, 2]], without_gap[:, [0, 2]])
    assert not np.allclose(with_gap[:, 1], without_gap[:, 1], rtol=1e-3)


def test_channels_read_together_have_their_gaps_together() -> None:
    model, with_gap, all_of_them = small_forecaster(channels="mixed", n_channels=3), prices(), prices()
    with_gap[4, 1] = NAN
    all_of_them[4] = NAN
    close(*model.predict([with_gap, all_of_them]))


# What it refuses


@pytest.mark.parametrize(
    ("series", "message"),
    [
        ([1.0] * 29, "this model forecasts from 30 steps, and it has only 29"),
        ([], "it has only 0"),
        (3.0, "not float"),
        ("1 2 3", "not str"),
        (None, "not NoneType"),
        ({"price": [1.0] * 30}, "not dict"),
        (np.zeros((30, 2, 2)), r"shape \(30, 2, 2\)"),
        (np.zeros(()), r"shape \(\)"),
        (np.zeros((30, 0)), r"shape \(30, 0\)"),
        ([[]] * 30, r"shape \(30, 0\)"),
        ([[[1.0]]] * 30, r"shape \(30, 1, 1\)"),
        ([[1.0, 2.0]] * 29 + [[1.0]], "differ in length"),
        ([1.0] * 29 + [[1.0]], "differ in length"),
        (["1.0"] * 30, "holds <U3"),
        ([1.0, None, "2"] * 10, "holds '2'"),
        ([None, True] * 15, "holds True"),
        ([True] * 30, "holds bool"),
        ([1j] * 30, "holds complex"),
        ([1.0] * 29 + [float("inf")], "infinite"),
        ([1] * 29 + [-(10**400)], "infinite"),
        ([None] * 30, "observed at 0 of 30 steps"),
        ([NAN] * 30, "observed at 0 of 30 steps"),
        (([1.0] * 5 + [None]) * 5, "observed at 25 of 30 steps, and nowhere throughout one of the patches of 6"),
        ([None] + [1.0] * 6 + [None] * 23, "observed at 6 of 30 steps, and nowhere"),  # patches begin at every third
        ([[1.0, None]] * 30, "channel 2 was observed at 0"),
    ],
)
def test_invalid_series_are_refused_with_a_reason(series: Any, message: str) -> None:
    model = small_forecaster()
    with pytest.raises(ItemError, match=rf"^series 2: .*{message}") as caught:
        model.predict([prices(), series])
    assert (caught.value.index, caught.value.reason) == (1, model.validation_error(series))


def test_what_can_be_forecast_has_no_reason() -> None:
    assert small_forecaster().validation_error(prices()) is None
    assert small_forecaster().validation_error([1.0] * 6 + [None] * 24) is None


def test_the_steps_that_fill_no_patch_do_not_count() -> None:
    """Of 31 steps the oldest is left over: the first patch begins at the second."""
    model = small_forecaster(context_length=31)
    assert model.validation_error([None] + [1.0] * 6 + [None] * 24) is None
    assert "nowhere" in str(model.validation_error([1.0] * 6 + [None] * 25))


def test_channels_that_the_model_or_the_names_fix() -> None:
    mixed, named = small_forecaster(channels="mixed", n_channels=3), small_forecaster(columns=("open", "close"))
    assert mixed.validation_error(prices(channels=2)) == "this model forecasts 3 channels, not 2"
    assert mixed.validation_error([1.0] * 30) == "this model forecasts 3 channels, not 1"
    assert named.validation_error(prices()) == "this model forecasts 2 channels (open, close), not 3"
    assert mixed.validation_error(prices()) is named.validation_error(prices(channels=2)) is None
    assert small_forecaster(n_channels=3).validation_error(prices(channels=8)) is None  # each is read on its own


def test_numbers_too_large_for_a_forecast_are_refused_and_no_nan_comes_out() -> None:
    with pytest.raises(ItemError, match=r"series 2: the forecast is not finite; values of up to 1e\+308"):
        small_forecaster().predict([prices(), prices() * 0 + 1e308 * np.linspace(-1, 1, 30)[:, None]])


@pytest.mark.parametrize("item", [np.zeros(30), np.zeros((30, 3)), "prices"], ids=["array", "table", "text"])
def test_one_series_is_not_a_list(item: Any) -> None:
    with pytest.raises(DataError, match=r"predict\(\[series\]\)"):
        small_forecaster().predict(item)
    with pytest.raises(DataError, match="series 1: a series is a list of numbers"):
        small_forecaster().predict([1.0] * 30)


def test_invalid_forecast_settings() -> None:
    with pytest.raises(ConfigError, match="name twice"):
        ForecastSettings(columns=("a", "a"))
    with pytest.raises(ConfigError, match="reads 3 channels together, but 2 columns"):
        small_forecaster(("a", "b"), channels="mixed", n_channels=3)
    config = ViTConfig(image_size=4, patch_size=2, d_model=4, n_heads=2, d_ff=4, n_layers=1)
    with pytest.raises(ConfigError, match="'vit' does not forecast"):
        SeriesForecaster(config, heedful.build(config), ForecastSettings())


# The bundle


def test_reloaded_bundle_forecasts_the_same(tmp_path: Path) -> None:
    model = small_forecaster(columns=("open", "close", "high"))
    model.save(tmp_path)
    bundle = Bundle.read(tmp_path)
    again = SeriesForecaster.from_bundle(tmp_path, bundle)
    assert (bundle.task, again.settings, again.config) == ("forecasting", model.settings, model.config)
    assert again.predict([prices()]) == model.predict([prices()])


def test_a_bundle_with_other_settings_is_refused(tmp_path: Path) -> None:
    model = small_forecaster()
    Bundle("forecasting", model.config, {"names": ["a"]}).write(tmp_path, model.module)
    with pytest.raises(BundleError, match="names"):
        SeriesForecaster.from_bundle(tmp_path, Bundle.read(tmp_path))
