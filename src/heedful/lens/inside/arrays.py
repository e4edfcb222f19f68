"""The arrays of a document, by name: written small, and readable wherever there is base64 and zlib."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

Kind = Literal["float32", "float16", "uint8", "decimal4", "decimal3"]
TYPES: dict[Kind, str] = {  # little-endian
    "float32": "<f4",
    "float16": "<f2",
    "uint8": "|u1",
    "decimal4": "<u2",
    "decimal3": "<u2",
}
DIGITS: dict[Kind, int] = {"decimal4": 4, "decimal3": 3}  # after the point: they count units of 0.0001, or 0.001
LEVEL = 4  # of deflating: the next take twice as long and save a hundredth
LARGEST: dict[Kind, float] = {"uint8": 255, "decimal4": 6.5535, "decimal3": 65.535}
LARGEST_HALF = float(np.finfo(np.float16).max)


class Arrays:
    """Arrays that were put here are called a0, a1, … in the order in which they came."""

    def __init__(self) -> None:
        self._held: list[tuple[NDArray[Any], Kind]] = []

    def __len__(self) -> int:
        return len(self._held)

    def put(self, values: Tensor | ArrayLike, kind: Kind = "float32") -> str:
        """Keep a copy and give its name. What is too large for float16 is kept as float32 instead, and says so."""
        array = _plain(values)
        most = LARGEST.get(kind)
        if most is not None and array.size and not (array.min() >= 0 and array.max() <= most):
            raise ValueError(f"{kind} holds 0 to {most}, but these are {array.min()} to {array.max()}")
        if kind == "float16" and np.abs(array[np.isfinite(array)]).max(initial=0) > LARGEST_HALF:
            kind = "float32"
        if most is not None:
            array = np.rint(array.astype(np.float64) * 10 ** DIGITS.get(kind, 0))
        self._held.append((np.array(array, dtype=TYPES[kind]), kind))
        return f"a{len(self._held) - 1}"

    def to_dict(self, *, with_data: bool) -> dict[str, dict[str, Any]]:
        """Shape and type of each; `with_data` also base64 of its deflated bytes."""
        return {
            f"a{place}": {"shape": list(array.shape), "type": kind} | ({"data": _packed(array)} if with_data else {})
            for place, (array, kind) in enumerate(self._held)
        }


def unpacked(array: Mapping[str, Any]) -> NDArray[Any]:
    """The values of one entry of `to_dict(with_data=True)`."""
    kind, shape, data = array["type"], array["shape"], zlib.decompress(base64.b64decode(array["data"]))
    if kind not in DIGITS:
        return np.frombuffer(data, dtype=TYPES[kind]).reshape(shape)
    low, high = np.frombuffer(data, dtype=np.uint8).reshape(2, -1)
    return ((low + 256.0 * high) / 10 ** DIGITS[kind]).astype(np.float32).reshape(shape)


def _plain(values: Tensor | ArrayLike) -> NDArray[Any]:
    if not isinstance(values, Tensor):
        return np.asarray(values)
    whole = values.detach().cpu()
    return (whole.float() if whole.is_floating_point() else whole).numpy()  # numpy has no bf16


def _packed(array: NDArray[Any]) -> str:
    """Whole numbers of two bytes as all the low ones, then all the high ones: most of those are alike."""
    plain = array.view(np.uint8).reshape(-1, 2).T if array.dtype == np.uint16 else array
    return base64.b64encode(zlib.compress(plain.tobytes(), LEVEL)).decode("ascii")
