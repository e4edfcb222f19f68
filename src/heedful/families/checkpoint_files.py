"""Files of weights from strangers, read with no size believed and nothing run: JSON, safetensors, torch's pickles."""

import io
import json
import pickletools
import struct
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from ..errors import HeedfulError
from .hf_config import PublishedWarning
from .weights import NAMED, WeightsError

MOST_BYTES = 8 * 2**20  # of a config; the largest published ones have a few hundred thousand
QUOTED = 60  # how many characters of a stranger's text a message repeats


class LayoutError(HeedfulError, ValueError):
    """A folder or a file that is not as Hugging Face's layout has it, or holds what is not read here."""


def read_object(path: Path, most_bytes: int = MOST_BYTES) -> dict[str, Any]:
    """A JSON file that holds an object."""
    try:
        with path.open("rb") as file:
            raw = file.read(most_bytes + 1)
    except OSError as error:
        raise LayoutError(f"{path} cannot be read: {error.strerror}") from None
    if len(raw) > most_bytes:
        raise LayoutError(f"{path} has more than the {most_bytes:,} bytes that such a file may have")
    try:
        return parse_object(raw)
    except ValueError as error:
        raise LayoutError(f"{path} {error}") from None


def parse_object(raw: bytes) -> dict[str, Any]:
    """The object that bytes hold, or a ValueError that goes on after the name of a file."""
    try:
        found = json.loads(raw.decode("utf-8"), object_pairs_hook=_once)
    except UnicodeDecodeError:
        raise ValueError("holds no JSON: it is no UTF-8") from None
    except RecursionError:
        raise ValueError("holds JSON that is nested too deeply to be read") from None
    except ValueError as error:
        raise ValueError(f"holds no JSON, or a damaged one: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"holds JSON, but not an object: {quoted(found)}")
    return found


def quoted(value: object) -> str:
    """A stranger's value for a message, not the whole of it where it is long."""
    text = repr(value)
    return text if len(text) <= QUOTED else f"{text[:QUOTED]}…"


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{quoted(name)} stands in it twice")
        found[name] = value
    return found


LFS_POINTER = b"version https://git-lfs"


def read_mapped(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file, mapped from disk; writing to them changes only memory.

    The library compares the header with the file, byte by byte, before any tensor is read.
    """
    try:
        refuse_pointer(path)
        with safe_open(path, framework="pt") as file:
            names = file.keys()
            tensors = {name: _aligned(file.get_tensor(name)) for name in names}
        with path.open("rb") as raw:
            (length,) = struct.unpack("<Q", raw.read(8))
            parse_object(raw.read(length))  # refuses a repeated name, of which the library reads the last
    except OSError as error:
        raise WeightsError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise WeightsError(f"{path} {error}") from None
    except (SafetensorError, RuntimeError, AttributeError, KeyError) as error:
        raise WeightsError(f"{path} is no safetensors file, or is damaged or cut short: {error!s:.200}") from None
    return tensors


def refuse_pointer(path: Path) -> None:
    """Raise for the small file that a checkout without Git LFS has in place of a large one."""
    with path.open("rb") as file:
        if file.read(len(LFS_POINTER)) == LFS_POINTER:
            raise ValueError("is a Git LFS pointer and holds no weights; fetch them with: git lfs pull")


def _aligned(tensor: Tensor) -> Tensor:
    """A view where a number may lie; older files do not care where their data begins."""
    return tensor.clone() if tensor.data_ptr() % tensor.element_size() else tensor


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


MOST_INDEX = 64 * 2**20  # the largest published one, of 91,991 tensors, has 9 MB


@dataclass(frozen=True)
class Form:
    """A form in which weights are kept: whole, or in parts with an index of where each tensor is."""

    whole: str
    read: Callable[[Path], dict[str, Tensor]]

    @property
    def index(self) -> str:
        return f"{self.whole}.index.json"


SAFETENSORS = Form("model.safetensors", read_mapped)
FORMS = (SAFETENSORS, Form("pytorch_model.bin", read_pickled))  # the first that is there is read


def read_tensors(folder: Path) -> dict[str, Tensor] | None:
    """The tensors of a folder, or None where there are none in a form that is read here."""
    for form in FORMS:
        if (folder / form.whole).is_file():
            return form.read(folder / form.whole)
        if (folder / form.index).is_file():
            return _read_parts(folder, form)
    return None


def _read_parts(folder: Path, form: Form) -> dict[str, Tensor]:
    index = folder / form.index
    places = read_object(index, MOST_INDEX).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise LayoutError(f"{index} holds no weight_map that says which file each tensor is in")
    parts: dict[str, set[str]] = {}
    for name, part in places.items():
        parts.setdefault(_plain(part, form, index), set()).add(name)
    if absent := [part for part in parts if not (folder / part).is_file()]:
        raise LayoutError(f"{folder} lacks {len(absent)} of the {len(parts)} files of its weights: {some_of(absent)}")
    tensors: dict[str, Tensor] = {}
    for part, names in parts.items():
        found = form.read(folder / part)
        if names != found.keys():
            lacks, has = sorted(names - found.keys()), sorted(found.keys() - names)
            raise WeightsError(
                f"{folder / part} does not hold what {index.name} says: "
                + (f"it lacks {some_of(lacks)}" if lacks else f"it also holds {some_of(has)}")
            )
        tensors |= found
    return tensors


def _plain(part: object, form: Form, index: Path) -> str:
    """The name of a file in the same folder, and of nothing else."""
    ending = Path(form.whole).suffix
    if not isinstance(part, str) or not part.endswith(ending) or any(mark in part for mark in "/\\:\0"):
        raise LayoutError(
            f"{index} names {quoted(part)}; parts are files of the same folder, such as {part_name(form.whole, 1, 2)}"
        )
    return part


def part_name(whole: str, place: int, count: int) -> str:
    """The name of one of several files that together are what this one would be."""
    stem, _, ending = whole.rpartition(".")
    return f"{stem}-{place:05}-of-{count:05}.{ending}"


def some_of(names: list[str], most: int = NAMED, show: Callable[[str], str] = quoted) -> str:
    """The first few names for a message, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(show, names[:most])) + more
