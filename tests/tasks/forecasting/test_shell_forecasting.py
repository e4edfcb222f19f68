"""`heedful train forecasting`: its options become settings, and it says whether the model is worth anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from series_files import TINY, table, walks
from typer.testing import CliRunner, Result

import heedful
from heedful.cli.train import app
from heedful.errors import ConfigError, DataError
from heedful.families import build
from heedful.tasks.forecasting import ForecastSettings, SeriesForecaster
from shell import heedful as shell

SHORT_RUN = (
    "training.steps=4",
    "training.validate_every=2",
    "training.device=cpu",
    "model.d_model=8",
    "model.n_heads=2",
)


@pytest.fixture
def run() -> Callable[..., Result]:
    def run(*options: object, settings: Sequence[str] = SHORT_RUN) -> Result:
        sets = [word for setting in settings for word in ("--set", setting)]
        result = CliRunner().invoke(app, ["forecasting", *map(str, options), *sets], catch_exceptions=True)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


def test_options_become_settings(run: Callable[..., Result], tmp_path: Path) -> None:
    first, second = (table(tmp_path / f"{name}.csv", walks(120, 3), ["open", "close", "volume"]) for name in ("a", "b"))
    out = tmp_path / "run"
    options = ("--columns", "close,open", "--series", "b", "--context", 20, "--horizon", 4, "--channels", "mixed")
    done = run("--data", first, second, "--out", out, *options)
    assert done.exit_code == 0
    model = heedful.load(out, "forecasting")
    config: Any = model.config
    assert (config.context_length, config.horizon, config.channels, config.n_channels) == (20, 4, "mixed", 2)
    assert model.settings.columns == ("close", "open")
    assert np.array(model.predict([walks(20, 2)])).shape == (1, 4, 2)
    assert "tomorrow = today" in done.output
    assert "b.csv" in done.output
    assert run("--out", out, "--resume").exit_code == 0


def test_a_preset_and_its_changes(run: Callable[..., Result], tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", walks(700))
    settings = (*SHORT_RUN[:3], "training.steps=1", "model.n_layers=1")
    assert run("--data", path, "--out", tmp_path / "run", "--preset", "patchtst-42", "--horizon", 8, settings=settings)
    config: Any = heedful.load(tmp_path / "run", "forecasting").config
    assert (config.context_length, config.patch_length, config.stride, config.horizon) == (336, 16, 8, 8)


def test_missing_options_are_reported(run: Callable[..., Result], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--data is missing; see heedful train forecasting --help"):
        run("--out", tmp_path / "run")
    path = table(tmp_path / "a.csv", walks(100, 2), ["open", "close"])
    with pytest.raises(DataError, match=r"unknown column 'price'.* allowed: close, open"):
        run("--data", path, "--out", tmp_path / "run", "--columns", "price")


def test_table_without_a_scorable_window_is_refused(tmp_path: Path) -> None:
    """Every fourth value is missing, so no patch of four is whole; a fifth, and one is."""
    SeriesForecaster(TINY, build(TINY), ForecastSettings(columns=("a",))).save(tmp_path / "model")
    values = walks(40)
    values[::4] = np.nan
    done = shell("evaluate", tmp_path / "model", "--data", table(tmp_path / "gaps.csv", values))
    assert done.code == 1
    assert "none of the 26 windows can be scored" in " ".join(done.err.split())
    values = walks(40)
    values[::5] = np.nan
    done = shell("evaluate", tmp_path / "model", "--data", table(tmp_path / "gaps.csv", values))
    assert done.code == 0, done.err
