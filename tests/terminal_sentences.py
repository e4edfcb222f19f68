"""The sentences of the program's source, as the terminal may print them: a number stands for each value."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.markup import render
from typer.main import get_command

import heedful
from heedful.cli.app import app

PACKAGE = Path(heedful.__file__).parent
VALUE = "7"
REASON = "there is no such file"  # any sentence of its own
# Calls whose arguments at these places are printed.
PRINTED = {
    **dict.fromkeys(("say", "warn", "complain", "translate", "show_scores", "show_samples", "Finding"), slice(1)),
    "_table": slice(None),
}
SHELL_ERRORS = re.compile(r"\w*Error$")
PYTHON_ERRORS = ("ValueError", "TypeError", "IndexError", "RuntimeError", "NotImplementedError", "AttributeError")


def texts(node: ast.expr) -> Iterator[str]:
    """Yield the texts that an expression can have; VALUE stands for what is computed."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.IfExp(body=body, orelse=other):
            yield from texts(body)
            yield from texts(other)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield from (first + second for first in texts(left) for second in texts(right))
        case ast.JoinedStr(values=parts):
            results = [""]
            for part in parts:
                branches = [VALUE]
                if isinstance(part, ast.Constant):
                    branches = [str(part.value)]
                elif isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.IfExp):
                    branches = list(texts(part.value))
                results = [start + branch for start in results for branch in branches]
            yield from results
        case ast.Starred(value=value):
            yield from texts(value)
        case _:
            yield VALUE


def called(node: ast.AST) -> str:
    """Return the name of the function or class that is called, or an empty string."""
    function = node.func if isinstance(node, ast.Call) else None
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


def printed(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the sentences that calls print."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (places := PRINTED.get(called(node))):
            yield from ((node.lineno, text) for argument in node.args[places] for text in texts(argument))


def raised(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the messages of errors that the terminal prints, of `require` too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and node.exc and SHELL_ERRORS.search(name := called(node.exc)):
            arguments: Sequence[ast.expr] = getattr(node.exc, "args", ())
            chosen = arguments[1:2] if name == "ItemError" else arguments[:1]
            if name not in PYTHON_ERRORS:
                yield from ((node.lineno, text) for argument in chosen for text in texts(argument))
        elif isinstance(node, ast.Call) and called(node) == "require" and len(node.args) > 1:
            yield from ((node.lineno, text) for text in texts(node.args[1]))


def sentences(*folders: str, errors: bool) -> dict[str, str]:
    """Return the sentences of files or folders of the package, each with its place."""
    files = [
        file for each in folders for file in ([PACKAGE / each] if "." in each else PACKAGE.glob(f"{each}/**/*.py"))
    ]
    result: dict[str, str] = {}
    for path in sorted(files):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for line, text in raised(tree) if errors else printed(tree):
            text = re.sub(rf"^(warning: |error: |({VALUE}[.:]?)+: )+", "", text)  # of a file or a setting
            text = re.sub(rf"^((the |--)?\w+( {VALUE})?): {VALUE}$", rf"\1: {REASON}", text)
            if re.search("[a-z]{2}", text):
                result.setdefault(text, f"{path.relative_to(PACKAGE)}:{line}")
    return result


def helps() -> set[str]:
    """Return the paragraphs of all help texts in English, and the titles of their panels."""
    root: Any = get_command(app)
    groups = [command for command in root.commands.values() if hasattr(command, "commands")]
    commands = [root, *root.commands.values(), *(each for group in groups for each in group.commands.values())]
    parts = [
        getattr(each, name, None)
        for command in commands
        for each in (command, *command.params)
        for name in ("help", "epilog", "rich_help_panel")
    ]
    return {paragraph for part in parts for paragraph in render(part or "").plain.split("\n\n") if paragraph}


def source_text() -> str:
    """Return every text of the package's sources, and of the tables that hold help and names."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")]
    constants = [node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    commands = json.loads((PACKAGE / "cli" / "train.json").read_text(encoding="utf-8"))
    found: list[str] = [text for text in constants if isinstance(text, str)]
    for entry in commands.values():
        found += [*entry["help"], entry["data"], entry.get("columns", "")]
        found += [option["help"] for option in entry["options"].values()]
    found += [table.read_text(encoding="utf-8") for table in PACKAGE.rglob("constructions.yaml")]  # names of probes
    return "\n".join(found)
