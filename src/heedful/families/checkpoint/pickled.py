"""torch's own files of weights: pickles, read without running what they say.

Before torch reads one, its pickle is taken apart: it may name what makes tensors, and nothing else. Then it is read
without its data, to see what it would take. torch itself would believe any size.
"""

from __future__ import annotations

import io
import pickletools
import warnings
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..defaults import PublishedWarning
from ..weights import WeightsError
from .mapped import refuse_pointer
from .objects import quoted

MOST_PICKLE = 64 * 2**20  # a tensor takes about 150 bytes, without its data
MOST_NAMES = 8  # how many names the same data may have on average; tied weights have up to four
ZIP = b"PK\x03\x04"
KINDS = ("Float", "Half", "BFloat16", "Double", "Long", "Int", "Short", "Char", "Byte", "Bool")
NAMEABLE = {
    "collections OrderedDict",
    "torch._utils _rebuild_tensor",
    "torch._utils _rebuild_tensor_v2",
    "torch._utils _rebuild_parameter",
    *(f"torch {kind}Storage" for kind in KINDS),
}


def read_pickled(path: Path) -> dict[str, Tensor]:
    """Its tensors; mapped, not copied, if torch 1.6 or a later one wrote it."""
    warnings.warn(
        f"{path.name} is a pickle; it is read without running what it says. Better convert it to safetensors",
        PublishedWarning,
        stacklevel=2,
    )
    from torch._subclasses.fake_tensor import FakeTensorMode  # takes a while to import

    try:
        refuse_pointer(path)
        zipped = _is_zip(path)
        for pickle in _zipped(path) if zipped else _in_a_row(path):
            _refuse_strange(pickle)
        with FakeTensorMode(allow_non_fake_inputs=True):
            _refuse_large(_load(path), path.stat().st_size)
        return _load(path, mmap=zipped)
    except OSError as error:
        raise WeightsError(f"{path} cannot be read: {error.strerror}") from None
    except Exception as error:  # whatever torch says to a damaged one
        raise WeightsError(f"{path} {error}") from None


def _load(path: Path, mmap: bool = False) -> dict[str, Tensor]:
    try:
        found = torch.load(path, map_location="cpu", weights_only=True, mmap=mmap)
    except Exception as error:
        raise ValueError(f"cannot be read as weights of torch: {quoted(str(error))}") from None
    if not isinstance(found, dict):
        raise ValueError(f"holds no weights by name, but {type(found).__name__}")
    for name, tensor in found.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise ValueError(f"holds not only tensors by name: {quoted(name)} is {type(tensor).__name__}")
    return {name: tensor.detach() if isinstance(tensor, nn.Parameter) else tensor for name, tensor in found.items()}


def _is_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(ZIP)) == ZIP


def _zipped(path: Path) -> list[Any]:
    try:
        with zipfile.ZipFile(path) as archive:
            records = {record.filename: record for record in archive.infolist()}
            if packed := [name for name, record in records.items() if record.compress_type != zipfile.ZIP_STORED]:
                raise ValueError(f"holds compressed parts, which torch never writes: {quoted(packed[0])}")
            pickles = [name for name in records if name.rpartition("/")[2] == "data.pkl"]
            if len(pickles) != 1:
                raise ValueError(f"is an archive with {len(pickles)} of data.pkl, not one")
            if records[pickles[0]].file_size > MOST_PICKLE:
                raise ValueError(f"holds a pickle of more than {MOST_PICKLE:,} bytes")
            return [io.BytesIO(archive.read(pickles[0]))]
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"is a damaged archive, or was cut short: {error}") from None


def _in_a_row(path: Path) -> list[Any]:
    """Before torch 1.6: a magic number, a version, the machine, the weights, the order of their data; then the data."""
    with path.open("rb") as file:
        return [io.BytesIO(file.read(MOST_PICKLE))] * 5  # each is read on from where the one before it ends


def _refuse_strange(pickle: Any) -> None:
    try:
        for operation, argument, _ in pickletools.genops(pickle):
            if operation.name in ("INST", "STACK_GLOBAL", "EXT1", "EXT2", "EXT4"):
                raise ValueError(f"holds {operation.name}, which torch never writes")
            if operation.name == "GLOBAL" and argument not in NAMEABLE:
                raise ValueError(f"names {quoted(argument)}, which is no part of weights; it was not read")
    except (ValueError, IndexError, OverflowError, MemoryError) as error:
        if str(error).startswith(("holds", "names")):
            raise
        raise ValueError("is no file of torch's, or a damaged one: its pickle makes no sense") from None


def _refuse_large(claimed: dict[str, Tensor], size: int) -> None:
    """What would take more than the file holds: data that is not there, or a few numbers that claim to be many."""
    taken = sum(tensor.numel() * tensor.element_size() for tensor in claimed.values())
    for name, tensor in claimed.items():
        held = tensor.untyped_storage().nbytes()
        if tensor.numel() * tensor.element_size() > held or held > size or taken > MOST_NAMES * size:
            raise ValueError(
                f"is damaged, or was cut short: it has {size:,} bytes, but {quoted(name)} is {tuple(tensor.shape)} of "
                f"{held:,} bytes, and all together take {taken:,}"
            )
