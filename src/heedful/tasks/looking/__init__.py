"""Looking at any model while it works: a document for a page, or for a script."""

from .look import look_at
from .picture import draw

__all__ = ["draw", "look_at"]
