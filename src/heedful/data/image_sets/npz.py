"""npz files: an array of images, (N, H, W) or (N, H, W, C), and one of their classes, (N). Nothing is unpickled.

Images are taken one at a time, so a file may be larger than the memory.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError, HeedfulError
from ..images import MOST_PIXELS
from .source import ImageSource, Labelled, Part

NAMES = (("x", "y"), ("images", "labels"), ("X", "Y"), ("X", "y"), ("data", "target"), ("arr_0", "arr_1"))
PARTS: dict[Part, tuple[str, ...]] = {"train": ("train",), "test": ("test", "t10k")}
ENDING = ".npy"
LARGEST_LABELS = 1 << 30  # bytes
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


class Array(NamedTuple):
    """What an array within says of itself."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]


def npz_source(path: Path, part: Part) -> ImageSource:
    """The arrays of a part of the set, or the only ones there are."""
    with _archive(path) as archive:
        names = {name.removesuffix(ENDING) for name in archive.namelist() if name.endswith(ENDING)}
    images, labels = _chosen(path, names, part)
    return ImageSource(f"{path}:{images}", "npz", (path,), lambda: _images(path, images, labels))


def _chosen(path: Path, names: set[str], part: Part) -> tuple[str, str]:
    """Of those there are: x_train and y_train (or train_x and train_y) for training, x and y for either."""
    other: Part = "test" if part == "train" else "train"
    forms = [*_forms(part), "{}", *_forms(other)]
    named = [(form.format(x), form.format(y)) for form in forms for x, y in NAMES]
    for images, labels in named:
        if {images, labels} <= names:
            return images, labels
    raise DataError(
        f"{path}: the arrays are called {', '.join(sorted(names)) or 'nothing at all'}; "
        "images and their classes are looked for as x and y, images and labels, or x_train and y_train"
    )


def _forms(part: Part) -> list[str]:
    return [form for word in PARTS[part] for form in (f"{{}}_{word}", f"{word}_{{}}")]


def _images(path: Path, images: str, labels: str) -> Iterator[Labelled]:
    with _archive(path) as archive:
        classes = _classes(archive, path, labels)
        with archive.open(images + ENDING) as stream:
            (n, *shape), dtype = _header(stream, archive, path, images)
            if len(shape) not in (2, 3) or math.prod(shape) == 0 or math.prod(shape[:2]) > MOST_PIXELS:
                raise DataError(
                    f"{path}: {images} has the shape {(n, *shape)}; images are (N, height, width) or "
                    "(N, height, width, channels)"
                )
            if n != len(classes):
                raise DataError(f"{path}: {images} holds {n:,} images, but {labels} {len(classes):,} classes")
            size = math.prod(shape) * dtype.itemsize
            for row, label in enumerate(classes):
                pixels = np.frombuffer(stream.read(size), dtype).reshape(shape)
                yield Labelled(pixels, label, f"{path}:{images}[{row}]")


def _classes(archive: zipfile.ZipFile, path: Path, name: str) -> list[str]:
    with archive.open(name + ENDING) as stream:
        shape, dtype = _header(stream, archive, path, name)
        if len(shape) == 2 and shape[1] == 1:
            shape = shape[:1]  # a column
        if len(shape) != 1 or dtype.kind not in "biuUS":
            raise DataError(f"{path}: {name} is {dtype} of the shape {shape}; classes are whole numbers or texts, (N)")
        if shape[0] * dtype.itemsize > LARGEST_LABELS:
            raise DataError(f"{path}: {name} is too large: {shape[0]:,} classes of {dtype.itemsize} bytes")
        values: NDArray[np.generic] = np.frombuffer(stream.read(), dtype)
    return [label.decode("utf-8", "backslashreplace") if isinstance(label, bytes) else str(label) for label in values]


def _header(stream: IO[bytes], archive: zipfile.ZipFile, path: Path, name: str) -> Array:
    """Checked against the size of what is there, before room is made for it."""
    try:
        version = np.lib.format.read_magic(stream)
        if version not in HEADERS:
            raise ValueError(f"version {version}")
        shape, fortran, dtype = HEADERS[version](stream)
    except ValueError as error:
        raise DataError(f"{path}: {name} is not an array that can be read: {error}") from None
    if dtype.hasobject:
        raise DataError(f"{path}: {name} holds Python objects, which are not read; save it as numbers or texts")
    if fortran and len(shape) > 1:
        raise DataError(f"{path}: {name} is stored column by column; save np.ascontiguousarray({name})")
    there = archive.getinfo(name + ENDING).file_size - stream.tell()
    if math.prod(shape) * dtype.itemsize != there:
        raise DataError(f"{path}: {name} claims the shape {shape} of {dtype}, but {there:,} bytes are there")
    return Array(shape, dtype)


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except HeedfulError:
        raise
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from None
    except Exception as error:  # damage shows in many ways: BadZipFile, zlib.error, UnicodeDecodeError, struct.error, …
        raise DataError(f"{path} is not a whole npz file: {error or type(error).__name__}") from None
