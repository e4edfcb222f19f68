"""Reads the variables of CTranslate2's model.bin without CTranslate2."""

import math
import os
import re
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple

import torch
from torch import Tensor

from ...errors import HeedfulError
from ..weights import NAMED, WeightsError

VERSIONS = range(2, 7)
DTYPES = (torch.float32, torch.int8, torch.int16, torch.int32, torch.float16, torch.bfloat16)
OLDER_DTYPES = {4: torch.float32, 2: torch.int16, 1: torch.int8}  # by the size of an item
MAX_DIMENSIONS = 4  # convolutions have three
MAX_ITEMS = 2**48  # of a shape without its zeros; more would overflow where torch computes with it


class CTranslate2Error(HeedfulError, ValueError):
    """A CTranslate2 model that cannot be read: damaged, of another version, or of an unsupported kind."""


class Binary(NamedTuple):
    """The contents of a model.bin. An alias is the same tensor object as its original."""

    version: int
    spec: str
    revision: int
    variables: dict[str, Tensor]


def read_binary(path: str | Path) -> Binary:
    """Read every variable of a model.bin as it is stored; quantized ones have their scales beside them."""
    try:
        with Path(path).open("rb") as file:
            return _BinaryReader(file).binary()
    except OSError as error:
        raise CTranslate2Error(f"{path} cannot be read: {error.strerror}") from None
    except CTranslate2Error as error:
        raise CTranslate2Error(f"{path} is not a CTranslate2 model, or is damaged: {error}") from None


class _BinaryReader:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._left = os.fstat(file.fileno()).st_size
        self._version = 0

    def binary(self) -> Binary:
        self._version = self._number("<I", "the version")
        if self._version not in VERSIONS:
            versions = f"{VERSIONS[0]} to {VERSIONS[-1]}"
            raise CTranslate2Error(f"its version is {self._version}, and this version of Heedful reads {versions}")
        spec, revision = self._text("the specification"), self._number("<I", "the revision")
        variables: dict[str, Tensor] = {}
        for _ in range(self._number("<I", "the number of variables")):
            name = self._new_name(variables)
            variables[name] = self._tensor(name)
        if self._version >= 3:
            for _ in range(self._number("<I", "the number of aliases")):
                alias, name = self._new_name(variables), self._text("the target of an alias")
                if name not in variables:
                    raise CTranslate2Error(f"{alias} is an alias of {name}, which is missing")
                variables[alias] = variables[name]
                if f"{name}_scale" in variables:
                    variables.setdefault(f"{alias}_scale", variables[f"{name}_scale"])
        if self._left:
            raise CTranslate2Error(f"{self._left} bytes follow its end")
        return Binary(self._version, spec, revision, variables)

    def _new_name(self, variables: dict[str, Tensor]) -> str:
        name = self._text("a name")
        if name in variables:
            raise CTranslate2Error(f"{name} occurs twice")
        return name

    def _tensor(self, name: str) -> Tensor:
        rank = self._number("<B", f"the rank of {name}")
        if rank > MAX_DIMENSIONS:
            raise CTranslate2Error(f"{name} has {rank} dimensions, and no weight has more than {MAX_DIMENSIONS}")
        shape = [self._number("<I", f"a dimension of {name}") for _ in range(rank)]
        kind, size = self._number("<B", f"the dtype of {name}"), self._number("<I", f"the size of {name}")
        dtypes = dict(enumerate(DTYPES)) if self._version >= 4 else OLDER_DTYPES
        if kind not in dtypes:
            raise CTranslate2Error(f"{name} has the unknown dtype {kind}")
        dtype = dtypes[kind]
        n_bytes = size if self._version >= 4 else size * dtype.itemsize
        if math.prod(shape) * dtype.itemsize != n_bytes:
            raise CTranslate2Error(f"{name} has the shape {tuple(shape)} of {dtype}, which are not {n_bytes:,} bytes")
        if math.prod(max(size, 1) for size in shape) > MAX_ITEMS:
            raise CTranslate2Error(f"{name} has the shape {tuple(shape)}, and no weight is so large")
        if not n_bytes:
            return torch.empty(shape, dtype=dtype)
        return torch.frombuffer(bytearray(self._bytes(n_bytes, name)), dtype=dtype).reshape(shape)

    def _text(self, what: str) -> str:
        raw = self._bytes(self._number("<H", f"the length of {what}"), what)
        if raw[-1:] != b"\0":
            raise CTranslate2Error(f"{what} does not end in a zero")
        try:
            return raw[:-1].decode("utf-8")
        except UnicodeDecodeError:
            raise CTranslate2Error(f"{what} is not UTF-8") from None

    def _number(self, form: str, what: str) -> int:
        return int(struct.unpack(form, self._bytes(struct.calcsize(form), what))[0])

    def _bytes(self, count: int, what: str) -> bytes:
        if count > self._left:
            raise CTranslate2Error(f"{what} takes {count:,} bytes, but only {self._left:,} are left")
        self._left -= count
        content = self._file.read(count)
        if len(content) != count:
            raise CTranslate2Error(f"it ended while it was read, in the middle of {what}")
        return content


class Variables:
    """The variables of a model by name; records which were read. Weights are returned as float32."""

    def __init__(self, stored: Mapping[str, Tensor]) -> None:
        self._stored = dict(stored)
        if "encoder/embeddings_0/weight" not in stored:  # older files have another name
            older = [name for name in stored if name.startswith("encoder/embeddings/")]
            self._stored |= {name.replace("/embeddings/", "/embeddings_0/"): self._stored.pop(name) for name in older}
        self._read: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._stored

    def weight(self, name: str) -> Tensor:
        """Return a weight as float32, dequantized with its scale."""
        stored = self._get(name)
        if stored is None:
            raise WeightsError(f"the model lacks {name}")
        if stored.is_floating_point():
            return stored.float()
        scale = self._get(f"{name}_scale")
        if stored.dtype not in (torch.int8, torch.int16) or scale is None:
            raise WeightsError(f"{name} holds {stored.dtype} without a {name}_scale to dequantize it")
        if scale.dim() and tuple(scale.shape) != tuple(stored.shape[:1]):
            raise WeightsError(f"{name} is {tuple(stored.shape)}, but its scales are {tuple(scale.shape)}")
        return stored.float() / scale.float().reshape(-1, *[1] * (stored.dim() - 1))

    def shape(self, name: str) -> tuple[int, int]:
        """Return the numbers of rows and columns of a matrix."""
        if name not in self:
            raise WeightsError(f"the model lacks {name}")
        stored = self._stored[name]
        if stored.dim() != 2 or not stored.numel():
            raise WeightsError(f"{name} is {tuple(stored.shape)} and should be a matrix")
        return stored.shape[0], stored.shape[1]

    def number(self, name: str, default: float) -> float:
        """Return a setting, or the default if the model lacks it."""
        stored = self._get(name)
        if stored is None:
            return default
        if stored.numel() != 1:
            raise WeightsError(f"{name} is {tuple(stored.shape)} and should be one number")
        value = float(stored)
        if not math.isfinite(value):
            raise WeightsError(f"{name} is {value} and should be finite")
        return value

    def is_flag(self, name: str) -> bool:
        """Return whether a setting is stored as a boolean."""
        return self._stored[name].dtype == torch.int8

    def count(self, prefix: str) -> int:
        """Return the number of layers, which are numbered from 0 after a prefix, without gaps."""
        matches = (re.match(rf"{re.escape(prefix)}(\d{{1,6}})/", name) for name in self._stored)
        indices = {int(match[1]) for match in matches if match}
        if not indices or indices != set(range(len(indices))):
            raise WeightsError(f"{prefix}0, {prefix}1, … are not all present")
        return len(indices)

    def equal(self, first: str, second: str) -> bool:
        """Return whether two names stand for one weight or for equal ones, since older files have no aliases."""
        left, right = self._stored[first], self._stored[second]
        return left is right or (
            left.dtype == right.dtype
            and torch.equal(left, right)
            and torch.equal(self.weight(first), self.weight(second))
        )

    def refuse_unread(self) -> None:
        """Raise for variables that were not read: they change the model in a way that is not supported."""
        if unread := sorted(set(self._stored) - self._read):
            more = f", and {len(unread) - NAMED} more" if len(unread) > NAMED else ""
            raise WeightsError(f"the model has parts that have no place here: {', '.join(unread[:NAMED])}{more}")

    def _get(self, name: str) -> Tensor | None:
        self._read.add(name)
        return self._stored.get(name)
