"""Sets of images with their classes: idx files, npz files, a folder for each class, a table of paths."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...errors import DataError
from .files import folder_source, listing_source
from .idx import idx_in, idx_source, is_idx
from .npz import npz_source
from .source import ImageSource, Labelled, Part

__all__ = ["ImageSource", "Labelled", "Part", "image_sources"]


def image_sources(
    paths: Sequence[str], *, part: Part = "train", columns: Sequence[str] | None = None
) -> list[ImageSource]:
    """The sets at the paths given, looked at and not yet read.

    Where one holds images to train on and images to test on (MNIST's four files, x_train and x_test), `part` says
    which are meant. `columns` names the path and the class in a table.
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
        f"{path} is no set of images; known are idx files (train-images-idx3-ubyte), .npz, "
        ".csv and .tsv with paths and classes, and a folder with a folder for each class"
    )
