"""Baselines and scores against formulas, over every window; and what is said about them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from series_files import TINY, prepared, walks, waves

from heedful.families import PatchTSTConfig, build
from heedful.tasks.bundle import BundleError
from heedful.tasks.forecasting import ForecastSettings, SeriesForecaster
from heedful.tasks.forecasting.data import SeriesWindows
from heedful.tasks.forecasting.scoring import (
    LAST,
    LINEAR,
    MODEL,
    SEASONAL,
    Errors,
    Forecast,
    Linear,
    clearly_less,
    compare,
    convex_weights,
    errors_of,
    evaluate_windows,
    last_season,
    last_value,
    rivals,
    sample_interval,
)

NAN = float("nan")


def network(model: PatchTSTConfig = TINY) -> Forecast:
    return SeriesForecaster(model, build(model), ForecastSettings()).network


def close(mine: Any, wanted: Any, tolerance: float = 1e-6) -> None:
    np.testing.assert_allclose(mine, wanted, rtol=tolerance, atol=tolerance)


# Baselines


def test_last_value_repeats() -> None:
    context = np.array([[[1.0, 10], [2, 20]], [[3, 30], [NAN, 40]]])
    assert last_value(2)(context).tolist() == [[[2, 20], [2, 20]], [[3, 40], [3, 40]]]


def test_last_season_repeats() -> None:
    context = np.arange(10.0)[None, :, None]
    assert last_season(7, 3)(context)[0, :, 0].tolist() == [7, 8, 9, 7, 8, 9, 7]
    assert last_season(2, 10)(context)[0, :, 0].tolist() == [0, 1]
    assert (last_season(4, 1)(context) == last_value(4)(context)).all()


def rows(windows: SeriesWindows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """All windows and channels as rows: differences from the last value, with a constant; and what follows."""
    cut = windows.cut(np.arange(len(windows)))
    context, target = (part.astype(np.float64).transpose(0, 2, 1) for part in (cut.context, cut.target))
    last = context[..., -1:]
    flat = (context - last).reshape(-1, context.shape[2])
    return np.hstack([flat, np.ones((len(flat), 1))]), (target - last).reshape(-1, target.shape[2])


def test_the_linear_model_is_least_squares(tmp_path: Path) -> None:
    """Against numpy's own solver over the rows written out; the last input is always 0, so its weight says nothing."""
    data = prepared(tmp_path, walks(400, 2))
    inputs, targets = rows(data.train)
    wanted = np.linalg.lstsq(inputs, targets, rcond=None)[0]
    weight = Linear.fit(data.train, data.valid, [1e-12]).weight
    close(np.delete(weight, 11, axis=0), np.delete(wanted, 11, axis=0), 1e-5)


def test_the_penalty_is_the_one_that_validates_best(tmp_path: Path) -> None:
    data = prepared(tmp_path, walks(60))
    train, valid = data.train, data.valid
    inputs, targets = rows(valid)
    size = (rows(train)[0][:, :-1] ** 2).sum() / 12
    shares = [1e-6, 1e-2, 1e2]
    each = [Linear.fit(train, valid, [share]).weight for share in shares]
    errors = [((inputs @ weight - targets) ** 2).sum() for weight in each]
    assert len({round(error, 3) for error in errors}) == 3
    close(Linear.fit(train, valid, shares).weight, each[int(np.argmin(errors))])
    ridge = np.diag([1e-2 * size] * 12 + [1e-9])
    inputs_train, wanted = rows(train)
    close(each[1], np.linalg.solve(inputs_train.T @ inputs_train + ridge, inputs_train.T @ wanted))


def test_a_line_is_forecast_exactly(tmp_path: Path) -> None:
    data = prepared(tmp_path, 3 * np.arange(200.0)[:, None] + 7)
    linear = Linear.fit(data.train, data.valid)
    cut = data.metadata.windows["test"].cut([0, 20])
    close(linear(cut.context), cut.target, 1e-4)


def test_linear_model_skips_gaps(tmp_path: Path) -> None:
    values = walks(300)
    values[[50, 51, 120]] = NAN
    data = prepared(tmp_path, values)
    linear = Linear.fit(data.train, data.valid)
    assert np.isfinite(linear.weight).all()
    assert np.isfinite(linear(data.metadata.windows["test"].cut([0]).context)).all()


def test_linear_model_is_saved_and_checked(tmp_path: Path) -> None:
    linear = Linear(np.random.default_rng(0).normal(size=(13, 3)))
    linear.save(tmp_path / "linear.safetensors")
    assert (Linear.load(tmp_path / "linear.safetensors", 12, 3).weight == linear.weight).all()
    with pytest.raises(BundleError, match=r"of another model: its shape is \(13, 3\)"):
        Linear.load(tmp_path / "linear.safetensors", 30, 5)
    (tmp_path / "linear.safetensors").write_bytes(b"nothing")
    with pytest.raises(BundleError, match="cannot be read"):
        Linear.load(tmp_path / "linear.safetensors", 12, 3)


# Scores


@pytest.mark.parametrize("tokens", [1, 77, 1 << 15])
def test_scores_are_means_over_every_window_none_dropped(
    tmp_path: Path, tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heedful.tasks.forecasting.scoring.SCORE_TOKENS", tokens)
    values = walks(143, 2)
    data = prepared(tmp_path, values)
    begin, end = 143 - 28, 143
    ahead = np.stack([values[first : first + 3] for first in range(begin, end - 2)])  # (n, 3, 2)
    error = ahead - values[np.arange(begin, end - 2) - 1][:, None]
    scaled = error / values[:100].std(axis=0)
    errors = errors_of({LAST: last_value(3)}, data.metadata.windows["test"])[LAST]
    assert len(errors.counts) == len(ahead) == 26
    close(errors.mse, (scaled**2).mean(), 1e-5)
    close(errors.mae, np.abs(scaled).mean(), 1e-5)
    for place, name in enumerate("ab"):
        close(errors.by_column[name]["mse"], (error[..., place] ** 2).mean(), 1e-4)
        close(errors.by_column[name]["mae"], np.abs(error[..., place]).mean(), 1e-4)


def test_what_was_not_observed_is_not_scored(tmp_path: Path) -> None:
    values = walks(100)
    values[90] = NAN
    windows = prepared(tmp_path, values).metadata.windows["test"]
    errors = errors_of({LAST: last_value(3)}, windows)[LAST]
    assert errors.counts.sum() == 3 * len(windows) - 3
    scores = evaluate_windows(network(), windows, None, None)
    assert (scores["values"], scores["unobserved"]) == (3 * len(windows) - 3, 3)


@pytest.mark.parametrize("channels", ["independent", "mixed"])
@pytest.mark.parametrize("gap", [False, True])
def test_scores_do_not_depend_on_batching(tmp_path: Path, channels: str, gap: bool) -> None:
    values = walks(100, 2)
    if gap:
        values[75, 1] = NAN
    model = TINY.changed(channels=channels, n_channels=2)
    windows = prepared(tmp_path, values, model).metadata.windows["test"]
    forecast = network(model)
    batched = forecast(windows.cut(np.arange(len(windows))).context)
    single = np.concatenate([forecast(windows.cut([window]).context) for window in range(len(windows))])
    close(batched, single, 1e-5)
    errors = errors_of({MODEL: forecast}, windows)[MODEL]
    cut = windows.cut(np.arange(len(windows)))
    close(errors.mse, ((batched - cut.target)[cut.counts] ** 2).mean(), 1e-5)


def test_missing_baselines_have_a_reason(tmp_path: Path) -> None:
    windows = prepared(tmp_path, waves(200, 12)).metadata.windows["test"]
    linear = Linear(np.zeros((13, 3)))
    assert list(rivals(12, 3, 12, linear)[0]) == [LAST, SEASONAL, LINEAR]
    forecast = network()
    scores = evaluate_windows(forecast, windows, 12, linear)
    assert (scores["why_not"], len(scores["verdict"]), scores["n"]) == ({}, 3, len(windows))
    assert scores["scores"]["mse of linear model"]["value"] == scores["scores"]["mse of tomorrow = today"]["value"]
    assert (
        "the dates do not determine a season" in evaluate_windows(forecast, windows, None, linear)["why_not"][SEASONAL]
    )
    assert "longer than the context of 12" in evaluate_windows(forecast, windows, 24, None)["why_not"][SEASONAL]


# Weights


def test_weights_are_the_least_squares_on_the_simplex(tmp_path: Path) -> None:
    """Against every mixture on a grid, of the forecasters with a share worth having."""
    windows = prepared(tmp_path, waves(200, 12)).valid
    cut = windows.cut(np.arange(len(windows)))
    for bias in (0.0, 0.2, 5.0):

        def biased(context: NDArray[Any], bias: float = bias) -> NDArray[np.float64]:
            return np.asarray(last_season(3, 12)(context) + bias)

        forecasts: dict[str, Forecast] = {"last": last_value(3), "season": last_season(3, 12), "biased": biased}

        def error(mix: Mapping[str, float], forecasts: Mapping[str, Forecast] = forecasts) -> float:
            mean = sum(weight * forecasts[name](cut.context) for name, weight in mix.items())
            return float(((mean - cut.target) ** 2).mean())

        weights = convex_weights(forecasts, windows)
        assert min(weights.values()) > 0
        assert sum(weights.values()) == pytest.approx(1, abs=1e-5)
        points = [(i / 20, j / 20, (20 - i - j) / 20) for i in range(21) for j in range(21 - i)]
        grid = [dict(zip(forecasts, mix, strict=True)) for mix in points]
        assert error(weights) <= min(error(mix) for mix in grid if all(mix[n] == 0 or n in weights for n in mix)) + 1e-6
        assert error(weights) <= min(error({name: 1.0}) for name in forecasts)


@pytest.mark.parametrize(("deviation", "share"), [(1.0, 0.5), (2.0, 0.2), (5.0, 0.0)])
def test_shares_are_the_inverse_variances_and_small_ones_are_dropped(
    tmp_path: Path, deviation: float, share: float
) -> None:
    """Two unbiased forecasters with independent errors: the textbook's weights, 1 / (1 + variance) for the second."""
    windows = prepared(tmp_path, walks(30_000)).valid
    target = windows.cut(np.arange(len(windows))).target
    first, second = np.random.default_rng(0).normal(size=(2, *target.shape))
    forecasts = {"first": lambda _: target + first, "second": lambda _: target + deviation * second}
    weights = convex_weights(forecasts, windows)
    assert weights.get("second", 0.0) == pytest.approx(share, abs=0.02 if share else 0.0)
    assert sum(weights.values()) == pytest.approx(1)


def test_weights_of_forecasters_that_fail_or_are_perfect(tmp_path: Path) -> None:
    windows = prepared(tmp_path, 3 * np.arange(200.0)[:, None] + 7).valid
    slope = np.zeros((13, 3))
    slope[-1] = 3 / windows.store.scale.width[0] * np.arange(1, 4)

    def failing(context: NDArray[Any]) -> NDArray[np.float64]:
        return np.full((len(context), 3, 1), NAN)

    forecasts: dict[str, Forecast] = {"failing": failing, "line": Linear(slope), "last": last_value(3)}
    assert convex_weights(forecasts, windows)["line"] == pytest.approx(1, abs=1e-3)
    assert convex_weights({"failing": failing, "last": last_value(3)}, windows) == {"last": 1.0}


def test_a_sample_of_windows_shows_every_phase_of_the_season(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    windows = prepared(tmp_path, waves(2000, 12)).train
    assert sample_interval(windows, 12) == 1
    monkeypatch.setattr("heedful.tasks.forecasting.scoring.SAMPLE_TOKENS", 5 * 230)
    interval = sample_interval(windows, 12)
    assert 5 < interval < 12
    chosen = np.concatenate(list(windows.in_order(17, interval)))
    assert chosen.tolist() == list(range(0, len(windows), interval))
    assert set(chosen % 12) == set(range(12))
    errors = errors_of({LAST: last_value(3)}, windows, every=interval)[LAST]
    assert errors.squares.tolist() == errors_of({LAST: last_value(3)}, windows)[LAST].squares[::interval].tolist()


# Verdicts


def errors_with(squares: NDArray[np.float64]) -> Errors:
    return Errors(squares, np.ones(len(squares), np.int64), float(squares.mean()), 0.0, {})


def test_comparison_sentences_respect_chance() -> None:
    random = np.random.default_rng(0)
    rival = errors_with(random.chisquare(1, 2000))
    better, worse = errors_with(rival.squares * 0.8), errors_with(rival.squares * 1.2)
    equal = errors_with(random.permutation(rival.squares) - 1e-9)
    assert compare(better, rival, LAST, 5).startswith("It beat tomorrow = today: MSE")
    assert "20.0 % less" in compare(better, rival, LAST, 5)
    assert compare(worse, rival, LAST, 5).startswith("It did not beat tomorrow = today: MSE")
    assert compare(rival, rival, LAST, 5).startswith("It did not beat")
    assert compare(equal, rival, LAST, 5).startswith("It did not clearly beat tomorrow = today")


def test_overlapping_windows_count_once() -> None:
    """Noise that lasts a whole horizon looks clear if every window counts for itself, in more than one of twenty."""
    errors = []
    for seed in range(200):
        steps = np.random.default_rng(seed).normal(size=50).repeat(20) + 0.0
        steps -= min(0.0, float(steps.mean())) * 2  # turned so that the model is ahead, by chance
        errors.append(clearly_less(errors_with(np.zeros(1000)), errors_with(steps), 20))
    assert np.mean(errors) < 0.12


def test_few_windows_are_never_significant() -> None:
    assert not clearly_less(errors_with(np.zeros(30)), errors_with(np.ones(30)), 5)
    assert clearly_less(errors_with(np.zeros(40)), errors_with(np.linspace(1, 2, 40)), 5)
