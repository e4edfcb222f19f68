"""A forecaster at work: the newest steps of a series, the patches they are read in, and the steps that follow."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from ...data.series import Series, read_series
from ...data.series.dates import shown
from ...errors import DataError, unknown
from ...lens.trace import Trace, trace, twin
from ..forecasting import SeriesForecaster
from ..forecasting.predictor import newest
from ..predictor import ItemError
from .assembling import Notes, only, token


def see_series(forecaster: SeriesForecaster, item: Any, notes: Notes, words: Mapping[str, Any]) -> dict[str, Any]:
    """Of a table in a file, or whatever else `predict` takes for a series: its last window, by one column.

    The first `series` of a file and the first `column` are shown, unless others are named.
    """
    only(words, forecaster, "series", "column")
    length = forecaster.module.context_length
    found = _in_file(forecaster, Path(item), words) if isinstance(item, str | os.PathLike) else None
    values = item if found is None else found.values
    names = forecaster.settings.columns if found is None else found.columns
    place = _place(words.get("column"), names)
    try:
        (forecast,) = forecaster.predict([values])
    except ItemError as error:
        raise DataError(f"{item}: {error.reason}" if found else error.reason) from None
    context = newest(values, length).reshape(length, -1)[:, place].tolist()
    patches = _patches(forecaster)
    return {
        "kind": "series",
        "question": None if found is None else str(item),
        "sequences": {"source": [token(f"{begin + 1}–{end}") for begin, end in patches]},
        "series": {
            "name": "" if found is None else found.name,
            "column": names[place] if names else "",
            "times": None if found is None or found.times is None else [shown(time) for time in found.times[-length:]],
            "context": [None if value != value else value for value in context],  # a gap is NaN, unlike itself
            "forecast": [row[place] if isinstance(row, list) else row for row in forecast],
            "truth": None,
            "patches": patches,
        },
        **notes.inside(forecaster.module, _read(forecaster, values, place)),
    }


def _in_file(forecaster: SeriesForecaster, path: Path, words: Mapping[str, Any]) -> Series:
    """The series that is asked for, or the first; that there are others is said."""
    name = words.get("series")
    found = read_series([path], columns=forecaster.settings.columns or None, names=None if name is None else [name])
    first = found[0]
    if len(found) > 1:
        warnings.warn(f"{path}: of {len(found):,} series {first.name!r} is shown", stacklevel=2)
    if len(first.columns) > 1 and "column" not in words:
        warnings.warn(f"{path}: of {len(first.columns):,} columns {first.columns[0]!r} is shown", stacklevel=2)
    return first


def _place(name: str | None, names: Sequence[str]) -> int:
    if name is None:
        return 0
    if name not in names:
        raise DataError(unknown("column", name, names) if names else f"there is no column {name!r}: none has a name")
    return names.index(name)


@torch.inference_mode()
def _read(forecaster: SeriesForecaster, values: Any, place: int) -> Trace:
    """What happened to the row that a column is read in: alone, or with the others."""
    module = twin(forecaster.module)
    rows = torch.from_numpy(forecaster.prepared(values).rows)
    row = rows[place // module.embedding.n_channels][None].to(next(module.parameters()).device)
    observed = ~row.isnan().any(dim=2)
    with trace(module) as seen:
        module(row, None if observed.all() else observed)
    return seen


def _patches(forecaster: SeriesForecaster) -> list[list[int]]:
    """The steps from and to which each patch goes, counted in the context; the oldest may be in none."""
    length, embedding = forecaster.module.context_length, forecaster.module.embedding
    first = length - embedding.filling(length)
    return [
        [begin, begin + embedding.patch_length]
        for begin in range(first, length - embedding.patch_length + 1, embedding.stride)
    ]
