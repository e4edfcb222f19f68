"""Reads the tables of the grammar: tab-separated rows and YAML lists, with errors that name the file and the line."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from itertools import zip_longest
from typing import Any

import yaml

from ..errors import DataError, unknown


@dataclass(frozen=True)
class TsvRow:
    """One line of a tab-separated table: its cells by column name."""

    place: str
    cells: Mapping[str, str]

    def __getitem__(self, column: str) -> str:
        return self.cells[column]

    def listed(self, column: str) -> list[str]:
        """Return the items of a cell that contains a list."""
        return split_list(self.cells[column])

    def checked(self, column: str, allowed: tuple[str, ...]) -> str:
        """Return a cell, which must be one of the allowed values."""
        if (cell := self.cells[column]) not in allowed:
            raise DataError(f"{self.place}: {unknown(column, cell, allowed)}")
        return cell


def split_list(text: str) -> list[str]:
    """Return the items between commas, without white space."""
    return [item.strip() for item in text.split(",")] if text else []


def read_table(name: str) -> str:
    """Return the text of a file in the folder of tables, wherever the package is installed."""
    return resources.files("heedful.demo").joinpath("tables", name).read_text(encoding="utf-8")


def read_rows(name: str, *columns: str) -> list[TsvRow]:
    """Return the rows of a tab-separated file of the package, which must have these columns."""
    return parse_rows(name, read_table(name), columns)


def parse_rows(name: str, text: str, columns: tuple[str, ...]) -> list[TsvRow]:
    """Return the rows after the line of column names; lines that begin with # are comments.

    Empty cells at the end of a line may be left out.
    """
    lines = [(f"{name}:{number}", line.split("\t")) for number, line in enumerate(text.splitlines(), 1) if line]
    lines = [(place, cells) for place, cells in lines if not cells[0].startswith("#")]
    if len(lines) < 2:
        raise DataError(f"{name} has no rows")
    (place, header), *lines = lines
    if tuple(header) != columns:
        raise DataError(f"{place}: the columns are {', '.join(columns)}, not {', '.join(header)}")
    for place, cells in lines:
        if len(cells) > len(columns) or not cells[0]:
            raise DataError(f"{place}: a row has {len(columns)} cells, the first not empty; this has {len(cells)}")
    return [TsvRow(place, dict(zip_longest(columns, cells, fillvalue=""))) for place, cells in lines]


@lru_cache(8)
def read_yaml(name: str) -> dict[str, Any]:
    """Return the mapping in a YAML file of the package."""
    try:
        content = yaml.safe_load(read_table(name))
    except yaml.YAMLError as error:
        raise DataError(f"{name}: {error}") from None
    if not isinstance(content, dict):
        raise DataError(f"{name} is not a mapping")
    return content


@lru_cache(32)
def word_sets(section: str) -> Mapping[str, frozenset[str]]:
    """Return a section of `semantics.yaml` or one of its tables: sets of words by name, or by a key such as a verb."""
    content = read_yaml("semantics.yaml")
    lists = content.get(section) or content["tables"][section]
    for name, members in lists.items():
        if not isinstance(members, str | None):
            raise DataError(f"semantics.yaml: {section}.{name} must be words between commas, not {members!r}")
    return {name: frozenset(split_list(members or "")) for name, members in lists.items()}
