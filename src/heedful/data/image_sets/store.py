"""Images of one size in files that are mapped and not read: a million of them take no memory to speak of.

A store is a folder: pixels.bin (N, H, W, C), labels.bin and parts.bin (a number for each image), places.txt (a line for
each) and meta.json, written last. Without a meta.json that agrees with every byte of the others there is no store.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ...files import replacing, sha256_of
from ..images import Pixels

FORMAT = 1
META = "meta.json"
PIXELS, LABELS, PARTS, PLACES = FILES = ("pixels.bin", "labels.bin", "parts.bin", "places.txt")
TRAIN, VALID, UNUSED = range(3)  # what an image is for


class ImageStore:
    """`pixels` (N, H, W, C) are mapped; `labels` (N) are ids of classes; `rows(TRAIN)` are the images for training."""

    def __init__(self, folder: str | Path) -> None:
        """Open a store and check every byte of it."""
        self.folder = Path(folder)
        meta = _read_meta(self.folder)
        self.fingerprint = hashlib.sha256(json.dumps(meta, sort_keys=True).encode("ascii")).hexdigest()
        shape = tuple(meta["shape"])
        self.pixels: Pixels = np.asarray(np.memmap(self.folder / PIXELS, np.uint8, mode="r", shape=shape))
        self.labels: NDArray[np.int32] = np.fromfile(self.folder / LABELS, np.int32)
        self._parts = np.fromfile(self.folder / PARTS, np.uint8)
        self._places: list[str] | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def rows(self, part: int) -> NDArray[np.intp]:
        """Which images are for training, or for validation."""
        return np.flatnonzero(self._parts == part)

    def place(self, row: int) -> str:
        """Where an image comes from."""
        if self._places is None:
            self._places = (self.folder / PLACES).read_text("utf-8").split("\n")
        return self._places[row]


class Writer:
    """Takes images one by one, and when all are there, what each of them is."""

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
        """The ids of the classes, and what each image is for."""
        for name, values in ((LABELS, np.asarray(labels, np.int32)), (PARTS, np.asarray(parts, np.uint8))):
            if values.shape != (self.count,):
                raise ValueError(f"{self.count} images need as many {name}, not {values.shape}")
            values.tofile(self._files[name])


@contextmanager
def writing(folder: Path, shape: tuple[int, int, int]) -> Iterator[Writer]:
    """A store of images of one shape (H, W, C), in place of an older one; with an error, the older one stays."""
    with ExitStack() as stack:  # which is unwound from its end: what is entered first takes its place last
        files = {name: stack.enter_context(replacing(folder / name)) for name in (META, *FILES)}
        with (
            files[PIXELS].open("wb", buffering=1 << 20) as pixels,
            files[PLACES].open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as places,
        ):
            writer = Writer(files, shape, pixels, places)
            yield writer
        meta = {
            "format": FORMAT,
            "shape": [writer.count, *shape],
            "sha256": {name: sha256_of(files[name]) for name in FILES},
        }
        files[META].write_text(json.dumps(meta, indent=2), encoding="ascii")
        (folder / META).unlink(missing_ok=True)  # from here to the last rename there is no store


def _read_meta(folder: Path) -> dict[str, Any]:
    try:
        meta: dict[str, Any] = json.loads((folder / META).read_text(encoding="utf-8"))
        if meta["format"] != FORMAT:
            raise _unusable(folder, f"{META} is not of the format {FORMAT}, the one this version reads")
        for name in FILES:
            if sha256_of(folder / name) != meta["sha256"][name]:
                raise _unusable(folder, f"{name} is not what was written")
        n, *_ = meta["shape"]
        if n < 1 or (folder / PIXELS).stat().st_size != int(np.prod(meta["shape"], dtype=np.int64)):
            raise _unusable(folder, f"{PIXELS} does not hold images of {meta['shape']}")
    except DataError:
        raise
    except FileNotFoundError as error:
        raise DataError(f"{folder}: there are no stored images, or not all of them: {error.filename}") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _unusable(folder, f"{META}: {error}") from None
    return meta


def _unusable(folder: Path, why: str) -> DataError:
    return DataError(f"{folder}: the stored images cannot be used: {why}")
