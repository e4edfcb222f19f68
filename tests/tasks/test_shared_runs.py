"""What every run shares, tried with two tasks in one folder and with the shell's verbs for what is no text."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import heedful as package
from heedful.tasks.forecasting.data import ForecastingConfig
from heedful.tasks.images.data import ImagesConfig
from heedful.tasks.language_model.data import LanguageModelConfig
from heedful.tasks.run import RunConfig
from shell import heedful

QUICK = ["--set", "training.steps=2", "--set", "training.validate_every=0", "--set", "training.patience=0"]


@pytest.fixture(scope="module")
def prices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("series") / "prices.csv"
    path.write_text("\n".join(["close", *(f"{math.sin(step / 3):.4f}" for step in range(200))]) + "\n")
    return path


@pytest.fixture(scope="module")
def forecaster(prices: Path) -> Path:
    out = prices.parent / "run"
    done = heedful("train", "forecasting", "--data", prices, "--out", out, *QUICK)
    assert done.code == 0, done.err
    return out


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("images") / "set"
    draw = np.random.default_rng(0)
    for name, level in (("dark", 40), ("light", 210)):
        (folder / name).mkdir(parents=True)
        for number in range(12):
            pixels = np.clip(draw.normal(level, 20, (12, 12)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{number}.png")
    return folder


@pytest.fixture(scope="module")
def classifier(pictures: Path) -> Path:
    out = pictures.parent / "run"
    done = heedful("train", "images", "--data", pictures, "--out", out, "--set", "model.d_model=16", *QUICK)
    assert done.code == 0, done.err
    return out


def test_series_are_forecast_from_the_shell_as_from_python(forecaster: Path, prices: Path) -> None:
    done = heedful("predict", forecaster, prices)
    name, column, *steps = done.out.rstrip("\n").split("\t")
    values = [float(line) for line in prices.read_text().splitlines()[1:]]
    assert (name, column) == ("prices", "close")
    (wanted,) = package.load(forecaster).predict([values])
    assert [float(step) for step in steps] == pytest.approx(wanted, rel=1e-4)
    said = json.loads(heedful("predict", forecaster, prices, "--json").out)
    assert said["forecast"]["close"] == pytest.approx(wanted)


@pytest.mark.parametrize("words", [["--beam", "3"], ["--scores"], ["--stream"]])
def test_what_is_for_text_is_refused_for_series(forecaster: Path, prices: Path, words: list[str]) -> None:
    done = heedful("predict", forecaster, prices, *words)
    assert done.code == 2
    assert len(done.err.splitlines()) == 1


def test_the_output_never_takes_the_place_of_the_input(forecaster: Path, classifier: Path, prices: Path) -> None:
    before = prices.read_bytes()
    done = heedful("predict", forecaster, prices, "--out", prices)
    assert (done.code, prices.read_bytes()) == (1, before)
    assert "is the input" in done.err


def test_images_are_named_one_a_line_and_a_broken_one_is_said(classifier: Path, pictures: Path, tmp_path: Path) -> None:
    done = heedful("predict", classifier, pictures, "--scores")
    rows = [line.split("\t") for line in done.out.splitlines()]
    assert [Path(path).name for path, _, _ in rows] == [path.name for path in sorted(pictures.rglob("*.png"))]
    assert {label for _, label, _ in rows} <= {"dark", "light"}
    assert all(0.5 <= float(share) <= 1 for _, _, share in rows)
    one = pictures / "dark" / "0.png"
    assert json.loads(heedful("predict", classifier, one, "--json").out)["image"] == str(one)
    (tmp_path / "a.png").write_bytes(one.read_bytes())
    (tmp_path / "b.png").write_bytes(b"no image")
    broken = heedful("predict", classifier, tmp_path)
    assert broken.code == 1
    first, second = (line.split("\t") for line in broken.out.splitlines())
    assert (first[0], second) == (str(tmp_path / "a.png"), [str(tmp_path / "b.png"), ""])
    assert "b.png" in broken.err
    assert heedful("predict", classifier, "a text").code == 1


def test_another_task_that_takes_a_folder_over_leaves_nothing_of_the_first(forecaster: Path, tmp_path: Path) -> None:
    text, labelled, out = tmp_path / "text.txt", tmp_path / "labelled.tsv", tmp_path / "run"
    text.write_text("the cat sat on the mat\n" * 60)
    rows = (f"it is {'good' if n % 2 else 'bad'} {n}\t{n % 2}\n" for n in range(80))
    labelled.write_text("".join(["text\tlabel\n", *rows]))
    sizes = {"d_model": 16, "n_heads": 2, "d_ff": 16, "n_layers": 1}
    small = [word for name, size in sizes.items() for word in ("--set", f"model.{name}={size}")]
    done = heedful("train", "classification", "--data", labelled, "--out", out, *small, *QUICK)
    assert done.code == 0, done.err
    assert (out / "data" / "metadata.json").exists()
    assert heedful("train", "language-model", "--data", text, "--out", out, *small, *QUICK).code == 1  # it is in use
    done = heedful("train", "language-model", "--data", text, "--out", out, "--overwrite", *small, *QUICK)
    assert done.code == 0, done.err
    assert not (out / "data" / "metadata.json").exists()
    assert package.load(out).tokenizer.roles.get("mask_token") is None


@pytest.mark.parametrize("kind", [ImagesConfig, ForecastingConfig, LanguageModelConfig])
def test_a_run_ends_with_what_was_asked_for_and_not_with_what_is_usual(kind: type[RunConfig]) -> None:
    config = kind.from_dict({"training": {"epochs": 500}})
    assert (config.training.steps, config.training.epochs) == (None, 500)
    assert kind.from_dict({"training": {"steps": 7}}).training.epochs is None
    usual = kind.from_dict({}).training
    assert kind.from_dict({"training": {"seed": 3}}).training == usual.changed(seed=3)


def test_settings_of_another_task_are_refused(forecaster: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("the cat sat on the mat\n" * 60)
    words = ("--data", tmp_path / "text.txt", "--config", forecaster / "run.yaml", "--out", tmp_path / "run")
    done = heedful("train", "language-model", *words)
    assert done.code == 2
    assert "a run of forecasting, not of language-model" in done.err


def test_what_is_for_translators_is_refused_for_others(forecaster: Path, prices: Path, tmp_path: Path) -> None:
    for words in (["--alignments", tmp_path / "nowhere"], ["--beam", 2]):
        done = heedful("evaluate", forecaster, "--data", prices, *words)
        assert done.code == 2
        assert "is for translation models" in done.err


def test_none_one_and_ten_thousand(forecaster: Path, classifier: Path) -> None:
    """The answer to one does not depend on how many there are."""
    draw = np.random.default_rng(0)
    for folder, many in (
        (forecaster, list(draw.normal(size=(10_000, 30)))),
        (classifier, list(draw.integers(0, 256, (10_000, 12, 12), dtype=np.uint8))),
    ):
        model = package.load(folder)
        assert model.predict([]) == []
        answers = model.predict(many)
        assert len(answers) == 10_000
        for place in (0, 7_777, 9_999):
            (alone,) = model.predict([many[place]])
            assert alone == pytest.approx(answers[place], abs=1e-5)
