"""The whole Transformer: small enough to read, fast enough to ship."""

from .families import build
from .generation import generate
from .lens import record
from .tasks import load

__all__ = ["build", "generate", "load", "record"]
__version__ = "0.1.0"
