"""Sets of images with their classes: idx files, npz files, a folder for each class, a table of paths.

Their images are brought to one size and one number of channels; what was changed or dropped is counted. A store holds
them in files that are mapped and not read (see array_store): pixels.bin (N, H, W, C), labels.bin and parts.bin (a
number for each image), places.txt (a line for each) and meta.json.

Shapes: N images, H height, W width, C channels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from itertools import chain
from pathlib import Path
from typing import IO, Final

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ..array_store import ArrayFolder
from ..images import Pixels, pixels_of, resized
from ..readers.files import csv_rows, opened, split_lines, walk
from ..report import FileReport, ImageReport
from .formats import ImageSource, LabeledImage, Part, idx_in, idx_source, is_idx, npz_source

__all__ = ["ImageSource", "ImageStore", "LabeledImage", "Part", "common_shape", "image_sources", "images_in"]
__all__ += ["resized_images", "write_images"]

RESAMPLE: Final = "bilinear"
BROKEN = "broken or no image"
ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff")
SPLITS = {"train", "training", "test", "testing", "val", "valid", "validation", "dev"}
PATH = ("path", "file", "filename", "image", "image_path", "filepath")
LABEL = ("label", "class", "target", "category")

PIXELS, LABELS, PARTS, PLACES = FILES = ("pixels.bin", "labels.bin", "parts.bin", "places.txt")
_STORE = ArrayFolder(FILES, "stored images", "there are no stored images, or not all of them")
TRAIN, VALID, UNUSED = range(3)  # what an image is for


def image_sources(
    paths: Sequence[str], *, part: Part = "train", columns: Sequence[str] | None = None
) -> list[ImageSource]:
    """Inspect the image sets at these paths without reading their images.

    Args:
        paths: idx files, npz files, folders, or tables of paths.
        part: which images to use where a set has images for training and for testing.
        columns: the columns of the path and the class in a table.
    """
    if not paths:
        raise DataError("no images were given")
    return [_source(Path(path), part, columns) for path in paths]


def _source(path: Path, part: Part, columns: Sequence[str] | None) -> ImageSource:
    try:
        if path.is_dir():
            idx = idx_in(path, part)
            return folder_source(path) if idx is None else idx_source(idx)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None
    if not path.is_file():
        raise DataError(f"{path}: there is no such file or folder")
    endings = {ending.lower() for ending in path.suffixes}
    if ".npz" in endings:
        return npz_source(path, part)
    if endings & {".csv", ".tsv"}:
        return listing_source(path, columns)
    if is_idx(path):
        return idx_source(path)
    raise DataError(
        f"{path} is not a set of images; supported are idx files (train-images-idx3-ubyte), .npz, "
        ".csv and .tsv with paths and classes, and a folder with a folder for each class"
    )


def folder_source(folder: Path) -> ImageSource:
    """Return the set of a folder: each folder in it is a class; images may be in folders below."""
    classes = [inner for inner in _sorted(folder) if inner.is_dir()]
    if len(SPLITS & {inner.name.lower() for inner in classes}) > 1:
        names = ", ".join(inner.name for inner in classes)
        raise DataError(
            f"{folder} holds {names}, which are splits of a data set, not classes; "
            f"give them one by one: --data {classes[-1].with_name('train')} --valid …"
        )
    labeled_paths: list[tuple[Path, str]] = []
    others: list[str] = []
    for inner in classes:
        images, others_here = images_in(inner)
        labeled_paths += ((path, inner.name) for path in images)
        others += map(str, others_here)
    if not labeled_paths:
        loose = any(path.suffix.lower() in ENDINGS for path in _sorted(folder))
        why = "its images lie in no folder of a class" if loose else "there is no image in it"
        raise DataError(
            f"{folder}: {why}; expected are a folder for each class, with images ({', '.join(ENDINGS)}), "
            "or idx files named like train-images-idx3-ubyte"
        )
    return ImageSource(
        str(folder),
        "folders",
        tuple(path for path, _ in labeled_paths if path.is_file()),
        lambda: (LabeledImage(path, label, str(path)) for path, label in labeled_paths),
        tuple(others),
    )


def images_in(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the images in a folder and below, sorted, and the other files.

    A broken link counts as an image, so that reading it reports the error.
    """
    lost: list[Path] = []
    there = sorted(chain(walk(folder, lost.append), lost))  # what is lost is known once all is walked
    images = [path for path in there if path.suffix.lower() in ENDINGS]
    return images, [path for path in there if path.suffix.lower() not in ENDINGS]


def listing_source(listing: Path, columns: Sequence[str] | None = None) -> ImageSource:
    """Return the set of a table of paths and classes. A missing file is an error now, a broken one later."""
    rows = list(_rows(listing, columns))
    if not rows:
        raise DataError(f"{listing} does not list any image")
    for path, _, line in rows:
        if not path.is_file():
            raise DataError(f"{listing}:{line}: there is no file {path}")
    return ImageSource(
        str(listing),
        "listing",
        (listing, *dict.fromkeys(path for path, _, _ in rows)),
        lambda: (LabeledImage(path, label, f"{listing}:{line} {path}") for path, label, line in rows),
    )


def _rows(listing: Path, columns: Sequence[str] | None) -> Iterator[tuple[Path, str, int]]:
    delimiter = "\t" if ".tsv" in listing.suffixes else ","
    places: tuple[int, int] | None = None
    with opened(listing) as stream:
        for line, raw, _ in csv_rows(split_lines(stream, str(listing)), str(listing), delimiter):
            cells = [cell.strip() for cell in raw]
            if not any(cells):
                continue
            if places is None:
                places, named = _places(listing, cells, columns)
                if named:
                    continue
            if len(cells) <= max(places) or not all(cells[place] for place in places):
                raise DataError(f"{listing}:{line}: a path and a class are needed, not {cells}")
            yield listing.parent / cells[places[0]], cells[places[1]], line


def _places(listing: Path, first: Sequence[str], columns: Sequence[str] | None) -> tuple[tuple[int, int], bool]:
    """Return the columns of path and class, and whether the first row is a header."""
    if columns is not None:
        if len(columns) != 2 or not set(columns) <= set(first):
            raise DataError(
                f"{listing}: the columns of the path and of the class were called {', '.join(columns)}; "
                f"there are: {', '.join(first)}"
            )
        return (first.index(columns[0]), first.index(columns[1])), True
    lower = [cell.lower() for cell in first]
    paths, labels = ([lower.index(name) for name in names if name in lower] for names in (PATH, LABEL))
    if paths and labels:
        return (paths[0], labels[0]), True
    if len(first) == 2 and Path(first[0]).suffix.lower() in ENDINGS:
        return (0, 1), False
    raise DataError(
        f"{listing}: the columns are {', '.join(first)}; one called path and one called label are needed, "
        "or name them: --columns PATH,LABEL"
    )


def _sorted(folder: Path) -> list[Path]:
    """Return the visible contents of a folder."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def common_shape(
    sources: Sequence[ImageSource], size: int | None, n_channels: int | None, largest: int
) -> tuple[int, int]:
    """Return the side of the square and the number of channels for all images, where they are not given.

    If all images have one size of at most `largest`, the side is their longer one; else it is `largest`. There are 3
    channels if any image has color, else 1. No more images are read than necessary.
    """
    sizes: set[tuple[int, int]] = set()
    has_color = n_channels is not None
    for labeled in chain.from_iterable(source.images() for source in sources):
        if size is not None and has_color:
            break
        try:
            pixels, gray = _seen(labeled.image)
        except DataError:
            continue
        sizes.add((pixels.shape[0], pixels.shape[1]))
        has_color = has_color or not gray
        if len(sizes) > 1 or max(pixels.shape[:2]) > largest:
            size = size or largest
    common = max(sizes.pop()) if sizes else largest
    return size or common, n_channels or (3 if has_color else 1)


def resized_images(
    sources: Sequence[ImageSource], size: int, n_channels: int, reading: ImageReport
) -> Iterator[tuple[Pixels, str, str]]:
    """Yield every usable image as (size, size, n_channels) with its class and its place, and count them."""
    reading.size, reading.n_channels = size, n_channels
    for source in sources:
        read = FileReport(source.name, source.format)
        reading.files.append(read)
        for path in source.passed_over:
            reading.skip("no image by its name", path)
        for labeled in source.images():
            read.count += 1
            try:
                pixels, gray = _seen(labeled.image)
            except DataError as error:
                why = str(error).removeprefix(f"{labeled.image}: ")
                reading.drop(BROKEN, f"{labeled.place} ({why})")
                continue
            if gray != (n_channels == 1):
                reading.change("gray made color" if gray else "color made gray", labeled.place)
            if pixels.shape[:2] != (size, size):
                reading.change(f"resized to {size} x {size}", labeled.place)
            reading.keep(labeled.label)
            square = resized(pixels_of(pixels, n_channels), size, size, RESAMPLE)
            yield square, labeled.label, labeled.place


def _seen(image: object) -> tuple[Pixels, bool]:
    """Return an image (H, W, 1) or (H, W, 3), and whether it is gray."""
    if isinstance(image, np.ndarray) and (image.ndim == 2 or image.shape[2:] == (1,)):
        return pixels_of(image, 1), True
    pixels = pixels_of(image, 3)
    return pixels, bool((pixels == pixels[..., :1]).all())


class ImageStore:
    """`pixels` (N, H, W, C) are mapped; `labels` (N) are ids of classes; `rows` are the images of one part, or all."""

    def __init__(self, folder: str | Path) -> None:
        """Open a store and check every byte of it."""
        self.folder = Path(folder)
        meta, self.fingerprint = _STORE.read(self.folder)
        shape = tuple(meta.get("shape", ()))
        if not shape or shape[0] < 1 or (self.folder / PIXELS).stat().st_size != int(np.prod(shape, dtype=np.int64)):
            raise _STORE.unusable(self.folder, f"{PIXELS} does not hold images of {shape}")
        self.pixels: Pixels = np.asarray(np.memmap(self.folder / PIXELS, np.uint8, mode="r", shape=shape))
        self.labels: NDArray[np.int32] = np.fromfile(self.folder / LABELS, np.int32)
        self._parts = np.fromfile(self.folder / PARTS, np.uint8)
        self._places: list[str] | None = None
        self.rows: NDArray[np.intp] = np.arange(len(self.labels))

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, part: int) -> ImageStore:
        """Return the store with the rows of a part alone: TRAIN, VALID or UNUSED."""
        store = copy(self)
        store.rows = np.flatnonzero(self._parts == part)
        return store

    def place(self, row: int) -> str:
        if self._places is None:
            self._places = (self.folder / PLACES).read_text("utf-8").split("\n")
        return self._places[row]


class ImageWriter:
    """Writes images one by one, and at the end their labels and parts."""

    def __init__(self, pixels: IO[bytes], places: IO[str]) -> None:
        self._pixels, self._places = pixels, places
        self.labels: Sequence[int] = ()  # the ids of the classes, and the part of each image
        self.parts: Sequence[int] = ()

    def add(self, pixels: Pixels, place: str) -> None:
        self._pixels.write(np.ascontiguousarray(pixels).data)
        self._places.write(place.replace("\n", "\\n") + "\n")


@contextmanager
def write_images(folder: Path, shape: tuple[int, int, int]) -> Iterator[ImageWriter]:
    """Write a store of images of one shape (H, W, C), replacing an older one; after an error the older one stays."""
    with _STORE.write(folder) as (files, meta):
        with (
            files[PIXELS].open("wb", buffering=1 << 20) as pixels,
            files[PLACES].open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as places,
        ):
            writer = ImageWriter(pixels, places)
            yield writer
        np.asarray(writer.labels, np.int32).tofile(files[LABELS])
        np.asarray(writer.parts, np.uint8).tofile(files[PARTS])
        meta["shape"] = [len(writer.labels), *shape]
