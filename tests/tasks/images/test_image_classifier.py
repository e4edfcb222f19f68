"""What `load` gives for an image classifier: answers, batches, bundles, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from small_classifiers import as_imported, drawn, hf_classifier
from small_classifiers import classifier as small_classifier

import heedful
from heedful.errors import ConfigError, DataError
from heedful.tasks.bundle import Bundle, BundleError
from heedful.tasks.images import ImageClassifier, predictor
from heedful.tasks.predictor import ItemError

SHAPES = [(12, 12, 3), (20, 9, 3), (7, 7), (33, 12, 4), (1, 1, 1)]
PICTURES = [drawn(*shape, seed=seed) for seed, shape in enumerate(SHAPES)]


def test_none_one_and_many(tmp_path: Path) -> None:
    model = small_classifier(tmp_path)
    assert model.task == "images"
    assert model.predict([]) == []
    (answer,) = model.predict([PICTURES[0]])
    assert set(answer) == {f"LABEL_{n}" for n in range(5)}
    assert sum(answer.values()) == pytest.approx(1, abs=1e-6)
    assert all(type(share) is float for share in answer.values())
    assert [list(one.values()) == sorted(one.values(), reverse=True) for one in model.predict(PICTURES)] == [True] * 5


def test_an_answer_does_not_depend_on_its_neighbours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_classifier(tmp_path, "deit")
    single = [model.predict([picture])[0] for picture in PICTURES]
    for tokens in (1, 18, 4096):  # one image at a time, two, all
        monkeypatch.setattr(predictor, "BATCH_TOKENS", tokens)
        for answer, other in zip(model.predict(PICTURES[::-1])[::-1], single, strict=True):
            assert answer == pytest.approx(other, abs=1e-6)


def test_batches_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, seen = small_classifier(tmp_path), list[int]()
    monkeypatch.setattr(predictor, "BATCH_TOKENS", 27)  # an image of 12 x 12 has 9 patches
    model.module.register_forward_pre_hook(lambda module, inputs: seen.append(len(inputs[0])))
    model.predict([PICTURES[0]] * 7)
    assert seen == [3, 3, 1]


def test_files_are_read(tmp_path: Path) -> None:
    model, path = small_classifier(tmp_path), tmp_path / "picture.png"
    Image.fromarray(PICTURES[1]).save(path)
    assert model.predict([path, str(path)]) == [pytest.approx(model.predict([PICTURES[1]])[0], abs=1e-6)] * 2


def test_reloaded_bundle_forecasts_the_same(tmp_path: Path) -> None:
    model = small_classifier(tmp_path, "deit", image_size=16, num_channels=1)
    model.save(tmp_path / "bundle")
    bundle = Bundle.read(tmp_path / "bundle")
    again = ImageClassifier.from_bundle(tmp_path / "bundle", bundle)
    assert (bundle.task, again.settings, again.config) == ("images", model.settings, model.config)
    assert again.predict(PICTURES) == model.predict(PICTURES)


def test_a_bundle_with_impossible_settings_is_refused(tmp_path: Path) -> None:
    model = small_classifier(tmp_path)
    for changes, message in (
        ({"mean": [0.5]}, "settings of the bundle cannot be used"),
        ({"resize": [0, 12]}, "settings of the bundle cannot be used"),
        ({"colour": True}, "settings of the bundle cannot be used"),
    ):
        Bundle("images", model.config, model.settings.to_dict() | changes).write(tmp_path / "bundle", model.module)
        with pytest.raises(BundleError, match=message):
            ImageClassifier.from_bundle(tmp_path / "bundle", Bundle.read(tmp_path / "bundle"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": ("a", "b")}, "tells 5 classes apart, but has 2 labels"),
        ({"mean": (0.0,), "std": (1.0,)}, "reads 3 channels, but mean has 1"),
        ({"resize": (14, 12)}, r"reads images of \(12, 12\), but they are prepared as \(14, 12\)"),
        ({"resize": (14, 14), "crop": (13, 12)}, r"prepared as \(13, 12\)"),
    ],
)
def test_settings_that_do_not_fit_the_model_are_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    model = small_classifier(tmp_path)
    with pytest.raises(ConfigError, match=message):
        ImageClassifier(model.config, model.module, model.settings.changed(**changes))


def test_why_not_says_what_predict_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predictor, "BATCH_TOKENS", 9)  # the second image is in the second batch
    model = small_classifier(tmp_path)
    gone = tmp_path / "gone.png"
    assert model.validation_error(PICTURES[0]) is None
    assert model.validation_error(gone) == f"{gone}: there is no such file"
    with pytest.raises(ItemError, match=r"^image 2: .*gone\.png: there is no such file") as caught:
        model.predict([PICTURES[0], gone])
    assert (caught.value.index, caught.value.reason) == (1, model.validation_error(gone))


@pytest.mark.parametrize(
    "item", ["cat.png", PICTURES[0], b"", Image.new("L", (3, 3))], ids=lambda one: type(one).__name__
)
def test_one_image_is_not_a_list(item: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"predict\(\[image\]\)"):
        small_classifier(tmp_path).predict(item)


def test_where_nothing_is_resized_only_the_right_size_is_read(tmp_path: Path) -> None:
    classifier = small_classifier(tmp_path)
    model = ImageClassifier(classifier.config, classifier.module, classifier.settings.changed(resize=()))
    assert model.validation_error(PICTURES[0]) is None
    assert (
        model.validation_error(PICTURES[1]) == "it has 20 x 9 pixels, and this model, which resizes none, reads 12 x 12"
    )
    cropping = ImageClassifier(
        classifier.config, classifier.module, classifier.settings.changed(resize=(), crop=(12, 12))
    )
    np.testing.assert_allclose(cropping.prepared(drawn(13, 15, 3)), classifier.prepared(drawn(13, 15, 3)[:12, 1:13]))
    assert cropping.validation_error(PICTURES[1]) == "it has 20 x 9 pixels, too few to crop 12 x 12 out of its middle"


def test_a_line_of_pixels_does_not_grow_without_end(tmp_path: Path) -> None:
    classifier = small_classifier(tmp_path)
    model = ImageClassifier(
        classifier.config, classifier.module, classifier.settings.changed(resize=(12,), crop=(12, 12))
    )
    assert "too large" in str(model.validation_error(np.zeros((1, 500_000), dtype=np.uint8)))


@pytest.mark.parametrize("head", ["pooled", "mean", "hidden"])
def test_heads_of_vectors_are_not_for_this_task(head: str, tmp_path: Path) -> None:
    checkpoint = as_imported(hf_classifier("vit"))
    config = checkpoint.config.changed(head=head)
    with pytest.raises(ConfigError, match=f"head '{head}' cannot classify images"):
        ImageClassifier.from_checkpoint(checkpoint._replace(config=config, module=heedful.build(config)), tmp_path)


def test_a_model_of_lower_precision_answers(tmp_path: Path) -> None:
    model = small_classifier(tmp_path)
    wanted = model.predict(PICTURES)
    model.module.bfloat16()
    for answer, other in zip(model.predict(PICTURES), wanted, strict=True):
        assert answer == pytest.approx(other, abs=0.05)
