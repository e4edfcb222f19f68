"""Batches of images, the range they come in, and the chance by which they are changed."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from small_sets import npz, small_config
from torch import Tensor

from heedful.data.image_sets import TRAIN, VALID, ImageStore
from heedful.errors import DataError
from heedful.tasks.images.data import AugmentConfig, ImageData, ImageLoader, prepare_images
from heedful.tasks.images.predictor import ImageSettings, prepare_pixels
from heedful.tasks.images.task import ImagesTask, Normalize, affine, augment
from heedful.tasks.run import Files


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> ImageData:
    folder = tmp_path_factory.mktemp("images")
    data, _ = prepare_images(small_config(), Files((npz(folder / "set.npz", 120),)), folder)
    return data


# Batches


def subset(store: ImageStore, rows: NDArray[np.intp]) -> ImageStore:
    part = copy.copy(store)
    part.rows = rows
    return part


@pytest.mark.parametrize("batch_size", [1, 7, 27, 1000])
def test_every_image_once_in_batches_of_one_shape(prepared: ImageData, batch_size: int) -> None:
    rows = prepared.train.part(TRAIN).rows
    loader = ImageLoader(subset(prepared.train, rows), batch_size, seed=3)
    for batches in (list(loader.epoch(0)), list(loader.in_order())):
        assert len(batches) == loader.steps_per_epoch(0) == math.ceil(len(rows) / batch_size)
        assert sorted(row for batch in batches for row in batch.rows) == rows.tolist()
        assert len({batch.pixels.shape for batch in batches}) == 1
        assert all(batch.keep.sum() >= len(batch.keep) - 1 for batch in batches)
        for batch in batches:
            n = len(batch.rows)
            assert batch.keep.tolist() == [True] * n + [False] * (len(batch.keep) - n)
            np.testing.assert_array_equal(batch.pixels[:n], prepared.train.pixels[list(batch.rows)])
            assert batch.labels[:n].tolist() == prepared.train.labels[list(batch.rows)].tolist()
            assert batch.pixels.dtype == torch.uint8


def test_an_epoch_is_decided_by_seed_and_number(prepared: ImageData) -> None:
    def rows(seed: int, epoch: int, start: int = 0) -> list[tuple[int, ...]]:
        loader = ImageLoader(prepared.train, 10, seed)
        return [batch.rows for batch in loader.epoch(epoch, start)]

    assert rows(1, 2) == rows(1, 2)
    assert rows(1, 2, start=4) == rows(1, 2)[4:]
    assert len({str(rows(*at)) for at in ((1, 2), (1, 3), (2, 2))}) == 3
    with pytest.raises(DataError, match="cannot start at step 99"):
        rows(0, 0, 99)


def test_padding_rows_change_no_loss(prepared: ImageData) -> None:
    job = ImagesTask().bind(small_config(), prepared)
    module = job.module.eval()
    rows = prepared.train.part(VALID).rows[:11]
    (whole,) = ImageLoader(subset(prepared.train, rows), len(rows)).in_order()
    parts = list(ImageLoader(subset(prepared.train, rows), 5).in_order())
    assert any(not part.keep.all() for part in parts)
    expected, losses = job.loss(module, whole), [job.loss(module, part) for part in parts]
    total = sum(loss.total.item() for loss in losses)
    assert total == pytest.approx(expected.total.item(), rel=1e-5)
    assert sum(int(loss.n) for loss in losses) == len(rows)


# The range


def test_training_and_predicting_see_the_same_numbers() -> None:
    settings = ImageSettings(labels=("a",), resize=(4, 5), mean=(0.1, 0.2, 0.3), std=(0.5, 0.4, 0.3))
    pixels = np.random.default_rng(0).integers(0, 256, (2, 4, 5, 3), dtype=np.uint8)
    normalized = Normalize(settings)(torch.from_numpy(pixels))
    expected = np.stack([prepare_pixels(image, settings, 4, 5) for image in pixels])
    np.testing.assert_allclose(normalized, expected, atol=2e-6)


# Augmentation


def images(n: int = 3, height: int = 5, width: int = 7) -> Tensor:
    return torch.randn(n, 2, height, width)


def by(n: int, value: float) -> Tensor:
    return torch.full((n,), float(value))


def test_affine_shifts_whole_pixels_and_repeats_edges() -> None:
    original = images(1)
    moved = affine(original, by(1, 2), by(1, -1), by(1, 0), by(1, 1))
    y, x = (torch.arange(5) + 1).clamp(0, 4), (torch.arange(7) - 2).clamp(0, 6)
    torch.testing.assert_close(moved[0], original[0][:, y][:, :, x], atol=1e-5, rtol=1e-5)


def test_affine_mirrors_an_image() -> None:
    original = images()
    mirror = torch.tensor([-1.0, 1.0, -1.0])
    moved = affine(original, by(3, 0), by(3, 0), by(3, 0), mirror)
    torch.testing.assert_close(moved[0], original[0].flip(-1), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(moved[1], original[1], atol=1e-5, rtol=1e-5)


def test_affine_rotates_about_the_center() -> None:
    original = images(1, 6, 6)
    moved = affine(original, by(1, 0), by(1, 0), by(1, math.pi / 2), by(1, 1))
    torch.testing.assert_close(moved[0], original[0].rot90(-1, (-2, -1)), atol=1e-4, rtol=1e-4)


def test_shifts_are_whole_pixels_of_every_size_up_to_the_limit() -> None:
    """A dot in the middle is found again at one of 5 x 5 places, each as often as the others."""
    dots = torch.zeros(5000, 1, 9, 9)
    dots[:, :, 4, 4] = 1
    augmented = augment(dots, AugmentConfig(shift=0.2))  # 1.8 pixels: 2
    assert augmented.flatten(1).amax(dim=1).min() > 0.999
    times = torch.bincount(augmented.flatten(1).argmax(dim=1), minlength=81).view(9, 9)
    assert times[2:7, 2:7].sum() == 5000
    assert times[2:7, 2:7].min() > 140
    assert times[2:7, 2:7].max() < 260


def test_flip_mirrors_half_of_the_images() -> None:
    original = images(400)
    assert augment(original, AugmentConfig(shift=0.0)) is original
    augmented = augment(original, AugmentConfig(shift=0.0, flip=True))
    swapped = (augmented - original.flip(-1)).abs().flatten(1).amax(dim=1) < 1e-4
    same = (augmented - original).abs().flatten(1).amax(dim=1) < 1e-4
    assert bool((swapped ^ same).all())
    assert 150 < int(swapped.sum()) < 250


def test_augmentation_uses_torch_random_state(prepared: ImageData) -> None:
    job = ImagesTask().bind(small_config(), prepared)
    batch = next(iter(job.batches.epoch(0)))

    def loss(*, training: bool, seed: int) -> float:
        torch.manual_seed(seed)
        return float(job.loss(job.module.train(training), batch).total.detach())

    assert loss(training=True, seed=1) == loss(training=True, seed=1)
    assert loss(training=True, seed=1) != loss(training=True, seed=2)
    assert loss(training=False, seed=1) == loss(training=False, seed=2)
