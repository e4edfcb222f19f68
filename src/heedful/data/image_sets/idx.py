"""idx files, MNIST's format: two zeros, the type of a value, how many dimensions, their sizes, and then the values.

Images are (N, H, W) or (N, H, W, C) of bytes; their classes are whole numbers in a file of their own beside them.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ..images import MOST_PIXELS
from ..readers.files import opened
from .source import ImageSource, Labelled, Part

MAGIC = b"\x00\x00"
TYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
IMAGES = re.compile(r"images(?=[-.]idx[34])")
TEST = re.compile(r"(^|[-_])(t10k|test)[-_]")
MOST_LABELS = 1 << 28


class Header(NamedTuple):
    """What an idx file says of itself."""

    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]


def is_idx(path: Path) -> bool:
    """By its first bytes, unpacked."""
    with opened(path) as stream:
        head = stream.read(4)
    return len(head) == 4 and head.startswith(MAGIC) and head[2] in TYPES and 1 <= head[3] <= 4


def idx_source(path: Path) -> ImageSource:
    """The images in a file, with the labels that lie beside it."""
    labels = labels_beside(path)
    return ImageSource(str(path), "idx", (path, labels), lambda: _images(path, labels))


def idx_in(folder: Path, part: Part) -> Path | None:
    """The images of a part of the set in a folder: all there are, where it has only one part."""
    found = sorted(path for path in folder.iterdir() if IMAGES.search(path.name) and path.is_file())
    named = {path.name.removesuffix(".gz"): path for path in reversed(found)}  # unpacked before packed
    test = [path for name, path in named.items() if TEST.search(name)]
    train = [path for name, path in named.items() if not TEST.search(name)]
    wanted = (test or train) if part == "test" else (train or test)
    if len(wanted) > 1:
        names = ", ".join(sorted(path.name for path in wanted))
        raise DataError(f"{folder} holds several sets of images: {names}; give one of them")
    return wanted[0] if wanted else None


def labels_beside(path: Path) -> Path:
    """train-labels-idx1-ubyte for train-images-idx3-ubyte, packed or not."""
    name = IMAGES.sub("labels", path.name.removesuffix(".gz"))
    if name == path.name.removesuffix(".gz"):
        kind = "holds labels, not images" if "labels" in path.name else "is not named as a file of images"
        raise DataError(f"{path} {kind}; give a file such as train-images-idx3-ubyte, with train-labels-… beside it")
    name = re.sub(r"idx[34]", "idx1", name)
    for candidate in (path.with_name(name), path.with_name(f"{name}.gz")):
        if candidate.is_file():
            return candidate
    raise DataError(f"{path}: the labels are missing; {name} or {name}.gz must lie beside it")


def _images(path: Path, labels: Path) -> Iterator[Labelled]:
    classes = _classes(labels)
    with opened(path) as stream:
        dtype, (n, *shape) = _header(stream, path)
        if dtype != np.uint8 or len(shape) not in (2, 3):
            raise DataError(f"{path}: images are bytes in 3 or 4 dimensions, not {dtype} in {len(shape) + 1}")
        if math.prod(shape[:2]) > MOST_PIXELS or math.prod(shape) == 0:
            raise DataError(f"{path}: images of {' x '.join(map(str, shape))} are not read")
        if n != len(classes):
            raise DataError(f"{path} holds {n:,} images, but {labels} {len(classes):,} labels; which belong together?")
        for row, label in enumerate(classes):
            pixels = np.frombuffer(_exactly(stream, math.prod(shape), path), np.uint8).reshape(shape)
            yield Labelled(pixels, str(label), f"{path}:{row + 1}")
        _at_end(stream, path)


def _classes(path: Path) -> NDArray[np.integer]:
    with opened(path) as stream:
        dtype, shape = _header(stream, path)
        if dtype.kind not in "iu" or len(shape) != 1:
            raise DataError(f"{path}: labels are whole numbers in 1 dimension, not {dtype} in {len(shape)}")
        if shape[0] > MOST_LABELS:
            raise DataError(f"{path} promises {shape[0]:,} labels; at most {MOST_LABELS:,} are read")
        values = np.frombuffer(_exactly(stream, shape[0] * dtype.itemsize, path), dtype)
        _at_end(stream, path)
    return values


def _header(stream: BinaryIO, path: Path) -> Header:
    head = _exactly(stream, 4, path)
    if not head.startswith(MAGIC) or head[2] not in TYPES or not 1 <= head[3] <= 4:
        raise DataError(f"{path} is not an idx file: it begins with {head.hex(' ')}")
    return Header(np.dtype(TYPES[head[2]]), struct.unpack(f">{head[3]}I", _exactly(stream, 4 * head[3], path)))


def _exactly(stream: BinaryIO, size: int, path: Path) -> bytes:
    """So many bytes, taken in pieces: a header may claim more than there is memory."""
    pieces = []
    while size:
        piece = stream.read(min(size, 1 << 24))
        if not piece:
            raise DataError(f"{path} ends too early: its header promises more; was it cut off when it was copied?")
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _at_end(stream: BinaryIO, path: Path) -> None:
    if stream.read(1):
        raise DataError(f"{path} goes on after what its header promises; it is not whole, or not an idx file")
