"""Which files of a folder hold the weights: one, or several that an index names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from ..weights import NAMED, WeightsError
from .mapped import read_mapped
from .objects import LayoutError, quoted, read_object
from .pickled import read_pickled

MOST_INDEX = 64 * 2**20  # the largest published one, of 91,991 tensors, has 9 MB


@dataclass(frozen=True)
class Form:
    """A form in which weights are kept: whole, or in parts with an index of where each tensor is."""

    whole: str
    read: Callable[[Path], dict[str, Tensor]]

    @property
    def index(self) -> str:
        return f"{self.whole}.index.json"

    @property
    def ending(self) -> str:
        return Path(self.whole).suffix


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
        raise LayoutError(f"{folder} lacks {len(absent)} of the {len(parts)} files of its weights: {_some(absent)}")
    tensors: dict[str, Tensor] = {}
    for part, names in parts.items():
        found = form.read(folder / part)
        if names != found.keys():
            lacks, has = sorted(names - found.keys()), sorted(found.keys() - names)
            raise WeightsError(
                f"{folder / part} does not hold what {index.name} says: "
                + (f"it lacks {_some(lacks)}" if lacks else f"it also holds {_some(has)}")
            )
        tensors |= found
    return tensors


def _plain(part: object, form: Form, index: Path) -> str:
    """The name of a file in the same folder, and of nothing else."""
    if not isinstance(part, str) or not part.endswith(form.ending) or any(mark in part for mark in "/\\:\0"):
        raise LayoutError(
            f"{index} names {quoted(part)}; parts are files of the same folder, such as {_part(form.whole, 1, 2)}"
        )
    return part


def part_name(place: int, count: int) -> str:
    """The name of one of several files."""
    return _part(SAFETENSORS.whole, place, count)


def _part(whole: str, place: int, count: int) -> str:
    stem, _, ending = whole.rpartition(".")
    return f"{stem}-{place:05}-of-{count:05}.{ending}"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(quoted(name) for name in names[:NAMED]) + more
