"""The models that a server has, by name."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..tasks import load
from .generation_worker import GenerationWorker
from .settings import Settings
from .worker import BatchWorker, ModelWorker

NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(frozen=True)
class Served:
    """A served model: its predictor, the worker that runs it, and when it was loaded (Unix time in seconds)."""

    name: str
    predictor: Any
    worker: ModelWorker
    created: int

    @classmethod
    def of(cls, name: str, predictor: Any, settings: Settings) -> Served:
        """Start a worker for a predictor."""
        kind = GenerationWorker if predictor.generates_text else BatchWorker
        return cls(name, predictor, kind(predictor, settings), int(time.time()))

    @property
    def task(self) -> str:
        task: str = self.predictor.task
        return task


class Models(dict[str, Served]):
    """The served models by name, in the order given. Names of clients are looked up here and never become paths."""

    def __init__(self, served: Sequence[Served]) -> None:
        super().__init__({entry.name: entry for entry in served})

    @classmethod
    def load(cls, arguments: Sequence[str], settings: Settings) -> Models:
        """Load models from folders: "runs/en-ko", or "name=runs/en-ko" for a name that is not the folder's."""
        folders = _folders(arguments)
        # All of them are loaded before a thread starts.
        loaded = {name: load(folder, device=settings.device) for name, folder in folders.items()}
        return cls([Served.of(name, predictor, settings) for name, predictor in loaded.items()])

    def close(self) -> None:
        """Stop the threads of all models."""
        for entry in self.values():
            entry.worker.close()


def _folders(arguments: Sequence[str]) -> dict[str, str]:
    if not arguments:
        raise ConfigError("no model to serve; give a model's folder: heedful serve runs/en-ko")
    folders: dict[str, str] = {}
    for entry in arguments:
        name, equals, folder = entry.partition("=")
        if not equals or "/" in name:
            name, folder = Path(entry).resolve().name, entry
        if not NAME.fullmatch(name):
            raise ConfigError(
                f"{name!r} is not a valid model name (letters, digits, '.', '_' and '-', at most 64); "
                f"give the model another name: heedful serve NAME={folder}"
            )
        if name in folders:
            raise ConfigError(
                f"two models have the name {name!r}: {folders[name]} and {folder}; "
                f"give one another name: heedful serve NAME={folder}"
            )
        folders[name] = folder
    return folders
