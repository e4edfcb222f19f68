"""From files to a run's data: classes, what is set apart, mean and deviation, and what is refused."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from small_sets import CLASSES, npz, shapes, small_config

from heedful.data.image_sets import TRAIN, UNUSED, VALID
from heedful.data.report import ImageReport
from heedful.errors import ConfigError, DataError
from heedful.tasks.images.data import (
    AugmentConfig,
    ImageData,
    ImagesConfig,
    open_images,
    prepare_images,
    read_settings,
)
from heedful.tasks.run import DataReport, Files, TooLittleDataError

Read = tuple[ImageData, DataReport[ImageReport]]


def read(folder: Path, *train: str, valid: tuple[str, ...] = (), trained: Any = None, **changes: Any) -> Read:
    return prepare_images(small_config(**changes), Files(train, valid), folder / "data", trained)


def test_holdout_has_some_of_each_class(tmp_path: Path) -> None:
    prepared, readings = read(tmp_path, npz(tmp_path / "set.npz", 300))
    store = prepared.train
    train, valid = store.part(TRAIN).rows, store.part(VALID).rows
    assert (len(valid), readings.held_out, len(train) + len(valid)) == (30, 30, 300)
    assert set(Counter(store.labels[valid].tolist()).values()) <= set(range(8, 13))
    images, labels = shapes(300)
    np.testing.assert_array_equal(store.pixels[..., 0], images)
    assert [prepared.metadata.labels[label] for label in store.labels] == labels.tolist()
    assert prepared.metadata.labels == CLASSES
    again, _ = read(tmp_path / "again", npz(tmp_path / "set.npz", 300))
    assert again.train.fingerprint == store.fingerprint


def test_the_same_image_is_never_on_both_sides(tmp_path: Path) -> None:
    images, labels = shapes(60)
    np.savez(tmp_path / "set.npz", x=np.tile(images, (4, 1, 1)), y=np.tile(labels, 4))
    prepared, readings = read(tmp_path, str(tmp_path / "set.npz"))
    sides = [{image.tobytes() for image in part.pixels[part.rows]} for part in (prepared.train, prepared.valid)]
    assert not sides[0] & sides[1]
    assert 0 < (readings.held_out or 0) <= 24


def test_an_image_of_two_classes_is_trained_on_and_small_classes_are_validated(tmp_path: Path) -> None:
    images, labels = shapes(200)
    np.savez(tmp_path / "both.npz", x=np.concatenate([images, images[:80]]), y=np.append(labels, ["else"] * 80))
    prepared, _ = read(tmp_path, str(tmp_path / "both.npz"))
    sides = [{image.tobytes() for image in part.pixels[part.rows]} for part in (prepared.train, prepared.valid)]
    assert sides[1]
    assert not sides[0] & sides[1]
    np.savez(tmp_path / "small.npz", x=images, y=np.arange(200) % 50)
    assert read(tmp_path, str(tmp_path / "small.npz"))[1].held_out == 20


def test_broken_links_are_counted_and_named(tmp_path: Path) -> None:
    images, labels = shapes(40)
    for number, (image, label) in enumerate(zip(images, labels, strict=True)):
        (tmp_path / "set" / label).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(tmp_path / "set" / label / f"{number}.png")
    lost = tmp_path / "set" / "top" / "lost.png"
    lost.symlink_to(tmp_path / "nowhere.png")
    prepared, readings = read(tmp_path, str(tmp_path / "set"))
    assert len(prepared.train.labels) == 40
    assert readings.train.dropped["broken or no image"].places == [f"{lost} (there is no such file)"]


def test_validation_images_are_dropped_from_training(tmp_path: Path) -> None:
    train, valid = npz(tmp_path / "train.npz", 50), npz(tmp_path / "valid.npz", 10, seed=1)
    images, labels = shapes(10, seed=1)
    np.savez(tmp_path / "both.npz", x=images[:3], y=labels[:3])
    prepared, readings = read(tmp_path, train, str(tmp_path / "both.npz"), valid=(valid,))
    assert [len(prepared.train.part(part).rows) for part in (TRAIN, VALID, UNUSED)] == [50, 10, 3]
    assert readings.train.kept == 50
    assert readings.train.dropped["also in validation"].places[0] == f"{tmp_path}/both.npz:x[0]"
    assert (readings.held_out, readings.valid and readings.valid.kept) == (0, 10)


def test_test_part_is_used_only_if_given_as_validation(tmp_path: Path) -> None:
    path = str(tmp_path / "set.npz")
    (images, labels), (others, other_labels) = shapes(100), shapes(7, seed=1)
    np.savez(path, x_train=images, y_train=labels, x_test=others, y_test=other_labels)
    prepared, readings = read(tmp_path, path)
    assert (len(prepared.train.labels), readings.held_out) == (100, 10)
    prepared, _ = read(tmp_path, path, valid=(path,))
    np.testing.assert_array_equal(prepared.train.pixels[prepared.train.part(VALID).rows, ..., 0], others)
    assert len(prepared.train.part(TRAIN).rows) == 100


def test_mean_and_deviation_are_of_the_training_images(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    colours = random.integers(0, 256, (40, 4, 4, 3), dtype=np.uint8)
    np.savez(tmp_path / "set.npz", x=colours, y=np.arange(40) % 2)
    prepared, _ = read(tmp_path, str(tmp_path / "set.npz"))
    train = colours[prepared.train.part(TRAIN).rows] / 255
    assert prepared.metadata.mean == pytest.approx(train.mean(axis=(0, 1, 2)))
    assert prepared.metadata.std == pytest.approx(train.std(axis=(0, 1, 2)))


def test_constant_color(tmp_path: Path) -> None:
    np.savez(tmp_path / "set.npz", x=np.full((40, 4, 4), 7, np.uint8), y=np.arange(40) % 2)
    np.savez(tmp_path / "valid.npz", x=np.full((4, 4, 4), 8, np.uint8), y=np.arange(4) % 2)
    prepared, _ = read(tmp_path, str(tmp_path / "set.npz"), valid=(str(tmp_path / "valid.npz"),))
    assert prepared.metadata.std == (1.0,)


def test_open_images_reads_what_was_written(tmp_path: Path) -> None:
    prepared, _ = read(tmp_path, npz(tmp_path / "set.npz"))
    again = open_images(tmp_path / "data")
    assert (again.metadata, again.identity()) == (prepared.metadata, prepared.identity())
    (tmp_path / "data" / "images.json").unlink()
    with pytest.raises(DataError, match=r"images\.json: No such file"):
        open_images(tmp_path / "data")


def test_a_run_keeps_its_classes_and_its_range(tmp_path: Path) -> None:
    before, _ = read(tmp_path, npz(tmp_path / "set.npz"))
    images, labels = shapes(60, seed=5)
    some = labels != "left"
    np.savez(tmp_path / "other.npz", x=images[some], y=labels[some])
    prepared, _ = read(tmp_path, str(tmp_path / "other.npz"), trained=read_settings(tmp_path / "data"))
    assert prepared.metadata == before.metadata
    assert set(prepared.train.labels.tolist()) == {1, 2}
    np.savez(tmp_path / "new.npz", x=images, y=np.where(some, labels, "bottom"))
    with pytest.raises(DataError, match=r"training images have classes that were not trained: 'bottom' \(\d+ images\)"):
        read(tmp_path, str(tmp_path / "new.npz"), trained=before.metadata)


# What is refused


def test_unknown_classes_are_refused(tmp_path: Path) -> None:
    images, _ = shapes(4, seed=1)
    np.savez(tmp_path / "valid.npz", x=images, y=np.array(["top", "up", "down", "up"]))
    message = (
        r"validation images have classes that were not trained: 'down' \(1 images\), 'up' \(2 images\); .* left, right"
    )
    with pytest.raises(DataError, match=message):
        read(tmp_path, npz(tmp_path / "set.npz"), valid=(str(tmp_path / "valid.npz"),))


def test_one_class(tmp_path: Path) -> None:
    np.savez(tmp_path / "set.npz", x=shapes(40)[0], y=np.zeros(40, int))
    with pytest.raises(TooLittleDataError, match="every image is of the class '0'; at least two classes"):
        read(tmp_path, str(tmp_path / "set.npz"))


def test_too_few_images(tmp_path: Path) -> None:
    with pytest.raises(TooLittleDataError, match=r"^8 images are too few to hold some out"):
        read(tmp_path, npz(tmp_path / "set.npz", 8))
    with pytest.raises(TooLittleDataError, match="there is no image to train on; 0 were found"):
        read(tmp_path, npz(tmp_path / "none.npz", 0))


def test_only_broken_images(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / "set" / name).mkdir(parents=True)
        (tmp_path / "set" / name / "1.png").write_bytes(b"no image")
    with pytest.raises(
        TooLittleDataError, match=r"no image to train on; 2 were found; the first: .*a/1\.png \(it is not"
    ):
        read(tmp_path, str(tmp_path / "set"))


def test_training_images_all_in_validation(tmp_path: Path) -> None:
    path = npz(tmp_path / "set.npz", 20)
    with pytest.raises(TooLittleDataError, match="no image to train on; 20 were found; the first"):
        read(tmp_path, path, valid=(path,))


def test_mixed_sizes_become_one(tmp_path: Path) -> None:
    """A folder with one of everything; the model's patches are as many as before."""
    random = np.random.default_rng(0)
    for name in ("cat", "dog"):
        (tmp_path / "set" / name).mkdir(parents=True)
        for number in range(20):
            shape = (20 + number, 30, 3) if number % 2 else (16, 16)
            pixels = random.integers(0, 256, shape, dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "set" / name / f"{number}.png")
    prepared, readings = read(tmp_path, str(tmp_path / "set"))
    assert prepared.train.pixels.shape[1:] == (64, 64, 3)
    assert {name: tally.count for name, tally in readings.train.changed.items()} == {
        "gray made color": 20,
        "resized to 64 x 64": 40,
    }
    prepared, _ = read(tmp_path / "grey", str(tmp_path / "set"), data={"image_size": 12, "n_channels": 1})
    assert prepared.train.pixels.shape[1:] == (12, 12, 1)


# Settings


@pytest.mark.parametrize(
    ("size", "patch"), [(28, 7), (14, 7), (8, 2), (32, 8), (64, 16), (9, 3), (10, 2), (12, 3), (1, 1)]
)
def test_patch_size_is_kept_or_scaled(size: int, patch: int) -> None:
    model: Any = ImagesConfig().model_for(size, 3, 5)
    assert (model.image_size, model.patch_size, model.n_channels, model.n_classes) == (size, patch, 3, 5)


def test_image_size_without_fitting_patches() -> None:
    with pytest.raises(ConfigError, match="images of 29 x 29 cannot be cut into patches of about 7 pixels; change"):
        ImagesConfig().model_for(29, 1, 2)


def test_other_models_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"family 'bert' .* cannot classify images"):
        ImagesConfig.from_dict({"model": "bert-tiny"})
    with pytest.raises(ConfigError, match="the head 'hidden'"):
        ImagesConfig.from_dict({"model": {"head": "hidden"}})
    assert ImagesConfig.from_dict({"model": "deit-tiny"}).model.family == "deit"


def test_invalid_augmentation_settings() -> None:
    with pytest.raises(ConfigError, match="shift must be from 0"):
        AugmentConfig(shift=1.0)
    with pytest.raises(ConfigError, match="rotate is from 0 to 180"):
        AugmentConfig(rotate=-1.0)
