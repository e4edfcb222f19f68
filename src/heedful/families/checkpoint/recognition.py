"""What a folder is that cannot be read as a checkpoint, and what to do with it instead."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .files import FORMS
from .objects import LayoutError

LISTED = 12  # how many files of a folder a message names
ALLOWED = " or ".join(form.whole for form in FORMS) + ", or several such files with their index"
KINDS = {
    "adapter_config.json": "an adapter, which changes another model; merge it into that model, and save the whole",
    "model_index.json": "a pipeline of diffusers, which is no one model; the models in its folders are not read here",
    "snapshots": "a cache of the hub; give the folder inside its snapshots",
}
WITHOUT_CONFIG = {
    "config_sentence_transformers.json": "a model of sentence-transformers whose Transformer has a folder of its own "
    "(often 0_Transformer); give that one",
}
WITHOUT_WEIGHTS = {
    "model.bin": "a model of CTranslate2; read it with heedful.families.ctranslate2.from_ctranslate2",
}
NOT_READ = (".h5", ".msgpack", ".gguf", ".onnx", ".ckpt", ".pt", ".pth", ".safetensors", ".bin")


def refuse_other_folders(folder: Path) -> None:
    """Raise for what is not there, is no folder, or is another kind of folder."""
    if not folder.is_dir():
        kind = "is a file" if folder.exists() else "is not there"
        raise LayoutError(f"{folder} {kind}; a checkpoint is a folder that holds config.json and {FORMS[0].whole}")
    _refuse(folder, KINDS)
    if not (folder / "config.json").is_file():
        _refuse(folder, WITHOUT_CONFIG | WITHOUT_WEIGHTS)
        raise LayoutError(f"{folder} holds no config.json; {_listed(folder)}")


def refuse_bundle(folder: Path, config: Mapping[str, Any]) -> None:
    """Raise for what this library's own training wrote."""
    if {"format", "task", "model", "sha256"} <= config.keys() and "model_type" not in config:
        raise LayoutError(f"{folder} is a model of Heedful's own; read it with heedful.load({str(folder)!r})")


def without_weights(folder: Path) -> LayoutError:
    """The error for a folder whose weights are of another kind, or not there."""
    _refuse(folder, WITHOUT_WEIGHTS)
    names = _names(folder)
    found = [name for name in names if Path(name).suffix in NOT_READ]
    what = f"what is there is not read: {_some(found)}" if found else _listed(folder)
    return LayoutError(f"{folder} holds no weights that are read here ({ALLOWED}); {what}")


def _refuse(folder: Path, kinds: Mapping[str, str]) -> None:
    for name, kind in kinds.items():
        if (folder / name).exists():
            raise LayoutError(f"{folder} is {kind}")


def _listed(folder: Path) -> str:
    names = _names(folder)
    return f"it holds {_some(names)}" if names else "it is empty"


def _names(folder: Path) -> list[str]:
    return sorted(f"{path.name} (a broken link)" if not path.exists() else path.name for path in folder.iterdir())


def _some(names: list[str]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more
