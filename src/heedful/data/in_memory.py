"""Data that a program holds, written to files in the form that each task reads: JSON lines, npz or csv.

A run then resumes, reports and names its items as it does for files that someone prepared.
"""

import csv
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError
from ..files import replacing
from .images import Pixels, pixels_of

TEXT_TASKS = ("language-model", "masked-lm")  # whose items are texts
# The names of what a tuple holds, by its length; an image task's tuples hold an image and its class.
FIELDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "translation": (("source", "target"),),
    "text-to-text": (("source", "target"), ("source", "target", "prefix")),
    "classification": (("text", "label"), ("text1", "text2", "label")),
    "question-answering": (("question", "context", "answer"), ("question", "context", "answer", "answer_start")),
    "tagging": (("tokens", "tags"),),
    "images": (("image", "label"),),
    **dict.fromkeys(TEXT_TASKS, (("text",),)),
}


def data_files(task: str, data: Any, folder: Path, name: str, *, write: bool = True) -> tuple[str, ...]:
    """Return the paths of files with this data, which are written to a folder unless they are files already.

    Args:
        task: The task, which says what a tuple holds.
        data: Paths of files; or tuples, dicts, texts, a data frame or a mapping of columns.
        folder: Where files are written.
        name: The name of the files there, such as train.
        write: Only return the paths if False: another process writes them.

    Raises:
        DataError: An item has a form that the task cannot read.
    """
    if isinstance(data, str | os.PathLike):
        return (os.fspath(data),)
    if task == "forecasting":
        return _written(folder / f"{name}.csv", partial(_write_columns, data), write=write)
    items = list(_rows(data) if _has_columns(data) else data)
    if items and isinstance(items[0], os.PathLike if task in TEXT_TASKS else str | os.PathLike):
        return tuple(map(os.fspath, items))
    if task == "images":
        by_shape: dict[tuple[int, ...], list[tuple[Pixels, str]]] = {}
        for image, label in (_fields(task, index, item).values() for index, item in enumerate(items)):
            pixels = pixels_of(image, 3)
            gray = (pixels == pixels[:, :, :1]).all()
            pixels = pixels[:, :, 0] if gray else pixels
            by_shape.setdefault(pixels.shape, []).append((pixels, str(_plain(label))))
        paths = [folder / f"{name}-{'x'.join(map(str, shape))}.npz" for shape in by_shape]
        for path, group in zip(paths, by_shape.values(), strict=True):
            _written(path, partial(_write_images, group), write=write)
        return tuple(map(str, paths))
    rows = (_fields(task, index, item) for index, item in enumerate(items))
    return _written(folder / f"{name}.jsonl", partial(_write_rows, rows), write=write)


def _has_columns(data: Any) -> bool:
    return isinstance(data, Mapping) or hasattr(data, "columns")


def _columns(data: Any) -> dict[str, Iterable[Any]]:
    """Return the columns of a mapping or of any library's data frame, with its index where that holds times."""
    columns = {str(name): data[name] for name in getattr(data, "columns", data)}
    index: Any = getattr(data, "index", None)
    return {"date": index, **columns} if getattr(getattr(index, "dtype", None), "kind", "") == "M" else columns


def _rows(data: Any) -> Iterator[dict[str, Any]]:
    columns = _columns(data)
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))


def _fields(task: str, index: int, item: Any) -> dict[str, Any]:
    """Return an item as a dict."""
    if isinstance(item, Mapping):
        return dict(item)
    values = (item,) if isinstance(item, str) else tuple(item) if isinstance(item, Sequence) else ()
    for names in FIELDS[task]:
        if len(names) == len(values):
            return dict(zip(names, values, strict=True))
    forms = " or ".join(f"({', '.join(names)})" for names in FIELDS[task]) if task not in TEXT_TASKS else "texts"
    form = f"{type(item).__name__} of {len(values)}" if values else type(item).__name__
    raise DataError(f"item {index} of the data is a {form}; for {task}, items are {forms}, or dicts with these keys")


def _plain(value: Any) -> Any:
    """Return a value of numpy or pandas as one of Python; NaN, a missing value, becomes None."""
    if getattr(getattr(value, "dtype", None), "kind", "") in ("M", "m"):
        return str(value)
    value = value.tolist() if hasattr(value, "tolist") else value
    return None if isinstance(value, float) and value != value else value


def _written(path: Path, fill: Callable[[Path], None], *, write: bool) -> tuple[str, ...]:
    if write:
        with replacing(path) as partial:
            fill(partial)
    return (str(path),)


def _write_rows(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
        for row in rows:
            values = {str(name): _plain(value) for name, value in row.items()}
            file.write(json.dumps(values, ensure_ascii=False, default=_plain) + "\n")


def _write_images(group: Sequence[tuple[Pixels, str]], path: Path) -> None:
    with path.open("wb") as file:
        np.savez(file, x=np.stack([pixels for pixels, _ in group]), y=np.array([label for _, label in group]))


def _write_columns(data: Any, path: Path) -> None:
    if not _has_columns(data):
        raise DataError("series are columns of numbers: give a mapping such as {'close': prices}, or a data frame")
    columns = _columns(data)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        for values in zip(*columns.values(), strict=True):
            writer.writerow([_plain(value) for value in values])
