"""The way of the data reads from left to right: no module imports from its right, and the core imports only torch."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import heedful

ROOT = Path(heedful.__file__).parent
ORDER = [
    "errors",
    "files",
    "config",
    "data",
    "core",
    "families",
    "backends",
    "generation",
    "training",
    "lens",
    "tasks",
    "demo",
    "lab",
    "learn",
    "serving",
    "",  # the package itself, which gathers public names
    "cli",
    "__main__",
]
FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def imported(path: Path, source: str) -> Iterator[str]:
    """The full names of the modules a file imports, wherever in it."""
    package = ["heedful", *path.relative_to(ROOT).parts[:-1]]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            if module == "heedful":  # `from heedful import config` reaches for the module, other names for the package
                yield from (f"heedful.{alias.name}" if alias.name in ORDER else module for alias in node.names)
            else:
                yield module


def part_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def faults(path: Path, source: str) -> list[str]:
    """Every import of this file that the order forbids, in words."""
    part, found = part_of(path), []
    for name in imported(path, source):
        top, *rest = name.split(".")
        if top == "heedful":
            target = rest[0] if rest else ""
            if ORDER.index(target) > ORDER.index(part):
                found.append(f"{part} reaches to its right: {name}")
            elif part == "core" and target != "core":
                found.append(f"core must stand alone, but imports {name}")
        elif part == "core" and top != "torch" and top not in sys.stdlib_module_names:
            found.append(f"core imports {name}; it may import torch and itself")
        elif part in ("errors", "files", "config") and top == "torch":
            found.append(f"{part} must not need torch")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_reaches_to_its_right(path: Path) -> None:
    assert part_of(path) in ORDER, f"{part_of(path)} has no place in the order"
    assert faults(path, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("core/attention.py", "from heedful.lens import record"),
        ("core/attention.py", "from ..families import original"),
        ("core/attention.py", "from .. import training"),
        ("core/attention.py", "import numpy as np"),
        ("core/attention.py", "def late():\n    from heedful import errors"),
        ("config.py", "import torch.nn"),
        ("errors.py", "from .config import Config"),
        ("families/original.py", "import heedful.cli"),
        ("families/original.py", "import heedful"),
        ("lens/recorder.py", "from .. import build"),
        ("lens/recorder.py", "if TYPE_CHECKING:\n    from heedful.tasks.translation import Translation"),
    ],
)
def test_the_walk_sees_a_wrong_import(file: str, source: str) -> None:
    assert len(faults(ROOT / file, source)) == 1


@pytest.mark.parametrize(
    ("file", "source"),
    [
        (
            "core/attention.py",
            "import math\nimport torch.nn.functional as F\nfrom .masks import Mask\nfrom . import init",
        ),
        ("families/original.py", "from ..core import Encoder\nfrom heedful.config import Config\nimport yaml"),
        ("cli.py", "from .serving.app import app\nfrom . import __version__, errors"),
    ],
)
def test_the_walk_lets_right_imports_pass(file: str, source: str) -> None:
    assert faults(ROOT / file, source) == []
