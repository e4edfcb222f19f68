"""Runs the cells of a chapter: in order, in one namespace, with their output."""

import ast
import io
import threading
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch

from .chapters import Chapter, ChapterError, read_chapters

_LOCK = threading.Lock()  # standard output and torch's random state belong to the whole process


@dataclass(frozen=True)
class CellOutput:
    """What a cell printed, with the representation of its last expression; `error` is the exception it ended with."""

    text: str
    error: str | None = None


@cache
def run_cells(chapter: Chapter) -> tuple[CellOutput, ...]:
    """Run all cells of a chapter, once; after an error the others run all the same."""
    return run_in(chapter, {})


def run_in(chapter: Chapter, namespace: dict[str, Any]) -> tuple[CellOutput, ...]:
    """Run all cells of a chapter in a namespace, which has the names that they define afterwards.

    Random state outside is unchanged.
    """
    namespace["__name__"] = f"chapter_{chapter.number}"
    with _LOCK, torch.random.fork_rng(devices=[]):
        cells = chapter.all("cell")
        return tuple(_run(cell.text, f"{chapter.path.name}, line {cell.line}", namespace) for cell in cells)


def cell_names(number: str, last: str) -> dict[str, Any]:
    """Return what a chapter's English cells define, up to the cell that contains the text `last`."""
    chapter = next(chapter for chapter in read_chapters("en") if chapter.number == number)
    end = 1 + next(n for n, block in enumerate(chapter.blocks) if block.kind == "cell" and last in block.text)
    namespace: dict[str, Any] = {}
    outputs = run_in(replace(chapter, blocks=chapter.blocks[:end]), namespace)
    if errors := [output.error for output in outputs if output.error]:
        raise ChapterError(f"{chapter.path}: {errors[0]}")
    return namespace


def _run(code: str, name: str, namespace: dict[str, Any]) -> CellOutput:
    printed, error = io.StringIO(), None
    try:
        tree = ast.parse(code, name)
        if tree.body and isinstance(last := tree.body[-1], ast.Expr):
            tree.body[-1] = ast.copy_location(ast.Assign([ast.Name("__last__", ast.Store())], last.value), last)
        with redirect_stdout(printed):
            exec(compile(ast.fix_missing_locations(tree), name, "exec"), namespace)
            if (value := namespace.pop("__last__", None)) is not None:
                print(repr(value))
    except Exception as raised:  # shown below the cell, so that the rest of the chapter can be read
        error = f"{type(raised).__name__}: {raised}"
    return CellOutput(printed.getvalue().rstrip("\n"), error)
