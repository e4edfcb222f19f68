"""Folders in the layout of Hugging Face: config.json, weights, generation_config.json; read with no size believed."""

from .objects import LayoutError
from .reading import import_checkpoint, read_checkpoint
from .writing import write_checkpoint

__all__ = ["LayoutError", "import_checkpoint", "read_checkpoint", "write_checkpoint"]
