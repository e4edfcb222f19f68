"""A series as a person has it: a list of numbers, a list of rows of numbers, or an array; with gaps.

Shapes: L steps, C channels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError

FORMS = "a series is a list of numbers, a list of rows of numbers, or an array of one of these"


def newest(series: object, length: int) -> NDArray[np.float64]:
    """The newest steps: (L,) or (L, C) as it was given, with NaN for what was not observed. Or a DataError."""
    if not isinstance(series, np.ndarray | list | tuple):
        raise DataError(f"{FORMS}, not {type(series).__name__}")
    if isinstance(series, np.ndarray) and series.ndim not in (1, 2):
        raise DataError(f"{FORMS}, not an array of shape {series.shape}")
    if len(series) < length:
        raise DataError(f"this model forecasts from {length:,} steps, and it has only {len(series):,}; give as many")
    values = _numbers(series[-length:])
    if values.ndim not in (1, 2) or values.size == 0:
        raise DataError(f"{FORMS}; this one has the shape {values.shape}")
    if np.isinf(values).any():
        raise DataError("it holds an infinite number; None or NaN says that a step was not observed")
    return values


def _numbers(series: Any) -> NDArray[np.float64]:
    try:
        array = np.asarray(series)
    except ValueError:
        raise DataError(f"{FORMS}; the rows of this one differ in length") from None
    if array.dtype == object:  # numbers with None among them, or too long for a machine's
        array = np.array([_number(value) for value in array.flat]).reshape(array.shape)
    if array.dtype.kind not in "iuf":
        raise DataError(f"{FORMS}; this one holds {array.dtype}")
    return array.astype(np.float64)


def _number(value: Any) -> float:
    if value is None:
        return float("nan")
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise DataError(f"{FORMS}; this one holds {value!r:.100} ({type(value).__name__})")
    try:
        return float(value)
    except OverflowError:
        return float("inf")
