"""Runs from files to bundles: what is learned, what is said about it, and how a stopped run goes on."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from series_files import TINY, prepared, table, walks, waves
from torch.nn import functional as F

import heedful
from heedful.errors import ConfigError, DataError
from heedful.families import build
from heedful.families.hf_io import read_checkpoint
from heedful.tasks.bundle import BundleError
from heedful.tasks.forecasting import ForecastingConfig, ForecastSettings, SeriesForecaster
from heedful.tasks.forecasting.predictor import ForecastWeights
from heedful.tasks.forecasting.task import ForecastingTask, forecast_files, looks
from heedful.tasks.hf_export import export_huggingface
from heedful.tasks.inspection import inspect
from heedful.tasks.run import Files, train
from heedful.training import Event, Observer, ResumeError, Saved

HOURLY = TINY.changed(context_length=32, patch_length=8, stride=4, horizon=6, d_model=16, d_ff=32, dropout=0.0)


def config(**changes: Any) -> ForecastingConfig:
    training = {"steps": 200, "validate_every": 100, "learning_rate": 3e-3, "warmup_steps": 20, "device": "cpu"}
    values = {"model": HOURLY, "training": {**training, "ema_decay": 0.98, **changes.pop("training", {})}, **changes}
    return ForecastingConfig.from_dict(values)


def run(out: Path, path: str, settings: ForecastingConfig, **options: Any) -> SeriesForecaster:
    forecaster: SeriesForecaster = train(ForecastingTask(), settings, Files((path,)), out, **options)
    return forecaster


def metrics(out: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((out / "metrics.json").read_text("utf-8"))
    return values


@pytest.fixture(scope="module")
def seasonal(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A run over a seasonal series: its folder, and its file."""
    folder = tmp_path_factory.mktemp("seasonal")
    path = table(folder / "hours.csv", waves(1200), hourly=True)
    run(folder / "run", path, config())
    return folder / "run", path


# What is learned


def test_a_seasonal_series_is_forecast_better_than_by_naive_means(seasonal: tuple[Path, str]) -> None:
    test = metrics(seasonal[0])["sets"]["test"]
    figures = {name: errors["mse"] for name, errors in test["forecasters"].items()}
    assert figures["model"] < 0.5 * min(figures["tomorrow = today"], figures["seasonal naive"])
    assert (test["season"], test["n"]) == (24, 240 - 6 + 1)
    assert test["verdict"][0].startswith("It beat tomorrow = today: MSE")
    assert test["verdict"][1].startswith("It beat the seasonal naive forecast: MSE")


def test_random_walk_does_not_beat_the_naive_forecast(tmp_path: Path) -> None:
    run(tmp_path / "run", table(tmp_path / "walk.csv", walks(1200)), config(training={"steps": 100}))
    test = metrics(tmp_path / "run")["sets"]["test"]
    assert test["forecasters"]["model"]["mse"] > 0.97 * test["forecasters"]["tomorrow = today"]["mse"]
    assert test["verdict"][0].startswith(("It did not beat tomorrow = today", "It did not clearly beat tomorrow"))
    assert "data.season" in test["why_not"]["seasonal naive"]
    assert test["verdict"][0] in (tmp_path / "run" / "README.md").read_text("utf-8")
    assert "did not" in (tmp_path / "run" / "report.html").read_text("utf-8")


def test_scores_include_the_baselines(seasonal: tuple[Path, str]) -> None:
    values = metrics(seasonal[0])
    for part in (values["validation"], values["sets"]["test"]):
        for name in ("tomorrow = today", "seasonal naive", "linear model"):
            assert {f"mse of {name}", f"mae of {name}"} < part["scores"].keys()
        assert part["scores"]["mse"]["signature"].endswith("of 32 to 6 steps, none left out")


# The bundle


def test_bundle_forecasts_in_units_of_the_file(seasonal: tuple[Path, str]) -> None:
    """What `predict` says of a test window is what was judged there."""
    out, _ = seasonal
    model = heedful.load(out, "forecasting", device="cpu")
    values, look = waves(1200), metrics(out)["forecasts"][0]
    np.testing.assert_allclose(look["context"], values[960 - 32 : 960, 0], rtol=1e-5)
    np.testing.assert_allclose(look["truth"], values[960:966, 0], rtol=1e-5)
    (forecast,) = model.predict([values[:960, 0].tolist()])
    np.testing.assert_allclose(forecast, look["forecast"], rtol=1e-4)
    assert np.abs(np.array(forecast) - values[960:966, 0]).max() < 5
    assert model.settings.columns == ("a",)


@pytest.mark.parametrize("count", [0, 1, 10_000])
def test_none_one_and_many_series(seasonal: tuple[Path, str], count: int) -> None:
    series = np.broadcast_to(waves(32)[:, 0], (count, 32))
    assert len(heedful.load(seasonal[0], "forecasting", device="cpu").predict(list(series))) == count


def test_evaluate_scores_a_new_file(seasonal: tuple[Path, str], tmp_path: Path) -> None:
    out, path = seasonal
    model = heedful.load(out, "forecasting", device="cpu")
    whole = ForecastingTask().evaluate(model, Files((path,)))
    assert whole["n"] == 1200 - 32 - 6 + 1
    tail = table(tmp_path / "tail.csv", waves(1200)[960 - 32 :], hourly=True)
    tail_scores, test_scores = ForecastingTask().evaluate(model, Files((tail,))), metrics(out)["sets"]["test"]
    for name, score in test_scores["scores"].items():
        assert tail_scores["scores"][name]["value"] == pytest.approx(score["value"], rel=1e-5)
    assert ForecastingTask().evaluate(model, Files((tail,))) == tail_scores
    with pytest.raises(DataError, match="this model forecasts a, not b; leave out --columns"):
        ForecastingTask().evaluate(model, Files((tail,), columns=("b",)))
    with pytest.raises(DataError, match=r"short: it has 37 steps; to score .* at least 38 are needed"):
        ForecastingTask().evaluate(model, Files((table(tmp_path / "short.csv", waves(37)),)))
    with pytest.raises(DataError, match=r"unknown column 'a'; allowed: b$"):
        ForecastingTask().evaluate(model, Files((table(tmp_path / "other.csv", waves(50), "b"),)))


def test_model_without_column_names_is_scored_on_given_columns(tmp_path: Path) -> None:
    model = SeriesForecaster(TINY, build(TINY), ForecastSettings())
    path = table(tmp_path / "walks.csv", walks(60, 3))
    scores = ForecastingTask().evaluate(
        model,
        Files(
            (path,),
            columns=(
                "c",
                "a",
            ),
        ),
    )
    assert list(scores["forecasters"]["model"]["in units of the file"]) == ["c", "a"]
    assert scores["scores"]["mse"]["signature"].startswith("in units of the file, 46 windows")
    assert set(scores["why_not"]) == {"seasonal naive", "linear model"}


def test_files_are_forecast_series_by_series(seasonal: tuple[Path, str], tmp_path: Path) -> None:
    model = heedful.load(seasonal[0], "forecasting", device="cpu")
    (forecast,) = forecast_files(model, [seasonal[1]])
    assert forecast == {"series": "hours", "forecast": {"a": model.predict([waves(1200)[:, 0]])[0]}}
    one = table(tmp_path / "one.csv", waves(1))
    (refused,) = forecast_files(model, [one])
    reason = "this model forecasts from 32 steps, and it has only 1; give as many"
    assert refused == {"series": "one", "error": f"{one}: one: {reason}"}


def test_prices_by_their_logarithm(tmp_path: Path) -> None:
    prices = np.exp(walks(300, 2) / 50)
    path = table(tmp_path / "prices.csv", prices)
    settings = config(training={"steps": 3}, combine=False, data={"transform": "log", "season": 5})
    model = run(tmp_path / "run", path, settings)
    (forecast,) = model.predict([prices])
    scaled = model.settings.scale.apply(prices[-32:])
    with torch.no_grad():
        wanted = model.module(torch.tensor(scaled)[None])[0]
    np.testing.assert_allclose(forecast, model.settings.scale.undo(wanted.numpy()), rtol=1e-5)
    assert min(min(row) for row in forecast) > 0
    prices[-1, 1] = 0
    assert "only what is above 0 has a logarithm" in str(model.validation_error(prices))
    assert list(metrics(tmp_path / "run")["sets"]["test"]["forecasters"]["model"]["in units of the file"]) == ["a", "b"]


def test_channels_that_are_read_together(tmp_path: Path) -> None:
    path = table(tmp_path / "walks.csv", walks(300, 3))
    settings = config(training={"steps": 3}, model=HOURLY.changed(channels="mixed").to_dict())
    model = run(tmp_path / "run", path, settings)
    assert model.module.embedding.n_channels == 3
    assert len(metrics(tmp_path / "run")["forecasts"][0]["attention"]["heads"]) == 2


# The weighted mean


def test_no_forecaster_validates_better_than_the_weighted_mean(seasonal: tuple[Path, str]) -> None:
    values = metrics(seasonal[0])
    scores = {name: errors["mse"] for name, errors in values["validation"]["forecasters"].items()}
    assert set(scores) == {"model", "network", "linear model", "seasonal naive", "tomorrow = today"}
    assert scores["model"] <= min(scores.values()) + 1e-9
    sentence = values["combination"]
    assert re.search(r"network \d+ %, linear model \d+ %, seasonal naive \d+ %, tomorrow = today \d+ %\.$", sentence)
    for page in ("README.md", "report.html"):
        assert sentence in (seasonal[0] / page).read_text("utf-8")


@pytest.fixture
def combined(seasonal: tuple[Path, str], tmp_path: Path) -> Path:
    """The run's bundle, with a weight for every forecaster."""
    model = heedful.load(seasonal[0], "forecasting", device="cpu")
    weights = ForecastWeights(network=0.4, linear=0.3, seasonal=0.2, last=0.1)
    model.settings = model.settings.changed(weights=weights)
    model.save(tmp_path / "combined")
    return tmp_path / "combined"


def test_the_bundle_forecasts_the_weighted_mean(combined: Path, tmp_path: Path) -> None:
    """Against each forecaster by hand, from the files of the bundle, in units of the file."""
    model = heedful.load(combined, "forecasting", device="cpu")
    context = waves(1200)[1000:1032]
    scaled = model.settings.scale.apply(context)
    with torch.no_grad():
        network = model.module(torch.tensor(scaled)[None])[0].numpy()
    weight = load_file(combined / "linear.safetensors")["weight"]
    linear = scaled[-1] + np.append(scaled[:, 0] - scaled[-1], 1.0) @ weight
    each = [model.settings.scale.undo(forecast)[:, 0] for forecast in (network, linear[:, None])]
    wanted = 0.4 * each[0] + 0.3 * each[1] + 0.2 * context[-24:-18, 0] + 0.1 * context[-1, 0]
    np.testing.assert_allclose(model.predict([context[:, 0].tolist()])[0], wanted, rtol=1e-6)
    np.testing.assert_allclose(inspect(model, context[:, 0].tolist())["series"]["forecast"], wanted, rtol=1e-6)
    path = table(tmp_path / "hours.csv", waves(1200)[1000:1038], hourly=True)
    scores = ForecastingTask().evaluate(model, Files((path,)))["forecasters"]
    error = ((wanted - waves(1200)[1032:1038, 0]) ** 2).mean()
    assert scores["model"]["in units of the file"]["a"]["mse"] == pytest.approx(error, rel=1e-4)


def test_bundle_without_the_linear_model_it_needs_is_refused(combined: Path) -> None:
    (combined / "linear.safetensors").unlink()
    with pytest.raises(BundleError, match=r"linear\.safetensors cannot be read"):
        heedful.load(combined, "forecasting", device="cpu")


def test_invalid_weights_are_refused() -> None:
    with pytest.raises(ConfigError, match="weights are 0 or more and together 1"):
        ForecastWeights(network=0.5, linear=0.4)
    with pytest.raises(ConfigError, match="weights are 0 or more and together 1"):
        ForecastWeights(network=1.5, linear=-0.5)


@pytest.mark.parametrize(
    ("length", "changes", "reason"),
    [
        (300, {"combine": False}, "as combine=false says"),
        (110, {}, "6 validation windows are too few to weigh the baselines by"),
    ],
)
def test_a_network_that_forecasts_alone_is_said_to(
    tmp_path: Path, length: int, changes: dict[str, Any], reason: str
) -> None:
    path = table(tmp_path / "hours.csv", waves(length), hourly=True)
    model = run(tmp_path / "run", path, config(training={"steps": 3}, **changes))
    assert model.settings.weights.network == 1
    values = metrics(tmp_path / "run")
    assert values["combination"].startswith("The network forecasts alone")
    assert reason in values["combination"]
    assert "network" not in values["sets"]["test"]["forecasters"]
    context = waves(length)[-32:]
    with torch.no_grad():
        network = model.module(torch.tensor(model.settings.scale.apply(context))[None])[0].numpy()
    np.testing.assert_allclose(model.predict([context]), [model.settings.scale.undo(network)], rtol=1e-6)


def test_export_has_the_network_alone_and_says_so(combined: Path, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"the export has the network alone, whose share .* is 40 %"):
        export_huggingface(combined, tmp_path / "hf")
    mine, theirs = heedful.load(combined, device="cpu").module, read_checkpoint(tmp_path / "hf").module
    for name, tensor in mine.state_dict().items():
        assert torch.equal(theirs.state_dict()[name], tensor), name


# What a plot is made from


def test_plot_data_has_attention_to_patches(seasonal: tuple[Path, str]) -> None:
    look = metrics(seasonal[0])["forecasts"][-1]
    attention, n_patches = look["attention"], 7
    assert attention["patches"] == [[4 * place, 4 * place + 8] for place in range(n_patches)]
    weights = np.array(attention["weights"])
    np.testing.assert_allclose(weights.sum(axis=1), np.ones(n_patches), atol=1e-3)
    np.testing.assert_allclose(attention["mean"], weights.mean(axis=0), atol=1e-3)
    np.testing.assert_allclose(np.mean(attention["heads"], axis=0), attention["mean"], atol=1e-3)
    apart = 4 * np.abs(np.arange(n_patches)[:, None] - np.arange(n_patches))
    np.testing.assert_allclose(np.mean(attention["reach"]), (weights * apart).sum(axis=1).mean(), atol=1e-2)
    assert (look["times"][0], len(look["times"])) == ("2016-08-18 10:00:00", 38)
    assert set(look["rivals"]) == {"tomorrow = today", "seasonal naive", "linear model", "network"}


def test_plot_data_uses_the_row_of_its_column(tmp_path: Path) -> None:
    data = prepared(tmp_path, walks(120, 3))
    model = SeriesForecaster(TINY, build(TINY), ForecastSettings(columns=("a", "b", "c"), scale=data.train.store.scale))
    seen = looks(model, data.metadata.windows["test"], 3)
    assert [look["column"] for look in seen] == ["a", "b", "c"]
    with torch.no_grad(), heedful.record(model.module) as recording:
        model.module(torch.from_numpy(data.metadata.windows["test"].cut([10]).context[..., 1:2]))
    np.testing.assert_allclose(seen[1]["attention"]["heads"], recording.encoder[0][0].mean(dim=1), atol=1e-4)
    assert "linear model" not in seen[0]["rivals"]


# The loss


@pytest.mark.parametrize(("loss", "formula"), [("mse", F.mse_loss), ("mae", F.l1_loss), ("huber", F.huber_loss)])
def test_a_loss_is_a_sum_over_what_was_observed(tmp_path: Path, loss: str, formula: Any) -> None:
    values = walks(120, 2)
    values[20, 1] = float("nan")
    data = prepared(tmp_path, values)
    job = ForecastingTask().bind(ForecastingConfig.from_dict({"model": TINY, "loss": loss}), data, build(TINY).eval())
    batch = data.train.batch([0, 6, 30], size=4)
    result = job.loss(job.module, batch)
    real = batch.counts
    forecast = job.module(batch.context, batch.keep)
    torch.testing.assert_close(result.total, formula(forecast[real], batch.target[real], reduction="sum"))
    torch.testing.assert_close(result.plain, (forecast - batch.target)[real].square().sum())
    assert (int(result.n), result.plain.requires_grad) == (3 * 2 * 3 - 1, False)
    result.total.backward()
    gradients = [parameter.grad for parameter in job.module.parameters() if parameter.grad is not None]
    assert all(torch.isfinite(gradient).all() for gradient in gradients)
    assert job.describe(batch)[1].endswith("series.csv:8")


def test_validation_is_over_all_windows(tmp_path: Path) -> None:
    data = prepared(tmp_path, walks(133))
    module = build(TINY).eval()
    job = ForecastingTask().bind(ForecastingConfig(model=TINY), data, module)
    windows = data.valid
    batch = windows.batch(np.arange(len(windows)))
    with torch.no_grad():
        wanted = F.mse_loss(module(batch.context), batch.target)
        scores = job.validate(module)
    assert scores["mse"] == pytest.approx(float(wanted), rel=1e-5)


# Runs that stop, and what cannot be run


class StoppedError(Exception):
    """In the middle of a run."""


def stopping(step: int) -> Any:
    def observer(event: Event) -> None:
        if isinstance(event, Saved) and event.step == step:
            raise StoppedError

    def watch(_: object) -> Sequence[Observer]:
        return [observer]

    return watch


def test_a_run_that_was_stopped_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    path = table(tmp_path / "walks.csv", walks(300, 2))
    model = HOURLY.changed(dropout=0.2).to_dict()
    settings = config(model=model, training={"steps": 24, "validate_every": 8, "save_every": 8, "batch_tokens": 300})
    whole = run(tmp_path / "whole", path, settings)
    with pytest.raises(StoppedError):
        run(tmp_path / "parts", path, settings, watch=stopping(8))
    again = run(tmp_path / "parts", path, settings, resume=True)
    for name, tensor in whole.module.state_dict().items():
        assert torch.equal(tensor, again.module.state_dict()[name]), name
    uninterrupted, resumed = metrics(tmp_path / "whole"), metrics(tmp_path / "parts")
    assert (uninterrupted["validation"], uninterrupted["sets"]) == (resumed["validation"], resumed["sets"])


def test_a_run_does_not_go_on_with_other_data(tmp_path: Path) -> None:
    path = table(tmp_path / "walks.csv", walks(300))
    settings = config(training={"steps": 16, "validate_every": 8, "save_every": 8})
    with pytest.raises(StoppedError):
        run(tmp_path / "run", path, settings, watch=stopping(8))
    with pytest.raises(ResumeError, match="changed: the data settings"):
        run(tmp_path / "run", path, settings.changed(data=settings.data.changed(split=(0.6, 0.2, 0.2))), resume=True)
    table(tmp_path / "walks.csv", walks(301))
    with pytest.raises(ResumeError, match=r"changed: .*walks\.csv"):
        run(tmp_path / "run", path, settings, resume=True)


def test_invalid_runs_are_refused(tmp_path: Path) -> None:
    path = table(tmp_path / "walks.csv", walks(300))
    task = ForecastingTask()
    with pytest.raises(ConfigError, match="leave out --valid"):
        task.input_files(config(), Files((path,), (path,)))
    with pytest.raises(DataError, match=r"none\.csv: there is no such file"):
        task.input_files(config(), Files((str(tmp_path / "none.csv"),)))
    with pytest.raises(DataError, match="it is a folder; give the files in it"):
        task.input_files(config(), Files((str(tmp_path),)))
    with pytest.raises(ConfigError, match=r"data\.season=33 is longer than model\.context_length=32"):
        config(data={"season": 33})
    with pytest.raises(ConfigError, match="a model of the family 'gpt2' does not forecast; one of 'patchtst' does"):
        config(model="gpt2-tiny")
