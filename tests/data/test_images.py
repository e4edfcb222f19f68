"""Images from what a person has: the same pixels whatever the form, and clear words for what is none."""

from __future__ import annotations

import builtins
import io
import struct
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from heedful.data import images
from heedful.data.images import RESAMPLING, pixels_of, resized
from heedful.errors import DataError, MissingDependencyError


def drawn(*shape: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def written(image: Image.Image, form: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


COLOUR, GREY, CLEAR = drawn(5, 7, 3), drawn(5, 7), drawn(5, 7, 4)


# One image in every form


@pytest.mark.parametrize("form", ["PNG", "BMP", "TIFF"])
def test_a_file_its_bytes_an_array_and_lists_are_the_same_image(form: str, tmp_path: Path) -> None:
    path = tmp_path / "image.bin"  # the content says what it is, not the name
    path.write_bytes(written(Image.fromarray(COLOUR), form))
    forms: list[Any] = [path, str(path), path.read_bytes(), Image.fromarray(COLOUR), COLOUR, COLOUR.tolist()]
    forms += [COLOUR / 255, (COLOUR / 255).astype(np.float32), (COLOUR / 255).astype(np.float16), COLOUR.astype(int)]
    for source in forms:
        pixels = pixels_of(source, 3)
        assert pixels.dtype == np.uint8
        np.testing.assert_array_equal(pixels, COLOUR)


@pytest.mark.parametrize("form", ["JPEG", "WEBP"])
def test_a_compressed_file_is_decoded(form: str) -> None:
    even = np.full((16, 16, 3), (200, 100, 50), dtype=np.uint8)
    pixels = pixels_of(written(Image.fromarray(even), form), 3)
    assert np.abs(pixels.astype(int) - even).max() <= 6


def test_lists_are_read_with_and_without_channels() -> None:
    assert pixels_of([[0, 255], [7, 8]], 1).tolist() == [[[0], [255]], [[7], [8]]]
    assert pixels_of([[[1, 2]]], 2).tolist() == [[[1, 2]]]  # as many channels as the model reads are not touched


def test_fractions_are_rounded_to_the_nearest_level() -> None:
    assert pixels_of([[0.0, 0.4999, 0.9999, 1.0]], 1).ravel().tolist() == [0, 127, 255, 255]


# Channels


def test_colour_becomes_grey_as_pillow_does_it() -> None:
    every = drawn(300, 300, 3, seed=1)
    np.testing.assert_array_equal(pixels_of(every, 1)[..., 0], np.asarray(Image.fromarray(every).convert("L")))


def test_grey_becomes_colour_by_repeating() -> None:
    np.testing.assert_array_equal(pixels_of(GREY, 3), np.stack([GREY] * 3, axis=-1))
    np.testing.assert_array_equal(pixels_of(written(Image.fromarray(GREY), "PNG"), 3), np.stack([GREY] * 3, axis=-1))


@pytest.mark.parametrize("source", [CLEAR, written(Image.fromarray(CLEAR), "PNG")], ids=["array", "file"])
def test_what_is_transparent_shows_white(source: Any) -> None:
    wanted = Image.alpha_composite(Image.new("RGBA", (7, 5), "white"), Image.fromarray(CLEAR)).convert("RGB")
    assert np.abs(pixels_of(source, 3).astype(int) - np.asarray(wanted)).max() <= 1
    np.testing.assert_array_equal(pixels_of([[[9, 9, 9, 0], [9, 9, 9, 255]]], 3), [[[255] * 3, [9] * 3]])
    np.testing.assert_array_equal(pixels_of([[[9, 9, 9, 0], [9, 9, 9, 255]]], 1), [[[255], [9]]])


def test_a_palette_is_converted_with_its_transparent_colour() -> None:
    palette = Image.new("P", (2, 1))
    palette.putpalette([10, 20, 30, 40, 50, 60])
    palette.putdata([0, 1])
    np.testing.assert_array_equal(pixels_of(written(palette, "PNG"), 3), [[[10, 20, 30], [40, 50, 60]]])
    see_through = written(palette, "PNG", transparency=1)
    np.testing.assert_array_equal(pixels_of(see_through, 3), [[[10, 20, 30], [255, 255, 255]]])


@pytest.mark.parametrize("mode", ["1", "LA", "CMYK"])
def test_other_modes_are_converted(mode: str) -> None:
    image = Image.fromarray(COLOUR).convert(mode)
    wanted = np.asarray(image.convert("RGB"))
    np.testing.assert_array_equal(pixels_of(image, 3), wanted)


def test_sixteen_bits_become_eight() -> None:
    deep = np.array([[0, 255, 256, 65535]], dtype=np.uint16)
    np.testing.assert_array_equal(pixels_of(written(Image.fromarray(deep), "PNG"), 1)[..., 0], [[0, 0, 1, 255]])


@pytest.mark.parametrize("orientation", range(1, 9))
def test_an_image_stands_as_its_camera_noted(orientation: int) -> None:
    turns: dict[int, Callable[[Any], Any]] = {
        1: lambda x: x,
        2: lambda x: x[:, ::-1],
        3: lambda x: x[::-1, ::-1],
        4: lambda x: x[::-1],
        5: lambda x: x.swapaxes(0, 1),
        6: lambda x: np.rot90(x, -1),
        7: lambda x: np.rot90(x.swapaxes(0, 1), 2),
        8: lambda x: np.rot90(x),
    }
    exif = Image.Exif()
    exif[0x0112] = orientation
    file = written(Image.fromarray(COLOUR), "PNG", exif=exif)
    np.testing.assert_array_equal(pixels_of(file, 3), turns[orientation](COLOUR))


# What is no image


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, "not NoneType"),
        (3.5, "not float"),
        ([], r"not \(0,\)"),
        ([1, 2, 3], r"not \(3,\)"),
        (np.zeros((2, 2, 2, 2)), r"not \(2, 2, 2, 2\)"),
        (np.zeros((0, 4, 3), dtype=np.uint8), r"not \(0, 4, 3\)"),
        ([[1, 2], [3]], "have one length"),
        ([["a", "b"]], "not <U1"),
        ([[None, 1]], "not object"),
        (np.ones((2, 2), dtype=bool), "not bool"),
        ([[0, 256]], "from 0 to 256"),
        ([[-1, 3]], "from -1 to 3"),
        ([[0.0, 200.5]], "divide by 255"),
        ([[0.0, float("nan")]], "from nan"),
        ([[0.0, float("inf")]], "to inf"),
        ([[10**30]], "not object"),
        (np.zeros((3, 20, 30), dtype=np.uint8), "moveaxis"),
        (np.zeros((20, 30, 2), dtype=np.uint8), r"reads 3 channels, and an image of shape \(20, 30, 2\) has 2$"),
        (b"", "not an image in a supported format"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n", "PNG, JPEG"),
        (Image.new("F", (2, 2)), "32-bit"),
    ],
)
def test_what_is_no_image_is_refused_in_words(source: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        pixels_of(source, 3)


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"])
def test_a_file_that_breaks_off_is_refused_by_its_name(form: str, tmp_path: Path) -> None:
    whole = written(Image.fromarray(drawn(64, 64, 3)), form)
    path = tmp_path / "broken"
    for length in (len(whole) // 2, 40, 9):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match=r"broken: it is (broken|not an image)"):
            pixels_of(path, 3)


def test_a_file_with_wrong_bytes_is_an_image_or_a_data_error() -> None:
    draw = np.random.default_rng(3)
    for form in ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"):
        whole = written(Image.fromarray(drawn(9, 9, 3)), form)
        for _ in range(60):
            broken = bytearray(whole)
            for place in draw.integers(0, len(whole), 3):
                broken[place] = draw.integers(0, 256)
            try:
                assert pixels_of(bytes(broken), 3).shape[2] == 3
            except DataError:
                continue


def test_paths_that_lead_nowhere_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gone\.png: there is no such file"):
        pixels_of(tmp_path / "gone.png", 3)
    with pytest.raises(DataError, match="it is a folder"):
        pixels_of(str(tmp_path), 3)
    with pytest.raises(DataError, match="there is no such file"):
        pixels_of("nul\0l.png", 3)
    with pytest.raises(DataError, match="it cannot be read: File name too long"):
        pixels_of("x" * 5000, 3)


def _claiming(width: int, height: int) -> bytes:
    """The head of a PNG of any size, and nothing after it."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [8_001, 10_000, 100_000])
def test_a_small_file_that_claims_to_be_huge_is_refused_unread(side: int) -> None:
    with pytest.raises(DataError, match=r"too large; at most 64,000,000 are read"):
        pixels_of(_claiming(side, side), 3)


def test_limits_hold_for_arrays_files_and_new_sizes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(images, "MOST_PIXELS", 34)
    for source in (COLOUR, Image.fromarray(COLOUR), written(Image.fromarray(COLOUR), "PNG")):
        with pytest.raises(DataError, match="5 x 7 pixels is too large"):
            pixels_of(source, 3)
    with pytest.raises(DataError, match="6 x 6 pixels is too large"):
        resized(COLOUR, 6, 6, "bilinear")
    monkeypatch.setattr(images, "LARGEST_FILE", 100)
    path = tmp_path / "large.png"
    path.write_bytes(b"x" * 101)
    with pytest.raises(DataError, match=r"large\.png: a file of more than"):
        pixels_of(path, 3)


def test_an_animation_is_not_one_image_and_a_photo_with_others_beside_it_is() -> None:
    first, second = Image.fromarray(COLOUR), Image.fromarray(drawn(5, 7, 3, seed=9))
    with pytest.raises(DataError, match="contains 2 images"):
        pixels_of(written(first, "GIF", save_all=True, append_images=[second]), 3)
    photo = written(first, "MPO", save_all=True, append_images=[second])
    np.testing.assert_array_equal(pixels_of(photo, 3), pixels_of(written(first, "JPEG"), 3))


# Sizes


@pytest.mark.parametrize("resample", RESAMPLING)
def test_resizing_is_pillows(resample: str) -> None:
    wanted = Image.fromarray(COLOUR).resize((4, 9), getattr(Image.Resampling, resample.upper()))
    np.testing.assert_array_equal(resized(COLOUR, 9, 4, resample), np.asarray(wanted))


def test_without_pillow_arrays_are_read_and_files_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    file, importing = written(Image.fromarray(COLOUR), "PNG"), builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("PIL"):
            raise ModuleNotFoundError(name)
        return importing(name, *rest)

    for name in [name for name in sys.modules if name.startswith("PIL")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    np.testing.assert_array_equal(resized(pixels_of(COLOUR, 3), 5, 7, "bilinear"), COLOUR)
    with pytest.raises(MissingDependencyError, match=r"pip install 'heedful\[images\]'"):
        pixels_of(file, 3)
    with pytest.raises(MissingDependencyError, match="Pillow"):
        resized(COLOUR, 2, 2, "bilinear")
