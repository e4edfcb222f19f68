"""The translators that are installed with the package."""

from importlib import resources
from pathlib import Path

SHIPPED = ("ko-en", "en-ko")
"""The names of the shipped translators, which every command takes where it takes the folder of a model."""


def model_folder(name: str | Path) -> Path:
    """Return the folder of a model: the given one, or of a shipped translator where no folder has that name."""
    folder = Path(name)
    return shipped_folder(str(name)) if str(name) in SHIPPED and not folder.exists() else folder


def shipped_folder(name: str) -> Path:
    """Return the folder of a shipped translator, wherever the package is installed."""
    return Path(str(resources.files("heedful").joinpath("models", name)))
