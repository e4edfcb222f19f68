"""`heedful predict` of what is no text: images in files and folders, series in tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ..errors import ConfigError, DataError
from ..tasks.forecasting import SeriesForecaster
from ..tasks.forecasting.evaluation import forecast_files
from ..tasks.images import ImageClassifier
from .answering import Form, one_line
from .words import complain

ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff")
CHUNK = 256  # images asked about at once


def predict_images(model: ImageClassifier, given: str, form: Form, stream: BinaryIO) -> None:
    """A line for each image: its path, its class and, where asked for, how likely it is."""
    refused = 0
    paths = _images(_existing(given))
    for first in range(0, len(paths), CHUNK):
        several = paths[first : first + CHUNK]
        faults = {path: why for path in several if (why := model.why_not(path))}
        answers = iter(model.predict([path for path in several if path not in faults]))
        for path in several:
            if path in faults:
                refused += 1
                complain(faults[path])
                continue
            shares = next(answers)
            label, share = next(iter(shares.items()))
            said = {"image": str(path), "label": label, "probabilities": shares}
            columns = [one_line(str(path)), one_line(label), *([f"{share:.4f}"] if form == "scores" else [])]
            line = json.dumps(said, ensure_ascii=False) if form == "json" else "\t".join(columns)
            stream.write(f"{line}\n".encode())
        stream.flush()
    if refused:
        raise DataError(f"{refused:,} of {len(paths):,} images could not be read")


def predict_series(model: SeriesForecaster, given: str, form: Form, stream: BinaryIO) -> None:
    """A line for each column of each series: their names, then the steps that follow."""
    if form == "scores":
        raise ConfigError("--scores is for answers with probabilities; a forecast has none")
    for found in forecast_files(model, [_existing(given)]):
        if form == "json":
            stream.write(f"{json.dumps(found, ensure_ascii=False)}\n".encode())
            continue
        for column, values in found["forecast"].items():
            cells = [one_line(str(found["series"])), one_line(column), *(f"{value:.6g}" for value in values)]
            stream.write(("\t".join(cells) + "\n").encode())


def _existing(given: str) -> Path:
    path = Path(given)
    if given == "-" or not path.exists():
        raise DataError(f"{given}: there is no such file; this model reads files, not text")
    return path


def _images(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    found = sorted(inner for inner in _walk(path) if inner.suffix.lower() in ENDINGS)
    if not found:
        raise DataError(f"{path}: there is no image in this folder ({', '.join(ENDINGS)})")
    return found


def _walk(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())
