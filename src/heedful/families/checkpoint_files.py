"""Files of weights from strangers, read with no size believed and nothing run: JSON, safetensors, torch's pickles."""

import io
import json
import math
import os
import pickletools
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from ..errors import HeedfulError, unknown
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
