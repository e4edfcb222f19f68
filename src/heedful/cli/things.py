"""`heedful predict` of what is no text: images in files and folders, series in tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import BinaryIO

from torch import Tensor

from ..data.image_sets.files import ENDINGS, images_in
from ..errors import ConfigError, DataError
from ..tasks.forecasting import SeriesForecaster
from ..tasks.forecasting.task import forecast_files
from ..tasks.images import ImageClassifier
from .answering import Form, one_line
from .words import complain


def predict_images(model: ImageClassifier, given: str, form: Form, stream: BinaryIO) -> str | None:
    """A line for each image: its path, its class and, where asked for, how likely it is; what to say at the end.

    One that cannot be read is named; its line has the path alone, and in JSON the reason.
    """
    refused = 0
    paths = _images(_existing(given))
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
            stream.write(f"{_shown(path, answers.get(path, {}), faults.get(path), form)}\n".encode())
        stream.flush()
        refused += len(faults)
    return f"{refused:,} of {len(paths):,} images could not be read" if refused else None


def _shown(path: Path, shares: dict[str, float], fault: str | None, form: Form) -> str:
    label, share = next(iter(shares.items()), ("", None))
    if form == "json":
        said = {"error": fault} if fault else {"label": label, "probabilities": shares}
        return json.dumps({"image": str(path), **said}, ensure_ascii=False)
    columns = [one_line(str(path)), one_line(label)]
    return "\t".join([*columns, "" if share is None else f"{share:.4f}"] if form == "scores" else columns)


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
    found, _ = images_in(path)
    if not found:
        raise DataError(f"{path}: there is no image in this folder ({', '.join(ENDINGS)})")
    return found
