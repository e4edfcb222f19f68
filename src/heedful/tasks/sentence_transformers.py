"""The files of a sentence-transformers folder: modules.json and the pooling that it names, read and written."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ..config import read_mapping
from ..errors import ConfigError, unknown

MODULES, SETTINGS = "modules.json", "sentence_bert_config.json"
FOLDER = re.compile(r"\w[\w.-]*")
LARGEST = 1 << 20  # bytes of a list of modules
POOLING = {"pooling_mode_cls_token": "first", "pooling_mode_mean_tokens": "mean"}  # as our heads call it
MODES = {"cls": "first", "mean": "mean"}  # the same in newer folders, which say pooling_mode


class Pooling(NamedTuple):
    """The head that pools, and whether vectors have length one."""

    head: str
    normalized: bool


DEFAULT = Pooling("mean", True)


def pooling_of(folder: Path) -> Pooling:
    """Return the pooling that a folder names; the default if it names none."""
    if not (folder / MODULES).is_file():
        return DEFAULT
    head, normalized = "mean", False
    for kind, path in _modules(folder / MODULES):
        if kind == "Pooling":
            head = _pooling(folder / path / "config.json")
        elif kind == "Normalize":
            normalized = True
        elif kind != "Transformer":
            raise ConfigError(f"{folder / MODULES}: {unknown('module', kind, ['Transformer', 'Pooling', 'Normalize'])}")
        elif path:
            raise ConfigError(f"{folder / MODULES}: the model is in {path}; only one beside {MODULES} is read")
    return Pooling(head, normalized)


def lowers_case(folder: Path) -> bool:
    """Return True if texts are lower-cased before tokenization."""
    path = folder / SETTINGS
    return path.is_file() and read_mapping(path).get("do_lower_case") is True


def _modules(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the kind and the folder of each module."""
    try:
        with path.open(encoding="utf-8") as file:
            modules = json.loads(file.read(LARGEST))
        entries = [(str(module["type"]).rpartition(".")[2], str(module["path"])) for module in modules]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ConfigError(f"{path} is not a list of modules: {error}") from None
    for kind, name in entries:
        if name and not FOLDER.fullmatch(name):
            raise ConfigError(f"{path}: a module's path is the name of a folder beside it, not {name!r}")
        yield kind, name


def _pooling(path: Path) -> str:
    values: dict[str, Any] = read_mapping(path)
    if values.get("pooling_mode") in tuple(MODES):
        return MODES[values["pooling_mode"]]
    modes = [key for key, value in values.items() if key.startswith("pooling_mode") and value not in (False, None)]
    if len(modes) != 1 or modes[0] not in POOLING:
        raise ConfigError(
            f"{path}: {' and '.join(modes) or 'no pooling'} is not supported; one of {', '.join(POOLING)} is"
        )
    return POOLING[modes[0]]


def pooling_files(pooling: Pooling, width: int) -> dict[str, Any]:
    """Return the files that describe a pooling, by name, as `pooling_of` and sentence-transformers read them."""
    kinds = {"Transformer": "", "Pooling": "1_Pooling"} | ({"Normalize": "2_Normalize"} if pooling.normalized else {})
    modules = [
        {"idx": place, "name": str(place), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for place, (kind, path) in enumerate(kinds.items())
    ]
    modes = {key: head == pooling.head for key, head in POOLING.items()}
    return {MODULES: modules, "1_Pooling/config.json": {"word_embedding_dimension": width, **modes}}
