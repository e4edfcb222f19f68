"""One safetensors file: its header checked in words, its tensors mapped into memory and not copied.

    length of the header (8 bytes, little-endian), header (JSON), data

The header gives each tensor's dtype, shape and place in the data. The tensors lie one behind the other and fill the
data, so no file can claim more than it has.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError, safe_open
from torch import Tensor

from ...errors import unknown
from ..weights import WeightsError
from .objects import parse_object, quoted

MOST_HEADER = 100_000_000  # as the library has it
MOST_DIMENSIONS = 8
WIDTHS = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 1),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 2),
    **dict.fromkeys(("U32", "I32", "F32"), 4),
    **dict.fromkeys(("U64", "I64", "F64", "C64"), 8),
}  # bytes of a number, by its dtype
POINTER = b"version https://git-lfs"


class _Place(NamedTuple):
    begin: int
    end: int
    name: str


def read_names(path: Path) -> list[str]:
    """The names of a file's tensors, once all that its header says has been found true of the file."""
    try:
        return _names(path)
    except OSError as error:
        raise WeightsError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise WeightsError(f"{path} {error}") from None


def read_mapped(path: Path) -> dict[str, Tensor]:
    """Its tensors, read when they are first used; what is written to them stays in memory."""
    names = read_names(path)
    try:
        with safe_open(path, framework="pt") as file:
            return {name: _aligned(file.get_tensor(name)) for name in names}
    except (SafetensorError, OSError, RuntimeError, AttributeError, KeyError) as error:
        raise WeightsError(f"{path} cannot be read as safetensors: {error}") from None


def refuse_pointer(path: Path) -> None:
    """What a checkout without Git LFS has in place of a large file."""
    with path.open("rb") as file:
        if file.read(len(POINTER)) == POINTER:
            raise ValueError("is a Git LFS pointer and holds no weights; fetch them with: git lfs pull")


def _names(path: Path) -> list[str]:
    refuse_pointer(path)
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < 8:
            raise ValueError(f"is no safetensors file, or was cut short: it has {size} bytes")
        (length,) = struct.unpack("<Q", file.read(8))
        if length > min(MOST_HEADER, size - 8):
            most = f"{size - 8:,} bytes follow" if length <= MOST_HEADER else f"{MOST_HEADER:,} are the most"
            raise ValueError(
                f"is no safetensors file, or was cut short: it says {length:,} bytes of header, but {most}"
            )
        header = parse_object(file.read(length))
    header.pop("__metadata__", None)
    places = sorted(_place(name, said) for name, said in header.items())
    for problem in _gaps(places, size - 8 - length):
        raise ValueError(f"is damaged: {problem}")
    return list(header)


def _place(name: str, said: Any) -> _Place:
    """Where a tensor lies, which must be as many bytes as its shape and dtype take."""
    here = f"is damaged: {quoted(name)}"
    if not isinstance(said, dict) or said.keys() != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"{here} has not just a dtype, a shape and data_offsets, but {quoted(said)}")
    dtype, shape, place = said["dtype"], said["shape"], said["data_offsets"]
    if not isinstance(dtype, str) or dtype not in WIDTHS:
        raise ValueError(f"{here}: {unknown('dtype', dtype, WIDTHS)}")
    if not _whole(shape) or len(shape) > MOST_DIMENSIONS:
        raise ValueError(f"{here} has the shape {quoted(shape)}; at most {MOST_DIMENSIONS} whole numbers can be one")
    if not _whole(place) or len(place) != 2 or place[0] > place[1]:
        raise ValueError(f"{here} has the data_offsets {quoted(place)}, which are no begin and end")
    wanted = math.prod(shape) * WIDTHS[dtype]
    if place[1] - place[0] != wanted:
        raise ValueError(f"{here} is {quoted(shape)} of {dtype}, {wanted:,} bytes, but has {place[1] - place[0]:,}")
    return _Place(place[0], place[1], name)


def _whole(numbers: object) -> bool:
    return isinstance(numbers, list) and all(type(number) is int and 0 <= number < 2**63 for number in numbers)


def _gaps(places: list[_Place], size: int) -> Iterator[str]:
    """Where tensors overlap, leave bytes between them, or reach beyond the data."""
    end = 0
    for place in places:
        if place.end > size:
            yield f"{quoted(place.name)} ends at byte {place.end:,} of the data; was it cut short? There are {size:,}"
        if place.begin != end:
            how = "overlaps what lies before it" if place.begin < end else "leaves a hole before it"
            yield f"{quoted(place.name)} {how}: it begins at byte {place.begin:,}, not at {end:,}"
        end = place.end
    if end != size:
        yield f"{size - end:,} bytes stand behind its last tensor"


def _aligned(tensor: Tensor) -> Tensor:
    """A view where a number may lie; older files do not care where their data begins."""
    return tensor.clone() if tensor.data_ptr() % tensor.element_size() else tensor
