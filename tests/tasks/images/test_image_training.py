"""A ViT from files to a bundle: learned, judged, stopped and resumed, evaluated, looked into."""

from __future__ import annotations

import base64
import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from small_sets import CLASSES, npz, shapes, small_config

import heedful
from heedful.config import read_mapping
from heedful.data.image_sets import TRAIN, VALID, ImageStore, image_sources
from heedful.errors import DataError
from heedful.tasks.images import ImageClassifier
from heedful.tasks.images.data import ImagesConfig
from heedful.tasks.images.predictor import png, see_image
from heedful.tasks.images.task import ImagesTask, evaluate_images, see_samples
from heedful.tasks.run import Files, train
from heedful.training import Event, ResumeError, Saved
from tiny_report import report_held


@pytest.fixture(autouse=True)
def _quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ImageClassifier]:
    folder = tmp_path_factory.mktemp("run")
    files = Files((npz(folder / "set.npz", 400),))
    return folder / "run", train(ImagesTask(), small_config(), files, folder / "run")


def test_handwritten_digits(tmp_path: Path) -> None:
    """8 x 8 pixels; a run sees the test images once, when all is done. Its settings were chosen on such parts too."""
    from sklearn.datasets import load_digits  # a second and a half, for this test alone

    digits = load_digits()
    pixels, labels = np.rint(digits.images * 255 / 16).astype(np.uint8), digits.target
    test = np.random.default_rng(0).permutation(len(labels)) < 360
    path = tmp_path / "digits.npz"
    np.savez(path, x_train=pixels[~test], y_train=labels[~test], x_test=pixels[test], y_test=labels[test])
    config = ImagesConfig.from_dict(
        {
            "augment": {"shift": 0.0},
            "model": {"n_layers": 2, "patch_size": 4},
            "training": {
                "steps": 300,
                "batch_tokens": 256,
                "learning_rate": 2e-3,
                "warmup_steps": 40,
                "ema_decay": 0.98,
                "label_smoothing": 0.0,
                "validate_every": 0,
                "save_every": 0,
            },
        }
    )
    model = train(ImagesTask(), config, Files((str(path),)), tmp_path / "run")
    linear = read_mapping(tmp_path / "run" / "metrics.json")["validation"]["scores"]["linear"]["value"]
    assert 90 <= linear <= 98, "scikit-learn's logistic regression has 92 to 97 % on parts of these digits"
    validation = evaluate_files(model, [str(path)])["validation"]
    assert np.sum(validation["confusion"]) == 360
    assert validation["scores"]["accuracy"]["value"] >= 95


def test_image_evaluation_matches_predict(trained: tuple[Path, ImageClassifier]) -> None:
    folder, _ = trained
    model = heedful.load(folder, "images")
    store = ImageStore(folder / "data" / "images")
    rows = store.part(VALID).rows
    answers = model.predict([store.pixels[row] for row in rows])
    right = [next(iter(answer)) == CLASSES[store.labels[row]] for answer, row in zip(answers, rows, strict=True)]
    metrics = read_mapping(folder / "metrics.json")
    validation = metrics["validation"]
    assert (validation["n"], validation["labels"]) == (40, list(CLASSES))
    assert validation["scores"]["accuracy"]["value"] == pytest.approx(100 * sum(right) / 40)
    assert validation["scores"]["accuracy"]["value"] >= 90
    commonest = np.bincount(store.labels[store.part(TRAIN).rows]).argmax()
    assert validation["scores"]["commonest"]["value"] == 100 * np.mean(store.labels[rows] == commonest)
    assert np.trace(np.array(validation["confusion"])) == sum(right)
    assert {sample["place"] for sample in metrics["samples"]} == {store.place(row) for row in rows}


def test_validation_agrees_with_final_evaluation(trained: tuple[Path, ImageClassifier]) -> None:
    folder, model = trained
    task = ImagesTask()
    job = task.bind(small_config(), task.open(small_config(), folder / "data"))
    scores = job.validate(model.module)
    final_scores = job.final_evaluation(model)["validation"]["scores"]
    assert scores["accuracy"] == pytest.approx(final_scores["accuracy"]["value"])
    assert scores["macro_f1"] == pytest.approx(final_scores["macro_f1"]["value"])


def test_bundle_predicts_plain_values(trained: tuple[Path, ImageClassifier], tmp_path: Path) -> None:
    folder, model = trained
    loaded = heedful.load(folder, "images")
    images, _ = shapes(2, seed=9)
    Image.fromarray(images[0]).save(tmp_path / "one.png")
    assert loaded.predict([]) == []
    (answer,) = loaded.predict([str(tmp_path / "one.png")])
    assert answer == model.predict([images[0]])[0]
    assert set(answer) == set(CLASSES)
    assert loaded.settings.mean == model.settings.mean
    assert len(loaded.predict([np.kron(images[1], np.ones((3, 2), np.uint8))])) == 1  # another size
    assert "Its classes: left, right, top." in (folder / "README.md").read_text()


def test_resumed_run_equals_uninterrupted_run(tmp_path: Path) -> None:
    files = Files((npz(tmp_path / "set.npz", 200),))
    config = small_config({"steps": 30, "validate_every": 10}, augment={"shift": 0.2, "flip": True, "rotate": 10.0})
    train(ImagesTask(), config, files, tmp_path / "whole")

    class StopError(Exception):
        pass

    def stop(event: Event) -> None:
        if isinstance(event, Saved) and event.step == 20:
            raise StopError

    with pytest.raises(StopError):
        train(ImagesTask(), config, files, tmp_path / "twice", watch=lambda _: [stop])
    torch.manual_seed(99)
    train(ImagesTask(), config, files, tmp_path / "twice", resume=True)
    whole, twice = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "twice"))
    assert whole == twice


def test_changed_settings_stop_a_resumed_run(tmp_path: Path, trained: tuple[Path, ImageClassifier]) -> None:
    folder, _ = trained
    files = Files((str(folder.parent / "set.npz"),))
    with pytest.raises(ResumeError, match="the size and the channels of the images have changed"):
        train(ImagesTask(), small_config(data={"image_size": 12}), files, folder, resume=True, allow_changes=True)


@torch.no_grad()
def test_initial_weights_make_positions_visible(trained: tuple[Path, ImageClassifier]) -> None:
    """A class token that looks at normed patches sees about as much of where they stand as of what they show."""
    folder, _ = trained
    task = ImagesTask()
    config = small_config(model={"preset": "vit-tiny", "patch_size": 1})
    module: Any = task.bind(config, task.open(config, folder / "data")).module
    assert float(module.encoder.positions.weight.std()) == pytest.approx(1, abs=0.1)
    assert float(module.embedding.prefix.std()) == pytest.approx(1, abs=0.3)
    for part in module.modules():
        if isinstance(part, torch.nn.Linear) and part.weight.numel() > 2000:
            assert float(part.weight.std()) == pytest.approx(part.in_features**-0.5, rel=0.1)
    patches = module.embedding(torch.randn(8, 1, 6, 6))[0][:, 1:]
    assert float(patches.std()) == pytest.approx(1, abs=0.4)


def test_deit_learns_too(tmp_path: Path) -> None:
    model = {
        "preset": "deit-tiny",
        "d_model": 16,
        "n_heads": 2,
        "d_ff": 32,
        "n_layers": 1,
        "image_size": 6,
        "patch_size": 2,
    }
    config = small_config({"steps": 3, "validate_every": 0}, model=model)
    trained_model = train(ImagesTask(), config, Files((npz(tmp_path / "set.npz", 60),)), tmp_path / "run")
    assert trained_model.config.family == "deit"
    assert np.array(see_image(trained_model, shapes(1)[0][0]).heads).shape == (2, 3, 3)


# Evaluation on other sets


def evaluate_files(model: ImageClassifier, paths: list[str]) -> dict[str, Any]:
    images = (image for source in image_sources(paths, part="test") for image in source.images())
    return evaluate_images(model, images)


def test_a_set_is_evaluated(trained: tuple[Path, ImageClassifier], tmp_path: Path) -> None:
    _, model = trained
    metrics = evaluate_files(model, [npz(tmp_path / "test.npz", 90, seed=4)])
    validation, samples = metrics["validation"], metrics["samples"]
    assert np.sum(validation["confusion"]) == 90
    n_wrong = 90 - int(np.trace(np.array(validation["confusion"])))
    wrong = [sample["probability"] for sample in samples if sample["prediction"] != sample["label"]]
    assert len(wrong) == min(50, n_wrong)
    assert wrong == sorted(wrong, reverse=True)
    assert validation["scores"]["accuracy"]["value"] == pytest.approx(100 * (1 - n_wrong / 90))


def test_sets_that_cannot_be_evaluated(trained: tuple[Path, ImageClassifier], tmp_path: Path) -> None:
    _, model = trained
    images, labels = shapes(6)
    np.savez(tmp_path / "new.npz", x=images, y=np.where(labels == "top", "bottom", labels))
    with pytest.raises(DataError, match="given images have classes that were not trained: 'bottom'"):
        evaluate_files(model, [str(tmp_path / "new.npz")])
    with pytest.raises(DataError, match="no image to evaluate on"):
        evaluate_files(model, [npz(tmp_path / "none.npz", 0)])
    (tmp_path / "set" / "top").mkdir(parents=True)
    (tmp_path / "set" / "top" / "a.png").write_bytes(b"broken")
    with pytest.raises(DataError, match=r"top/a\.png: .*not an image"):
        evaluate_files(model, [str(tmp_path / "set")])


# Looking


def test_see_image_returns_class_token_attention(trained: tuple[Path, ImageClassifier]) -> None:
    """The weights are those that the last layer's queries and keys give for the class token."""
    _, model = trained
    (image,), _ = shapes(1, seed=3)
    seen = see_image(model, image, label="left", place="there/here")
    weights = np.array(seen.heads)
    assert weights.shape == (2, 3, 3)
    assert (seen.truth, seen.title) == ("left", "here")
    assert dict(seen.answers) == model.predict([image])[0]
    with Image.open(io.BytesIO(seen.png)) as picture:
        assert picture.size == (6, 6)
    with torch.no_grad():
        x, _ = model.module.embedding(model.prepared(image)[None])
        x = model.module.encoder.positions.embed(x, torch.arange(10)[None])
        layer = model.module.encoder.layers[0].self_attention
        normed = layer.norm(x)
        query = layer.sublayer.q_proj(normed)[0, 0].view(2, 8)
        key = layer.sublayer.kv_proj(normed)[0, :, :16].view(10, 2, 8)
        expected = torch.einsum("hk,thk->ht", query, key).div(8**0.5).softmax(dim=-1)[:, 1:]
    np.testing.assert_allclose(weights.reshape(2, 9), expected, atol=1e-5)


def test_see_samples_mixes_mistakes_and_correct_images(trained: tuple[Path, ImageClassifier]) -> None:
    folder, model = trained
    metrics = read_mapping(folder / "metrics.json")
    pictures = see_samples(model, folder / "data", metrics["samples"], n=6)
    assert len(pictures) == len({seen.png for seen in pictures}) == 6
    wrong = [seen for seen in pictures if seen.answers[0][0] != seen.truth]
    n_wrong = 40 - int(np.trace(np.array(metrics["validation"]["confusion"])))
    assert len(wrong) == min(3, n_wrong)
    assert {seen.truth for seen in pictures} == set(CLASSES)


@pytest.mark.parametrize("n_channels", [1, 3])
def test_png_encoder_matches_pillow(n_channels: int) -> None:
    pixels: Any = np.random.default_rng(0).integers(0, 256, (4, 7, n_channels), dtype=np.uint8)
    with Image.open(io.BytesIO(png(pixels))) as image:
        image.verify()
    with Image.open(io.BytesIO(png(pixels))) as image:
        np.testing.assert_array_equal(np.atleast_3d(np.asarray(image)), pixels)


def test_the_page_shows_images_and_mistakes(trained: tuple[Path, ImageClassifier]) -> None:
    folder, model = trained
    images = report_held(folder / "report.html")["images"]
    seen = see_samples(model, folder / "data", read_mapping(folder / "metrics.json")["samples"])
    assert [f"data:image/png;base64,{base64.b64encode(picture.png).decode()}" for picture in seen] == [
        image["png"] for image in images
    ]
    assert all(image["heads"] for image in images)
