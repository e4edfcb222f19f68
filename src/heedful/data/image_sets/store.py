"""Images of one size in files that are mapped and not read (see array_store).

A store is a folder: pixels.bin (N, H, W, C), labels.bin and parts.bin (a number for each image), places.txt (a line for
each) and meta.json.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from ..array_store import ArrayFolder
from ..images import Pixels

PIXELS, LABELS, PARTS, PLACES = FILES = ("pixels.bin", "labels.bin", "parts.bin", "places.txt")
_STORE = ArrayFolder(FILES, "stored images", "there are no stored images, or not all of them")
TRAIN, VALID, UNUSED = range(3)  # what an image is for


class ImageStore:
    """`pixels` (N, H, W, C) are mapped; `labels` (N) are ids of classes; `rows(TRAIN)` are the images for training."""

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

    def __len__(self) -> int:
        return len(self.labels)

    def rows(self, part: int) -> NDArray[np.intp]:
        """Return the rows of a part: TRAIN, VALID or UNUSED."""
        return np.flatnonzero(self._parts == part)

    def place(self, row: int) -> str:
        if self._places is None:
            self._places = (self.folder / PLACES).read_text("utf-8").split("\n")
        return self._places[row]


class ImageWriter:
    """Writes images one by one, and at the end their labels and parts."""

    def __init__(self, files: dict[str, Path], shape: tuple[int, int, int], pixels: IO[bytes], places: IO[str]) -> None:
        self._files, self._shape, self._pixels, self._places = files, shape, pixels, places
        self.count = 0

    def add(self, pixels: Pixels, place: str) -> None:
        if pixels.shape != self._shape or pixels.dtype != np.uint8:
            raise ValueError(f"this store holds bytes of {self._shape}, not {pixels.dtype} of {pixels.shape}")
        self._pixels.write(np.ascontiguousarray(pixels).data)
        self._places.write(place.replace("\n", "\\n") + "\n")
        self.count += 1

    def finish(self, labels: Sequence[int], parts: Sequence[int]) -> None:
        """Write the ids of the classes and the part of each image."""
        for name, values in ((LABELS, np.asarray(labels, np.int32)), (PARTS, np.asarray(parts, np.uint8))):
            if values.shape != (self.count,):
                raise ValueError(f"{self.count} images need as many {name}, not {values.shape}")
            values.tofile(self._files[name])


@contextmanager
def write_images(folder: Path, shape: tuple[int, int, int]) -> Iterator[ImageWriter]:
    """Write a store of images of one shape (H, W, C), replacing an older one; after an error the older one stays."""
    with _STORE.write(folder) as (files, meta):
        with (
            files[PIXELS].open("wb", buffering=1 << 20) as pixels,
            files[PLACES].open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as places,
        ):
            writer = ImageWriter(files, shape, pixels, places)
            yield writer
        meta["shape"] = [writer.count, *shape]
