"""docs/design.md names modules, functions, files and layers, and other pages names of the package: each exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import heedful
from test_layering import ORDER

ROOT = Path(__file__).parents[1]
PACKAGE = Path(heedful.__file__).parent
PAGE = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
PAGES = [*sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs/ko").glob("*.md")), *sorted(ROOT.glob("*.md"))]
LAYERS = [name for name in ORDER if name.isalpha()]
NAME = re.compile(rf"(?:heedful\.)?(?:{'|'.join(LAYERS)})(?!\.py$)(?:\.\w+)+")
FILE = re.compile(r"[\w./-]+/[\w.-]*|[\w-]+\.(?:py|c|md)")
CODE = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", PAGE, flags=re.S))


def resolve(name: str) -> Any:
    """What a dotted name of the package stands for: a module, or in one a class, a function, a method or a field."""
    modules, parts = ["heedful"], name.removeprefix("heedful.").split(".")
    while parts and find_spec(".".join([*modules, parts[0]])):
        modules.append(parts.pop(0))
        if not (PACKAGE.parent / "/".join(modules) / "__init__.py").is_file():
            break
    found: Any = import_module(".".join(modules))
    for part in parts:
        found = getattr(found, part) if hasattr(found, part) else get_type_hints(found)[part]
    return found


def rows(heading: str) -> Iterator[list[str]]:
    """The rows of the table that begins with these cells."""
    table = PAGE.partition(heading + "\n")[2].partition("\n\n")[0]
    for row in table.splitlines()[1:]:
        yield [cell.strip() for cell in row.strip("|").split("|")]


@pytest.mark.parametrize("name", sorted({code for code in CODE if NAME.fullmatch(code)}))
def test_every_name_exists(name: str) -> None:
    resolve(name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_name_of_the_package_on_other_pages_exists(page: Path) -> None:
    text = re.sub(r"\]\([^)]*\)", "]", page.read_text(encoding="utf-8"))  # a link's target is no name
    names = set(re.findall(r"\bheedful(?:\.[a-zA-Z]\w*)+", text))
    for module, imported in re.findall(r"^from (heedful[\w.]*) import ([\w, ]+)$", text, re.M):
        names |= {f"{module}.{name}" for name in imported.split(", ")}
    for name in sorted(names):
        resolve(name)


@pytest.mark.parametrize("path", sorted({code for code in CODE if FILE.fullmatch(code) and not code.startswith("/")}))
def test_every_path_exists(path: str) -> None:
    if path not in ("README.md",):  # of a bundle, not of this project
        assert any((base / path).exists() for base in (ROOT, PACKAGE)), path


def test_the_layers_are_those_of_the_layering_test() -> None:
    line = re.search(r"^errors, files, .*$", PAGE, re.M)
    assert line is not None
    assert re.split(r", | → ", line[0]) == LAYERS


def test_the_table_of_packages_lists_every_package_and_real_modules() -> None:
    table = list(rows("| package | what it does | main modules |"))
    assert [cells[0].strip("`") for cells in table] == LAYERS
    for package, _, modules in table:
        for module in re.findall(r"`(\w+)`", modules):
            import_module(f"heedful.{package.strip('`')}.{module}")


def test_every_command_has_a_path_of_at_most_ten_steps() -> None:
    section = PAGE.partition("## Six commands")[2].partition("\n## ")[0]
    paths = section.split("\n### ")[1:]
    assert len(paths) == 6
    for path in paths:
        title, *steps = [line for line in path.splitlines() if line]
        assert title.startswith("`heedful ")
        assert [int(step.partition(".")[0]) for step in steps] == list(range(1, len(steps) + 1))
        assert len(steps) <= 10, title


def test_the_page_can_be_read_at_once() -> None:
    assert len(PAGE.splitlines()) <= 260
