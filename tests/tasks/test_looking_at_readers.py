"""Looking at models that read texts, images and series: what they say is what `predict` says."""

from __future__ import annotations

import base64
import io
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from looks import check, weights

import heedful
import published_folders as published
from heedful.errors import ConfigError, DataError
from heedful.families import PatchTSTConfig, ViTConfig
from heedful.tasks.forecasting import ForecastSettings, SeriesForecaster
from heedful.tasks.images import ImageClassifier
from heedful.tasks.images.predictor import ImageSettings
from heedful.tasks.inspection import inspect
from heedful.tasks.model_import import import_model

TEXT = "The cat drinks 물."
CHANNELS = {1: "independent", 2: "mixed"}  # read together
CLASSES = {"num_labels": 3, "id2label": {0: "good", 1: "so-so", 2: "bad"}}


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("readers")
    predictors = {
        "embedding": published.bert("Model"),
        "classification": published.roberta("ForSequenceClassification", **CLASSES),
        "several": published.bert("ForSequenceClassification", problem_type="multi_label_classification", **CLASSES),
        "score": published.bert("ForSequenceClassification", num_labels=1, problem_type="regression"),
        "masked-lm": published.bert(),
    }
    for name, model in predictors.items():
        import_model(published.publish(folder / f"their {name}", model), folder / name)
    return {name: heedful.load(folder / name) for name in predictors}


def classifier(shape: tuple[int, int] = (8, 8), n_channels: int = 3, **settings: Any) -> ImageClassifier:
    torch.manual_seed(0)
    config = ViTConfig(
        d_model=16,
        n_heads=2,
        d_ff=24,
        n_layers=2,
        image_size=shape[0],
        patch_size=4,
        n_channels=n_channels,
        n_classes=3,
    )
    mean = (0.4,) * n_channels
    defaults = {"labels": ("one", "two", "three"), "resize": shape, "mean": mean, "std": (0.3,) * n_channels}
    return ImageClassifier(config, heedful.build(config), ImageSettings(**{**defaults, **settings}))


def forecaster(columns: tuple[str, ...] = (), **changes: Any) -> SeriesForecaster:
    torch.manual_seed(0)
    config = PatchTSTConfig(d_model=20, n_heads=5, d_ff=23, n_layers=2, horizon=7, **changes)
    return SeriesForecaster(config, heedful.build(config), ForecastSettings(columns=columns))


def prices(length: int = 40, channels: int = 2) -> Any:
    return np.random.default_rng(0).normal(size=(length, channels)).cumsum(axis=0) + 50


def table(path: Path, rows: Any, *, times: bool = True) -> Path:
    lines = ["date,open,close" if times else "open,close"]
    for day, row in enumerate(rows):
        cells = ["" if np.isnan(value) else repr(float(value)) for value in row]
        lines.append(",".join([*([str(np.datetime64("2024-01-01") + day)] if times else []), *cells]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def recorded(model: Any, document: dict[str, Any], *inputs: torch.Tensor) -> None:
    """The weights are those of the module on these inputs."""
    with torch.inference_mode(), heedful.record(model.module) as recording:
        model.module(*inputs)
    assert len(document["attentions"]) == len(recording.looks)
    for seen in recording.looks:
        torch.testing.assert_close(
            weights(document, f"{seen.stack}.{seen.kind}.{seen.layer}"), seen.weights[0], rtol=1e-5, atol=1e-6
        )


# Texts


@pytest.mark.parametrize("name", ["classification", "several"])
def test_classes_have_the_probabilities_of_predict(name: str, readers: dict[str, Any]) -> None:
    model = readers[name]
    (wanted,) = model.predict([TEXT])
    document = inspect(model, TEXT)
    check(document, model.module)
    assert {row["label"]: row["probability"] for row in document["classes"]} == wanted == model.predict([TEXT])[0]
    assert document["answer"] == document["classes"][0]["label"] == next(iter(wanted))
    recorded(model, document, torch.tensor([model.prepared(TEXT).ids]))


def test_a_score_is_no_probability(readers: dict[str, Any]) -> None:
    document = inspect(readers["score"], TEXT)
    ((label, score),) = readers["score"].predict([TEXT])[0].items()
    assert (document["classes"], document["answer"]) == (None, f"{label}: {score:.6g}")


def test_an_embedder_is_seen_reading(readers: dict[str, Any]) -> None:
    model = readers["embedding"]
    wanted = model.predict([TEXT])
    document = inspect(model, TEXT)
    check(document, model.module)
    assert model.predict([TEXT]) == wanted
    tokens = document["sequences"]["source"]
    assert (tokens[0]["text"], tokens[0]["special"], tokens[0]["word"]) == ("[CLS]", True, None)
    assert [tokens[1]["text"], tokens[1]["word"]] == ["the", 0]
    assert (document["kind"], document["answer"], document["classes"]) == ("reading", None, None)
    recorded(model, document, torch.tensor([model.prepared(TEXT).ids]))


def test_two_texts_are_shown_as_one(readers: dict[str, Any]) -> None:
    document = inspect(readers["several"], ("a cat", "the dog"))
    assert document["question"] == "a cat | the dog"
    assert [token["text"] for token in document["sequences"]["source"]].count("[SEP]") == 2
    assert {row["label"]: row["probability"] for row in document["classes"]} == readers["several"].predict(
        [("a cat", "the dog")]
    )[0]


def test_a_gap_has_its_likeliest_words_as_classes(readers: dict[str, Any]) -> None:
    model, text = readers["masked-lm"], "the [MASK] reads"
    document = inspect(model, text)
    check(document, model.module)
    assert document["answer"] == model.predict([text])[0]
    ((wanted,),) = model.guesses([text], 10)
    likeliest: dict[str, float] = {}  # "o" and "##o" look alike, and the likelier stands for both
    for guess in wanted:
        likeliest.setdefault(guess.text.strip(), guess.probability)
    assert [(row["label"], row["probability"]) for row in document["classes"]] == list(likeliest.items())


def test_of_several_gaps_each_has_its_own(readers: dict[str, Any]) -> None:
    model, text = readers["masked-lm"], "the [MASK] [MASK]"
    document = inspect(model, text)
    assert document["answer"] == model.predict([text])[0]
    gaps = model.guesses([text], 5)[0]
    wanted: dict[str, float] = {}  # of two that look alike, the likelier
    for n, gap in enumerate(gaps, 1):
        for guess in gap:
            wanted.setdefault(f"{n}: {guess.text.strip()}", guess.probability)
    assert {row["label"]: row["probability"] for row in document["classes"]} == wanted


def test_mask_token_of_another_model_is_refused(readers: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=r"<mask> marks a gap for other models; write \[MASK\]"):
        inspect(readers["masked-lm"], "the <mask> reads")


def test_a_text_without_a_gap_is_read_all_the_same(readers: dict[str, Any]) -> None:
    model = readers["masked-lm"]
    document = inspect(model, TEXT)
    assert (document["answer"], document["classes"]) == (None, None)
    recorded(model, document, torch.tensor([model.tokenizer.encode(TEXT)]))


@pytest.mark.parametrize("name", ["classification", "embedding", "masked-lm"])
def test_what_cannot_be_read_is_refused(name: str, readers: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=f"this model reads at most {published.LIMIT}"):
        inspect(readers[name], "cat " * 80)
    with pytest.raises(DataError, match="a text is a str, not int"):
        inspect(readers[name], 7)
    for empty in ("", " \n", ("", " ")):
        with pytest.raises(DataError, match="the text is empty"):
            inspect(readers[name], empty)
    with pytest.raises(ConfigError, match=f"a model for {name} is inspected without 'beam'"):
        inspect(readers[name], TEXT, beam=2)


def test_model_can_be_used_while_it_is_inspected(readers: dict[str, Any]) -> None:
    model, concurrent, over = readers["classification"], [], threading.Event()
    wanted, single = model.predict([TEXT, "a cat"]), inspect(model, TEXT)

    def use() -> None:
        concurrent.append(model.predict([TEXT, "a cat"]))
        while not over.is_set():
            concurrent.append(model.predict([TEXT, "a cat"]))

    with ThreadPoolExecutor(1) as pool:
        using = pool.submit(use)
        try:
            documents = [inspect(model, TEXT) for _ in range(4)]
        finally:
            over.set()
        using.result()
    assert all(document == single for document in documents)
    assert all(answer == wanted for answer in concurrent)


# Images


def image(document: dict[str, Any]) -> Any:
    """The page's image as a browser decodes it."""
    pillow = pytest.importorskip("PIL.Image")
    head, data = document["image"]["png"].split(",")
    assert head == "data:image/png;base64"
    return np.asarray(pillow.open(io.BytesIO(base64.b64decode(data))))


@pytest.mark.parametrize("n_channels", [1, 3])
def test_an_image_and_its_patches(n_channels: int, tmp_path: Path) -> None:
    pillow = pytest.importorskip("PIL.Image")
    model = classifier(n_channels=n_channels)
    pixels = np.random.default_rng(0).integers(0, 256, (8, 8, n_channels), dtype=np.uint8)
    path = tmp_path / "image.png"
    pillow.fromarray(pixels.squeeze()).save(path)
    document = inspect(model, path)
    check(document, model.module)
    assert {row["label"]: row["probability"] for row in document["classes"]} == model.predict([path])[0]
    assert document["answer"] == document["classes"][0]["label"]
    assert document["question"] == str(path)
    assert np.array_equal(image(document), pixels.squeeze())
    assert [token["text"] for token in document["sequences"]["source"]] == ["class", "1,1", "1,2", "2,1", "2,2"]
    assert {key: document["image"][key] for key in ("size", "patch", "rows", "columns", "prefix")} == {
        "size": 8, "patch": 4, "rows": 2, "columns": 2, "prefix": 1,
    }  # fmt: skip
    recorded(model, document, model.prepared(path)[None])


def test_what_was_cut_off_an_image_is_not_shown() -> None:
    model = classifier(resize=(10, 12), crop=(8, 8))
    pixels = np.random.default_rng(0).integers(0, 256, (10, 12, 3), dtype=np.uint8)
    assert np.array_equal(image(inspect(model, pixels)), pixels[1:9, 2:10])


# Series


@pytest.mark.parametrize("group_size", [1, 2])
def test_the_last_window_of_a_table(group_size: int, tmp_path: Path) -> None:
    model, rows = forecaster(("open", "close"), n_channels=2, channels=CHANNELS[group_size]), prices()
    rows[-5, 1] = np.nan
    path = table(tmp_path / "AAPL.csv", rows)
    (wanted,) = model.predict([rows])
    for place, column in enumerate(("open", "close")):
        document = inspect(model, path, column=column)
        check(document, model.module)
        series = document["series"]
        assert (series["name"], series["column"], series["truth"]) == ("AAPL", column, None)
        assert series["context"] == [None if np.isnan(value) else value for value in rows[-30:, place].tolist()]
        assert series["forecast"] == [row[place] for row in wanted]
        assert (series["times"][0], series["times"][-1]) == ("2024-01-11", "2024-02-09")
        assert series["patches"] == [[begin, begin + 6] for begin in range(0, 25, 3)]
        assert [token["text"] for token in document["sequences"]["source"]][:2] == ["1–6", "4–9"]
        input_row = model.prepared(rows).rows[place // group_size][None]
        keep = torch.from_numpy(~np.isnan(input_row).any(axis=2))
        recorded(model, document, torch.from_numpy(input_row), keep)
    with pytest.warns(UserWarning, match=r"AAPL.csv: of 2 columns 'open' is shown"):
        assert inspect(model, path)["series"]["column"] == "open"


def test_a_series_of_several_is_chosen_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    rows = [f"{name},{n if name == 'AAPL' else -n}" for name in ("AAPL", "MSFT") for n in range(30)]
    path.write_text("\n".join(["symbol,close", *rows]), encoding="utf-8")
    assert inspect(forecaster(("close",)), path, series="MSFT")["series"]["context"][-1] == -29
    with pytest.warns(UserWarning, match="of 2 series 'AAPL' is shown"):
        assert inspect(forecaster(("close",)), path)["series"]["name"] == "AAPL"


def test_a_list_of_numbers_has_no_name_and_no_times() -> None:
    model, numbers = forecaster(), [None, *prices(channels=1)[:, 0].tolist()]
    document = inspect(model, numbers)
    assert document["series"]["forecast"] == model.predict([numbers])[0]
    assert (document["series"]["name"], document["series"]["times"], document["question"]) == ("", None, None)


def test_steps_that_fill_no_patch_are_the_oldest() -> None:
    model = forecaster(context_length=32)
    assert inspect(model, prices(channels=1))["series"]["patches"][0] == [2, 8]


def test_what_cannot_be_forecast_is_refused(tmp_path: Path) -> None:
    model = forecaster(("open", "close"), n_channels=2)
    short, good = table(tmp_path / "short.csv", prices(9)), table(tmp_path / "good.csv", prices(), times=False)
    refused: list[tuple[Path, dict[str, Any], str]] = [
        (short, {"column": "open"}, "short.csv: this model forecasts from 30 steps, and it has only 9"),
        (tmp_path / "none.csv", {}, "none.csv"),
        (good, {"column": "clos"}, "column 'clos'.*close"),
        (good, {"column": "open", "series": "MSFT"}, "series 'MSFT'"),
    ]
    for item, options, message in refused:
        with pytest.raises(DataError, match=message):
            inspect(model, item, **options)
    with pytest.raises(ConfigError, match="without 'beam'"):
        inspect(model, good, beam=2)
