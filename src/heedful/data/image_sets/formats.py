"""Images with their classes, in idx files (MNIST's format) and in npz files. Nothing is unpickled.

idx: two zeros, the type of a value, how many dimensions, their sizes, and then the values. Images are (N, H, W) or
(N, H, W, C) of bytes; their classes are whole numbers in a file of their own beside them.
npz: an array of images, (N, H, W) or (N, H, W, C), and one of their classes, (N).
Images are taken one at a time, so a file may be larger than the memory.
"""

import math
import re
import struct
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import IO, Any, BinaryIO, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError, HeedfulError
from ..images import MOST_PIXELS
from ..readers.files import opened

Part = Literal["train", "test"]  # which one, where a set has both
MAGIC = b"\x00\x00"
TYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
IMAGES = re.compile(r"images(?=[-.]idx[34])")
TEST = re.compile(r"(^|[-_])(t10k|test)[-_]")
NAMES = (("x", "y"), ("images", "labels"), ("X", "Y"), ("X", "y"), ("data", "target"), ("arr_0", "arr_1"))
PARTS: dict[Part, tuple[str, ...]] = {"train": ("train",), "test": ("test", "t10k")}
ENDING = ".npy"
ArrayHeader: TypeAlias = tuple[tuple[int, ...], np.dtype[Any]]  # shape and type, as a file declares them
LARGEST_LABELS = 1 << 28  # bytes; a few kilobytes can unpack to any number
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


class LabeledImage(NamedTuple):
    """An image as `data.images.pixels_of` takes it, its class, and where it stood."""

    image: object
    label: str
    place: str


@dataclass(frozen=True)
class ImageSource:
    """One image set; `images` starts reading it and can be called repeatedly."""

    name: str
    format: str
    files: tuple[Path, ...]
    images: Callable[[], Iterator[LabeledImage]]
    passed_over: tuple[str, ...] = ()  # files that lie there and are no images by their names


def is_idx(path: Path) -> bool:
    """Return True if the first bytes, unpacked, are those of an idx file."""
    with opened(path) as stream:
        return _is_idx(stream.read(4))


def _is_idx(head: bytes) -> bool:
    return len(head) == 4 and head.startswith(MAGIC) and head[2] in TYPES and 1 <= head[3] <= 4


def idx_source(path: Path) -> ImageSource:
    """Return the images of a file with the labels beside it."""
    labels = labels_beside(path)
    return ImageSource(str(path), "idx", (path, labels), lambda: _idx_images(path, labels))


def idx_in(folder: Path, part: Part) -> Path | None:
    """Return the image file of a part of the set in a folder, or the only one there is."""
    image_files = sorted(path for path in folder.iterdir() if IMAGES.search(path.name) and path.is_file())
    named = {path.name.removesuffix(".gz"): path for path in reversed(image_files)}  # unpacked before packed
    test = [path for name, path in named.items() if TEST.search(name)]
    train = [path for name, path in named.items() if not TEST.search(name)]
    wanted = (test or train) if part == "test" else (train or test)
    if len(wanted) > 1:
        names = ", ".join(sorted(path.name for path in wanted))
        raise DataError(f"{folder} holds several sets of images: {names}; give one of them")
    return wanted[0] if wanted else None


def labels_beside(path: Path) -> Path:
    """Return the label file of an image file, packed or not: train-labels-idx1-ubyte for train-images-idx3-ubyte."""
    name = IMAGES.sub("labels", path.name.removesuffix(".gz"))
    if name == path.name.removesuffix(".gz"):
        kind = "holds labels, not images" if "labels" in path.name else "is not named as a file of images"
        raise DataError(f"{path} {kind}; give a file such as train-images-idx3-ubyte, with train-labels-… beside it")
    name = re.sub(r"idx[34]", "idx1", name)
    for candidate in (path.with_name(name), path.with_name(f"{name}.gz")):
        if candidate.is_file():
            return candidate
    raise DataError(f"{path}: the labels are missing; {name} or {name}.gz must be next to it")


def _idx_images(path: Path, labels: Path) -> Iterator[LabeledImage]:
    classes = _idx_classes(labels)
    with opened(path) as stream:
        (n, *shape), dtype = _idx_header(stream, path)
        if dtype != np.uint8 or len(shape) not in (2, 3):
            raise DataError(f"{path}: images are bytes in 3 or 4 dimensions, not {dtype} in {len(shape) + 1}")
        if math.prod(shape[:2]) > MOST_PIXELS or math.prod(shape) == 0:
            raise DataError(f"{path}: images of {' x '.join(map(str, shape))} are not read")
        if n != len(classes):
            raise DataError(f"{path} holds {n:,} images, but {labels} {len(classes):,} labels; both must be equal")
        for row, label in enumerate(classes):
            pixels = np.frombuffer(_exactly(stream, math.prod(shape), path), np.uint8).reshape(shape)
            yield LabeledImage(pixels, str(label), f"{path}:{row + 1}")
        _at_end(stream, path)


def _idx_classes(path: Path) -> NDArray[np.integer]:
    with opened(path) as stream:
        shape, dtype = _idx_header(stream, path)
        if dtype.kind not in "iu" or len(shape) != 1:
            raise DataError(f"{path}: labels are whole numbers in 1 dimension, not {dtype} in {len(shape)}")
        if shape[0] * dtype.itemsize > LARGEST_LABELS:
            raise DataError(f"{path} declares {shape[0]:,} labels of {dtype.itemsize} bytes, which are too many")
        values: NDArray[np.integer] = np.frombuffer(_exactly(stream, shape[0] * dtype.itemsize, path), dtype)
        _at_end(stream, path)
    return values


def _idx_header(stream: BinaryIO, path: Path) -> ArrayHeader:
    head = _exactly(stream, 4, path)
    if not _is_idx(head):
        raise DataError(f"{path} is not an idx file: it begins with {head.hex(' ')}")
    shape = struct.unpack(f">{head[3]}I", _exactly(stream, 4 * head[3], path))
    return shape, np.dtype(TYPES[head[2]])


def _exactly(stream: BinaryIO, size: int, path: Path) -> bytes:
    """Read this many bytes in pieces: a header may claim more than there is memory."""
    pieces = []
    while size:
        piece = stream.read(min(size, 1 << 24))
        if not piece:
            raise DataError(f"{path} ends too early: its header declares more; was it truncated when it was copied?")
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _at_end(stream: BinaryIO, path: Path) -> None:
    if stream.read(1):
        raise DataError(f"{path} has more bytes than its header declares; it is damaged, or not an idx file")


def npz_source(path: Path, part: Part) -> ImageSource:
    """Return the arrays of a part of the set, or the only ones there are."""
    with _archive(path) as archive:
        names = {name.removesuffix(ENDING) for name in archive.namelist() if name.endswith(ENDING)}
    images, labels = _array_names(path, names, part)
    return ImageSource(f"{path}:{images}", "npz", (path,), lambda: _npz_images(path, images, labels))


def _array_names(path: Path, names: set[str], part: Part) -> tuple[str, str]:
    """Of those there are: x_train and y_train (or train_x and train_y) for training, x and y for either."""
    other: Part = "test" if part == "train" else "train"
    own_forms, other_forms = (
        [form for word in PARTS[which] for form in (f"{{}}_{word}", f"{word}_{{}}")] for which in (part, other)
    )
    for form, (x, y) in product([*own_forms, "{}", *other_forms], NAMES):
        if {form.format(x), form.format(y)} <= names:
            return form.format(x), form.format(y)
    raise DataError(
        f"{path}: the arrays are called {', '.join(sorted(names)) or 'nothing at all'}; "
        "images and their classes are looked for as x and y, images and labels, or x_train and y_train"
    )


def _npz_images(path: Path, images: str, labels: str) -> Iterator[LabeledImage]:
    with _archive(path) as archive:
        classes = _npz_classes(archive, path, labels)
        with archive.open(images + ENDING) as stream:
            (n, *shape), dtype = _npz_header(stream, archive, path, images)
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
                yield LabeledImage(pixels, _label(label), f"{path}:{images}[{row}]")


def _label(value: object) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def _npz_classes(archive: zipfile.ZipFile, path: Path, name: str) -> NDArray[np.generic]:
    with archive.open(name + ENDING) as stream:
        shape, dtype = _npz_header(stream, archive, path, name)
        if len(shape) == 2 and shape[1] == 1:
            shape = shape[:1]  # a column
        if len(shape) != 1 or dtype.kind not in "biuUS":
            raise DataError(f"{path}: {name} is {dtype} of the shape {shape}; classes are whole numbers or texts, (N)")
        if shape[0] * dtype.itemsize > LARGEST_LABELS:
            raise DataError(f"{path}: {name} is too large: {shape[0]:,} classes of {dtype.itemsize} bytes")
        values: NDArray[np.generic] = np.frombuffer(stream.read(), dtype)
    return values


def _npz_header(stream: IO[bytes], archive: zipfile.ZipFile, path: Path, name: str) -> ArrayHeader:
    """Read a header and check it against the size of the file before memory is allocated."""
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
        raise DataError(f"{path}: {name} claims the shape {shape} of {dtype}, but has {there:,} bytes")
    return shape, dtype


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
        raise DataError(f"{path} is not a complete npz file: {error or type(error).__name__}") from None
