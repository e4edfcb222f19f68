"""The whole Transformer: small enough to read, fast enough to ship."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .families import build, import_checkpoint
    from .generation import generate
    from .lens import record
    from .tasks import load

__all__ = ["build", "generate", "import_checkpoint", "load", "record"]
__version__ = "0.1.0"

_HOMES = {
    "build": ".families",
    "generate": ".generation",
    "import_checkpoint": ".families",
    "load": ".tasks",
    "record": ".lens",
}


def __getattr__(name: str) -> Any:
    """Load a public name, and torch with it, when it is first asked for: the shell has things to settle before."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)
