"""The whole Transformer: small enough to read, fast enough to ship."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .cli.train_function import train
    from .families import build, import_checkpoint
    from .generation import generate
    from .lens import ablate, record
    from .tasks import load, translator

__all__ = ["ablate", "build", "generate", "import_checkpoint", "load", "record", "train", "translator"]
__version__ = "0.1.0"

_MODULES = {
    "ablate": ".lens",
    "build": ".families",
    "generate": ".generation",
    "import_checkpoint": ".families",
    "load": ".tasks",
    "record": ".lens",
    "train": ".cli.train_function",
    "translator": ".tasks",
}


def __getattr__(name: str) -> Any:
    """Import a public name, and torch with it, at its first use: help and the version need neither."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name], __name__), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
