"""How a folder of sentence-transformers makes one vector of a text: its modules.json, and the pooling it names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ..config import read_mapping
from ..errors import ConfigError, unknown

MODULES = "modules.json"
POOLING = {"pooling_mode_cls_token": "first", "pooling_mode_mean_tokens": "mean"}  # as our heads call it


class Pooling(NamedTuple):
    """The head that pools, and whether vectors have length one."""

    head: str
    normalised: bool


USUAL = Pooling("mean", True)


def pooling_of(folder: Path) -> Pooling:
    """What the folder says; the usual where it says nothing."""
    if not (folder / MODULES).is_file():
        return USUAL
    head, normalised = "mean", False
    for kind, path in _modules(folder / MODULES):
        if kind == "Pooling":
            head = _pooling(folder / path / "config.json")
        elif kind == "Normalize":
            normalised = True
        elif kind != "Transformer" or path:
            raise ConfigError(f"{folder / MODULES}: {unknown('module', kind, ['Transformer', 'Pooling', 'Normalize'])}")
    return Pooling(head, normalised)


def _modules(path: Path) -> Iterator[tuple[str, str]]:
    """The kind and the folder of each module."""
    try:
        modules = json.loads(path.read_text(encoding="utf-8"))
        found = [(str(module["type"]).rpartition(".")[2], str(module["path"])) for module in modules]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ConfigError(f"{path} is no list of modules: {error}") from None
    for kind, name in found:
        if name != Path(name).name and name:
            raise ConfigError(f"{path}: a module's path is the name of a folder beside it, not {name!r}")
        yield kind, name


def _pooling(path: Path) -> str:
    said: dict[str, Any] = read_mapping(path)
    modes = [key for key, value in said.items() if key.startswith("pooling_mode") and value is True]
    if len(modes) != 1 or modes[0] not in POOLING:
        raise ConfigError(
            f"{path}: {' and '.join(modes) or 'no pooling'} is not supported; one of {', '.join(POOLING)} is"
        )
    return POOLING[modes[0]]
