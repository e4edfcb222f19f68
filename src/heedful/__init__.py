"""The whole Transformer: small enough to read, fast enough to ship."""

from .families import build
from .lens import record

__all__ = ["build", "record"]
__version__ = "0.1.0"
