"""The arrays of a document, by name: written small, and readable wherever there is base64 and zlib."""

from __future__ import annotations

import base64
import zlib
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

Kind = Literal["float32", "float16", "uint8"]
TYPES: dict[Kind, str] = {"float32": "<f4", "float16": "<f2", "uint8": "|u1"}  # little-endian
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
        if kind == "uint8" and array.size and not (array.min() >= 0 and array.max() <= 255):
            raise ValueError(f"uint8 holds 0 to 255, but these are {array.min()} to {array.max()}")
        if kind == "float16" and np.abs(array[np.isfinite(array)]).max(initial=0) > LARGEST_HALF:
            kind = "float32"
        whole = np.rint(array) if kind == "uint8" else array
        self._held.append((np.array(whole, dtype=TYPES[kind]), kind))
        return f"a{len(self._held) - 1}"

    def to_dict(self, *, with_data: bool) -> dict[str, dict[str, Any]]:
        """Shape and type of each; `with_data` also base64 of its deflated bytes."""
        return {
            f"a{place}": {"shape": list(array.shape), "type": kind} | ({"data": _packed(array)} if with_data else {})
            for place, (array, kind) in enumerate(self._held)
        }


def _plain(values: Tensor | ArrayLike) -> NDArray[Any]:
    if not isinstance(values, Tensor):
        return np.asarray(values)
    whole = values.detach().cpu()
    return (whole.float() if whole.is_floating_point() else whole).numpy()  # numpy has no bf16


def _packed(array: NDArray[Any]) -> str:
    return base64.b64encode(zlib.compress(array.tobytes())).decode("ascii")
