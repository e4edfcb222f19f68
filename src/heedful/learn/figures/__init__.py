"""The data of the figures, each computed by the parts of the product when a chapter is shown.

A module of this package registers its figures; the page draws them with the script that has the module's name.
"""

import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from torch import Tensor

from ...errors import unknown
from ...lab.models import seeded
from ..chapters import ChapterError

FigureData = Callable[[str], dict[str, Any]]
FIGURES: dict[str, FigureData] = {}


def figure(name: str) -> Callable[[FigureData], FigureData]:
    """Register a function that returns a figure's data as JSON values, given the language."""

    def register(compute: FigureData) -> FigureData:
        FIGURES[name] = compute
        return compute

    return register


def find_figure(name: str) -> FigureData:
    """Return the function that computes a figure's data."""
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    if name not in FIGURES:
        raise ChapterError(unknown("figure", name, FIGURES))
    return FIGURES[name]


@cache
def figure_data(name: str, language: str) -> dict[str, Any]:
    """Return the data of a figure, computed once."""
    with seeded():
        return find_figure(name)(language)


def script_of(name: str) -> tuple[str, str]:
    """Return the script of a figure, which has the name of its Python module, and its export: drawAMask."""
    module = find_figure(name).__module__.rpartition(".")[2]
    return f"{module}.js", re.sub(r"-(\w)", lambda letter: letter[1].upper(), name)


def rounded(tensor: Tensor, digits: int = 3) -> Any:
    """Return the numbers of a tensor as nested lists, rounded, as they go into a page."""
    return _rounded(tensor.tolist(), digits)


def _rounded(value: Any, digits: int) -> Any:
    return [_rounded(item, digits) for item in value] if isinstance(value, list) else round(value, digits) + 0.0
