"""`heedful predict` of what is no text: images in files and folders, series in tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from torch import Tensor

from ..data.image_sets import ENDINGS, images_in
from ..errors import ConfigError, DataError
from ..tasks.forecasting import SeriesForecaster
from ..tasks.forecasting.task import forecast_files
from ..tasks.images import ImageClassifier
from .console import complain
from .output import Form, one_line


def predict_images(model: ImageClassifier, name: str, form: Form, stream: BinaryIO) -> str | None:
    """A line for each image: its path, its class and, where asked for, how likely it is; what to say at the end.

    One that cannot be read is named; its line has the path alone, and in JSON the reason.
    """
    refused = 0
    paths = _images(_existing(name))
    for first in range(0, len(paths), model.batch_size):
        several = paths[first : first + model.batch_size]
        prepared: dict[Path, Tensor] = {}
        faults: dict[Path, str] = {}
        for path in several:
            try:
                prepared[path] = model.prepared(path)
            except DataError as error:
                faults[path] = str(error)
                complain(str(error))
        answers = dict(zip(prepared, model.look(list(prepared.values())), strict=True))
        for path in several:
            stream.write(f"{_row(path, answers.get(path, {}), faults.get(path), form)}\n".encode())
        stream.flush()
        refused += len(faults)
    return f"{refused:,} of {len(paths):,} images could not be read" if refused else None


def _row(path: Path, shares: dict[str, float], fault: str | None, form: Form) -> str:
    label, share = next(iter(shares.items()), ("", None))
    if form == "json":
        result = {"error": fault} if fault else {"label": label, "probabilities": shares}
        return json.dumps({"image": str(path), **result}, ensure_ascii=False)
    columns = [one_line(str(path)), one_line(label)]
    return "\t".join([*columns, "" if share is None else f"{share:.4f}"] if form == "scores" else columns)


def predict_series(model: SeriesForecaster, name: str, form: Form, stream: BinaryIO) -> str | None:
    """A line for each column of each series: their names, then the steps that follow."""
    if form == "scores":
        raise ConfigError("--scores is for answers with probabilities; a forecast has none")
    for series in forecast_files(model, [_existing(name)]):
        if form == "json":
            stream.write(f"{json.dumps(series, ensure_ascii=False)}\n".encode())
            continue
        for column, values in series["forecast"].items():
            cells = [one_line(str(series["series"])), one_line(column), *(f"{value:.6g}" for value in values)]
            stream.write(("\t".join(cells) + "\n").encode())
    return None


def _existing(name: str) -> Path:
    path = Path(name)
    if name == "-" or not path.exists():
        raise DataError(f"{name}: there is no such file; this model reads files, not text")
    return path


def _images(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    images, _ = images_in(path)
    if not images:
        raise DataError(f"{path}: there is no image in this folder ({', '.join(ENDINGS)})")
    return images


PREDICTORS: dict[str, Callable[[Any, str, Form, BinaryIO], str | None]] = {  # by `input_kind`
    "image": predict_images,
    "series": predict_series,
}
