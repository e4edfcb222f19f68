"""Reads untrusted weight files (JSON, safetensors, torch pickles) without running code or trusting stated sizes."""

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

MAX_CONFIG_BYTES = 8 * 2**20  # the largest published configs have a few hundred thousand
MAX_QUOTED = 60  # how many characters of a file's text a message repeats


class LayoutError(HeedfulError, ValueError):
    """A folder or a file that does not follow Hugging Face's layout, or has contents that Heedful does not read."""


def read_object(path: Path, max_bytes: int = MAX_CONFIG_BYTES) -> dict[str, Any]:
    """Read a JSON file that holds an object of at most `max_bytes` bytes."""
    try:
        with path.open("rb") as file:
            raw = file.read(max_bytes + 1)
    except OSError as error:
        raise LayoutError(f"{path} cannot be read: {error.strerror}") from None
    if len(raw) > max_bytes:
        raise LayoutError(f"{path} has more than the {max_bytes:,} bytes that are allowed")
    try:
        return parse_object(raw)
    except ValueError as error:
        raise LayoutError(f"{path} {error}") from None


def parse_object(raw: bytes) -> dict[str, Any]:
    """Parse a JSON object, or raise ValueError with a message that continues the name of the file."""
    try:
        value = json.loads(raw.decode("utf-8"), object_pairs_hook=_unique)
    except UnicodeDecodeError:
        raise ValueError("does not contain JSON: it is not UTF-8") from None
    except RecursionError:
        raise ValueError("contains JSON that is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"does not contain valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"contains JSON, but not an object: {quoted(value)}")
    return value


def quoted(value: object) -> str:
    """Return the repr of a value for a message, cut if it is long."""
    text = repr(value)
    return text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]}…"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise ValueError(f"the key {quoted(name)} occurs twice")
        values[name] = value
    return values


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
        raise WeightsError(f"{path} is not a safetensors file, or is damaged or truncated: {error!s:.200}") from None
    return tensors


def refuse_pointer(path: Path) -> None:
    """Raise for the small file that a checkout without Git LFS has in place of a large one."""
    if _begins(path, LFS_POINTER):
        raise ValueError("is a Git LFS pointer and contains no weights; fetch them with: git lfs pull")


def _begins(path: Path, magic: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(magic)) == magic


def _aligned(tensor: Tensor) -> Tensor:
    """Return an aligned tensor; the data of older files may begin at any byte."""
    return tensor.clone() if tensor.data_ptr() % tensor.element_size() else tensor


MAX_PICKLE_BYTES = 64 * 2**20  # a tensor takes about 150 bytes, without its data
MAX_TUPLES = 8  # levels of tuples within tuples; torch writes three
MAX_ALIASES = 8  # how many names the same data may have on average; tied weights have up to four
ZIP_MAGIC = b"PK\x03\x04"
STORAGES = ("Float", "Half", "BFloat16", "Double", "Long", "Int", "Short", "Char", "Byte", "Bool")
ALLOWED_GLOBALS = {
    "collections OrderedDict",
    "torch._utils _rebuild_tensor",
    "torch._utils _rebuild_tensor_v2",
    "torch._utils _rebuild_parameter",
    *(f"torch {kind}Storage" for kind in STORAGES),
}


def read_pickled(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a pickle without running it; they are mapped if torch 1.6 or later wrote the file."""
    warnings.warn(
        f"{path.name} is a pickle; it is read without running its code. Prefer to convert it to safetensors",
        PublishedWarning,
        stacklevel=2,
    )
    from torch._subclasses.fake_tensor import FakeTensorMode  # takes a while to import

    try:
        refuse_pointer(path)
        zipped = _begins(path, ZIP_MAGIC)
        for pickle in _zipped_pickles(path) if zipped else _legacy_pickles(path):
            _refuse_code(pickle)
        with FakeTensorMode(allow_non_fake_inputs=True):
            _refuse_large(_load(path), path.stat().st_size)
        return _load(path, mmap=zipped)
    except OSError as error:
        raise WeightsError(f"{path} cannot be read: {error.strerror}") from None
    except Exception as error:  # torch raises many types for damaged files
        raise WeightsError(f"{path} {error}") from None


def _load(path: Path, mmap: bool = False) -> dict[str, Tensor]:
    try:
        tensors = torch.load(path, map_location="cpu", weights_only=True, mmap=mmap)
    except Exception as error:
        raise ValueError(f"cannot be read as torch weights: {quoted(str(error))}") from None
    if not isinstance(tensors, dict):
        raise ValueError(f"does not contain a dict of tensors, but a {type(tensors).__name__}")
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise ValueError(f"is not a dict of tensors only: {quoted(name)} is {type(tensor).__name__}")
    return {name: tensor.detach() if isinstance(tensor, nn.Parameter) else tensor for name, tensor in tensors.items()}


def _zipped_pickles(path: Path) -> list[Any]:
    try:
        with zipfile.ZipFile(path) as archive:
            records = {record.filename: record for record in archive.infolist()}
            if packed := [name for name, record in records.items() if record.compress_type != zipfile.ZIP_STORED]:
                raise ValueError(f"holds compressed parts, which torch never writes: {quoted(packed[0])}")
            pickles = [name for name in records if name.rpartition("/")[2] == "data.pkl"]
            if len(pickles) != 1:
                raise ValueError(f"is an archive with {len(pickles)} of data.pkl, not one")
            if records[pickles[0]].file_size > MAX_PICKLE_BYTES:
                raise ValueError(f"holds a pickle of more than {MAX_PICKLE_BYTES:,} bytes")
            return [io.BytesIO(archive.read(pickles[0]))]
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"is a damaged or truncated archive: {error}") from None


def _legacy_pickles(path: Path) -> list[Any]:
    """Return the five pickles of torch before 1.6: a magic number, version, machine, weights and data order."""
    with path.open("rb") as file:
        return [io.BytesIO(file.read(MAX_PICKLE_BYTES))] * 5  # each continues where the one before ends


def _refuse_code(pickle: Any) -> None:
    tuples = _NestedTuples()
    try:
        for operation, argument, _ in pickletools.genops(pickle):
            tuples.follow(operation, argument)
            if operation.name in ("INST", "STACK_GLOBAL", "EXT1", "EXT2", "EXT4"):
                raise ValueError(f"holds {operation.name}, which torch never writes")
            if operation.name == "GLOBAL" and argument not in ALLOWED_GLOBALS:
                raise ValueError(f"names {quoted(argument)}, which is not part of weights; it was not read")
    except (ValueError, IndexError, OverflowError, MemoryError) as error:
        if str(error).startswith(("holds", "names")):
            raise
        raise ValueError("is not a torch file, or is damaged: its pickle is invalid") from None


class _NestedTuples:
    """Follows the stack of a pickle to find tuples within tuples, each of which may be stored once and used twice.

    To hash such a tuple, or to print it, takes time that doubles with each level.
    """

    def __init__(self) -> None:
        self._stack: list[int] = []  # how deep each object is nested; -1 for a mark
        self._memo: dict[int, int] = {}

    def follow(self, operation: pickletools.OpcodeInfo, argument: Any) -> None:
        """Apply an operation; ValueError for a tuple that is nested too deeply, IndexError for an empty stack."""
        name, before = operation.name, operation.stack_before
        if name.endswith("PUT") or name == "MEMOIZE":
            self._memo[len(self._memo) if argument is None else int(argument)] = self._stack[-1]
            return
        n_before, parts = len(before), list[int]()
        if pickletools.markobject in before:
            n_before = before.index(pickletools.markobject)
            while (depth := self._stack.pop()) >= 0:
                parts.append(depth)
        parts += [self._stack.pop() for _ in range(n_before)]
        if name.endswith("GET"):
            self._stack.append(self._memo.get(int(argument), 0))
        elif name == "DUP":
            self._stack += 2 * parts
        elif name == "MARK":
            self._stack.append(-1)
        else:
            depth = 1 + max(parts, default=0) if name.startswith("TUPLE") else 0
            if depth > MAX_TUPLES:
                raise ValueError(f"holds tuples that are nested more than {MAX_TUPLES} deep, which torch never writes")
            self._stack += [depth] * len(operation.stack_after)


def _refuse_large(tensors: dict[str, Tensor], size: int) -> None:
    """Raise for tensors that would take more memory than the file has: missing data, or numbers expanded to many."""
    total = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    for name, tensor in tensors.items():
        stored = tensor.untyped_storage().nbytes()
        if tensor.numel() * tensor.element_size() > stored or stored > size or total > MAX_ALIASES * size:
            raise ValueError(
                f"is damaged or truncated: it has {size:,} bytes, but {quoted(name)} is {tuple(tensor.shape)} of "
                f"{stored:,} bytes, and all tensors take {total:,}"
            )


MAX_NAME_BYTES = 255  # of a file, in most file systems
MAX_INDEX_BYTES = 64 * 2**20  # the largest published index, of 91,991 tensors, has 9 MB


@dataclass(frozen=True)
class WeightFormat:
    """A file format of weights: one file, or several with an index of which file holds each tensor."""

    whole: str
    read: Callable[[Path], dict[str, Tensor]]

    @property
    def index(self) -> str:
        return f"{self.whole}.index.json"


SAFETENSORS = WeightFormat("model.safetensors", read_mapped)
FORMATS = (SAFETENSORS, WeightFormat("pytorch_model.bin", read_pickled))  # in order of preference


def read_tensors(folder: Path) -> dict[str, Tensor] | None:
    """Read the tensors of a folder, or return None if it has none in a supported format."""
    for weight_format in FORMATS:
        if (folder / weight_format.whole).is_file():
            return weight_format.read(folder / weight_format.whole)
        if (folder / weight_format.index).is_file():
            return _read_parts(folder, weight_format)
    return None


def _read_parts(folder: Path, weight_format: WeightFormat) -> dict[str, Tensor]:
    index = folder / weight_format.index
    places = read_object(index, MAX_INDEX_BYTES).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise LayoutError(f"{index} has no weight_map, which says which file each tensor is in")
    parts: dict[str, set[str]] = {}
    for name, part in places.items():
        parts.setdefault(_checked_part(part, weight_format, index), set()).add(name)
    if absent := [part for part in parts if not (folder / part).is_file()]:
        raise LayoutError(f"{folder} lacks {len(absent)} of the {len(parts)} files of its weights: {some_of(absent)}")
    tensors: dict[str, Tensor] = {}
    for part, names in parts.items():
        part_tensors = weight_format.read(folder / part)
        if names != part_tensors.keys():
            lacks, has = sorted(names - part_tensors.keys()), sorted(part_tensors.keys() - names)
            raise WeightsError(
                f"{folder / part} does not hold what {index.name} says: "
                + (f"it lacks {some_of(lacks)}" if lacks else f"it also holds {some_of(has)}")
            )
        tensors |= part_tensors
    return tensors


def _checked_part(part: object, weight_format: WeightFormat, index: Path) -> str:
    """Return the name of a part, or raise LayoutError if it is not a file of the same folder."""
    name, ending = str(part).encode(errors="replace"), Path(weight_format.whole).suffix.encode()
    is_plain = name.endswith(ending) and len(name) <= MAX_NAME_BYTES and not any(mark in name for mark in b"/\\:\0")
    if not isinstance(part, str) or not is_plain:
        raise LayoutError(
            f"{index} names {quoted(part)}; parts are files of the same folder, such as "
            f"{part_name(weight_format.whole, 1, 2)}"
        )
    return part


def part_name(whole: str, number: int, count: int) -> str:
    """Return the name of one of the files into which a large one is split."""
    stem, _, ending = whole.rpartition(".")
    return f"{stem}-{number:05}-of-{count:05}.{ending}"


def some_of(names: list[str], limit: int = NAMED, show: Callable[[str], str] = quoted) -> str:
    """Return the first few names for a message, and the number of others."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(map(show, names[:limit])) + more
