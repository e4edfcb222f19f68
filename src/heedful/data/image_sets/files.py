"""Images that are files: in a folder for each class, or listed in a table with their classes."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from ...errors import DataError
from ..readers.files import opened, split_lines, walk
from .source import ImageSource, Labelled

ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff")
SPLITS = {"train", "training", "test", "testing", "val", "valid", "validation", "dev"}
PATH = ("path", "file", "filename", "image", "image_path", "filepath")
LABEL = ("label", "class", "target", "category")


def folder_source(folder: Path) -> ImageSource:
    """Every folder within is a class, named as it is; images may lie deeper in it."""
    classes = [inner for inner in _sorted(folder) if inner.is_dir()]
    if len(SPLITS & {inner.name.lower() for inner in classes}) > 1:
        names = ", ".join(inner.name for inner in classes)
        raise DataError(
            f"{folder} holds {names}, which are parts of a set and no classes; "
            f"give them one by one: --data {classes[-1].with_name('train')} --valid …"
        )
    found: list[tuple[Path, str]] = []
    others: list[str] = []
    for inner in classes:
        images, others_here = images_in(inner)
        found += ((path, inner.name) for path in images)
        others += map(str, others_here)
    if not found:
        loose = any(path.suffix.lower() in ENDINGS for path in _sorted(folder))
        why = "its images lie in no folder of a class" if loose else "there is no image in it"
        raise DataError(
            f"{folder}: {why}; expected are a folder for each class, with images ({', '.join(ENDINGS)}), "
            "or idx files named like train-images-idx3-ubyte"
        )
    return ImageSource(
        str(folder),
        "folders",
        tuple(path for path, _ in found if path.is_file()),
        lambda: (Labelled(path, label, str(path)) for path, label in found),
        tuple(others),
    )


def images_in(folder: Path) -> tuple[list[Path], list[Path]]:
    """The images in a folder and in those within it, by their names, and the other files.

    A link to nothing is an image that cannot be read, and is told as such by who tries.
    """
    lost: list[Path] = []
    there = sorted(chain(walk(folder, lost.append), lost))  # what is lost is known once all is walked
    images = [path for path in there if path.suffix.lower() in ENDINGS]
    return images, [path for path in there if path.suffix.lower() not in ENDINGS]


def listing_source(listing: Path, columns: Sequence[str] | None = None) -> ImageSource:
    """A table of paths, from where it lies, and classes; a missing file is refused here, one that is broken later."""
    rows = list(_rows(listing, columns))
    if not rows:
        raise DataError(f"{listing} lists no image")
    for path, _, line in rows:
        if not path.is_file():
            raise DataError(f"{listing}:{line}: there is no file {path}")
    return ImageSource(
        str(listing),
        "listing",
        (listing, *dict.fromkeys(path for path, _, _ in rows)),
        lambda: (Labelled(path, label, f"{listing}:{line} {path}") for path, label, line in rows),
    )


def _rows(listing: Path, columns: Sequence[str] | None) -> Iterator[tuple[Path, str, int]]:
    delimiter = "\t" if ".tsv" in listing.suffixes else ","
    places: tuple[int, int] | None = None
    with opened(listing) as stream:
        table = csv.reader(
            (f"{line.text}\n" for line in split_lines(stream, str(listing))), delimiter=delimiter, strict=True
        )
        try:
            for cells in table:
                cells = [cell.strip() for cell in cells]
                if not any(cells):
                    continue
                if places is None:
                    places, named = _places(listing, cells, columns)
                    if named:
                        continue
                if len(cells) <= max(places) or not all(cells[place] for place in places):
                    raise DataError(f"{listing}:{table.line_num}: a path and a class are needed, not {cells}")
                yield listing.parent / cells[places[0]], cells[places[1]], table.line_num
        except csv.Error as error:
            raise DataError(f"{listing}:{table.line_num}: the row cannot be read: {error}") from None


def _places(listing: Path, first: Sequence[str], columns: Sequence[str] | None) -> tuple[tuple[int, int], bool]:
    """Where path and class stand, and whether the first row only says so."""
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
    """What lies in a folder, hidden things left alone."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
