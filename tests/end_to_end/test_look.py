"""`heedful look`: a page, data and a picture of a model in its folder; and one line for every mistake."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import heedful
from heedful.data.tokenizer import Tokenizer
from heedful.families import PatchTSTConfig, ViTConfig, config_of
from heedful.generation import GenerationConfig
from heedful.tasks.forecasting import ForecastSettings, SeriesForecaster
from heedful.tasks.images import ImageClassifier
from heedful.tasks.images.predictor import ImageSettings
from heedful.tasks.translation.predictor import Translator, TranslatorSettings
from shell import heedful as shell

TEXT = "저는 <script>alert('책')</script> 읽어요."


def translator(config: dict[str, Any], **options: Any) -> Translator:
    tokenizer = Tokenizer.train([TEXT] * 3, vocab_size=330)
    family = config_of(config).changed(vocab_size=tokenizer.vocab_size)
    settings = TranslatorSettings(source="ko", target="en", generation=GenerationConfig(max_new_tokens=6), **options)
    return Translator(family, heedful.build(family), tokenizer, settings)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a folder of models, one for each kind of input."""
    folder = tmp_path_factory.mktemp("models")
    torch.manual_seed(0)
    small = {"preset": "tiny", "d_model": 16, "d_ff": 16, "n_encoder_layers": 2, "n_decoder_layers": 2}
    translator(small).save(folder / "translator")
    translator(small | {"positions": "learned", "max_length": 80}, max_tokens=80).save(folder / "limited")
    translator({"preset": "recurrent-plain", "d_model": 16}).save(folder / "plain")
    sizes: dict[str, Any] = {"d_model": 16, "n_heads": 2, "d_ff": 16, "n_layers": 1}
    vit = ViTConfig(image_size=8, patch_size=4, n_channels=1, n_classes=2, **sizes)
    seeing = ImageSettings(labels=("cat", "dog"), resize=(8, 8), mean=(0.5,), std=(0.5,))
    ImageClassifier(vit, heedful.build(vit), seeing).save(folder / "images")
    patches = PatchTSTConfig(horizon=3, **sizes)
    SeriesForecaster(patches, heedful.build(patches), ForecastSettings(columns=("close",))).save(folder / "series")
    return folder


def test_a_page_and_the_same_as_data_and_as_a_picture(hangul_font: str, models: Path, tmp_path: Path) -> None:
    page, data, picture = tmp_path / "new" / "page.html", tmp_path / "look.json", tmp_path / "map.png"
    arguments = ("--beam", 3, "--language", "ko", "--json", data, "--png", picture, "--layer", 0, "--head", 1)
    done = shell("look", models / "translator", TEXT, "--out", page, *arguments)
    assert done.code == 0, done.err
    message = done.out.splitlines()
    document = json.loads(data.read_text(encoding="utf-8"))
    assert [line.split(" (")[0] for line in message[:3]] == [f"저장했습니다: {path}" for path in (picture, data, page)]
    assert all(line.endswith((" kB)", " MB)")) for line in message[:3])
    assert "\n".join(message[3:]) == document["answer"]

    model = heedful.load(models / "translator", "translation")
    assert document["answer"] == model.predict([TEXT], beam=3)[0]
    assert (document["model"]["name"], document["language"]) == ("translator", "ko")
    assert all(array["data"] for array in document["arrays"].values())
    text = page.read_text(encoding="utf-8")
    assert "alert('책')" in text
    assert "<script>alert" not in text
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_sentence_longer_than_any_in_training_is_read_whole(models: Path, tmp_path: Path) -> None:
    done = shell("look", models / "translator", "책 " * 900, "--out", tmp_path / "page.html", "--layers", "0")
    assert (done.code, done.out.startswith("wrote ")) == (0, True)
    (warned,) = done.err.splitlines()
    assert "1 sentence longer than the longest in training (256 tokens) was read whole" in warned


def test_without_words_the_page_is_here_and_data_alone_need_none(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert shell("look", models / "translator", "-", "--json", "a.json", stdin="책을\n".encode()).code == 0
    assert json.loads(Path("a.json").read_text(encoding="utf-8"))["question"] == "책을"
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
    opened: list[str] = []

    def browser(address: str) -> bool:
        opened.append(address)
        return True

    monkeypatch.setattr(webbrowser, "open", browser)
    done = shell("look", models / "translator", "책을", "--target", "I read", "--layers", "0,1", "--open")
    assert (done.code, done.out.split(" (")[0], len(done.out.splitlines())) == (0, "wrote look.html", 1)
    assert opened == [(tmp_path / "look.html").as_uri()]


def test_images_and_series_are_files(models: Path, tmp_path: Path) -> None:
    pillow = pytest.importorskip("PIL.Image")
    image, table, out = tmp_path / "cat.png", tmp_path / "AAPL.csv", tmp_path / "look.json"
    pillow.fromarray(np.zeros((9, 9), np.uint8)).save(image)
    table.write_text("\n".join(["open,close", *(f"{n},{n + 0.5}" for n in range(40))]), encoding="utf-8")
    assert shell("look", models / "images", "--image", image, "--json", out).code == 0
    assert json.loads(out.read_text(encoding="utf-8"))["image"]["rows"] == 2
    arguments = ("--series-name", "AAPL", "--column", "close")
    assert shell("look", models / "series", "--series", table, *arguments, "--json", out).code == 0
    assert json.loads(out.read_text(encoding="utf-8"))["series"]["context"][-1] == 39.5


@pytest.mark.parametrize(
    ("model", "arguments", "code", "message"),
    [
        ("nothing", [TEXT], 1, "nothing is not a folder"),
        (".", [TEXT], 1, "holds no trained model"),
        ("plain", [TEXT], 1, "this recurrent model has no attention"),
        ("translator", [], 2, "needs an input: give TEXT"),
        ("translator", [""], 1, "the text is empty"),
        ("limited", ["책 " * 900], 1, "the text is answered in 24 parts"),
        ("limited", ["책" * 900], 1, "tokens is longer than the 80 that this model reads at once"),
        ("translator", ["--image", "a.png"], 2, "a model for translation takes TEXT, not --image"),
        ("translator", [TEXT, "--out", "."], 1, "a folder; name a file"),
        ("translator", [TEXT, "--json", "/dev/null/a.json"], 1, "/dev/null"),
        ("translator", [TEXT, "--layer", "1"], 2, "--layer and --head select what --png draws"),
        ("translator", [TEXT, "--layers", "a"], 2, "--layers must be numbers from 0"),
        ("translator", [TEXT, "--layers", "5"], 1, "there is no layer 5"),
        ("translator", [TEXT, "--png", "a.png", "--layer", "5"], 1, "there is no layer 5 to draw; there are 0, 1"),
        ("translator", [TEXT, "--png", "a.png", "--head", "9"], 1, "layer 1 has heads 0 to 3, not 9"),
        ("translator", [TEXT, "--png", "a.gif"], 1, "a picture is written as .png or .svg"),
        ("translator", [TEXT, "--column", "close"], 2, "--column are for --series"),
        ("translator", [TEXT, "--device", "foo"], 2, "cannot be used here"),
        ("translator", [TEXT, "--target", "I", "--beam", "3"], 2, "with a target, no answer is generated"),
        ("translator", [TEXT, "--target", "I", "--max-new-tokens", "3"], 2, "leave out --max-new-tokens"),
        ("images", ["a cat"], 2, "a model for images takes --image, not TEXT"),
        ("images", ["--image", "none.png"], 1, "none.png: there is no such file"),
        ("series", ["--series", "none.csv"], 1, "none.csv: there is no such file"),
        ("images", ["--image", "none.png", "--beam", "3"], 1, "none.png"),
    ],
)
def test_a_mistake_is_one_line(
    model: str,
    arguments: list[str],
    code: int,
    message: str,
    models: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = shell("look", models / model, *arguments)
    assert (done.code, done.out) == (code, "")
    assert message in done.err
    assert len(done.err.splitlines()) == 1
    assert not list(tmp_path.glob("*.html"))
