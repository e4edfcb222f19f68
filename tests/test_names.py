"""One class name means one thing, and no placeholder word names a parameter, a function, a class or a variable."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import heedful

PACKAGE = Path(heedful.__file__).parent
# Everyday words that say nothing about what a thing is. The field has a word for it: hypotheses, config, item, request.
PLACEHOLDERS = {
    *("asked", "found", "given", "kept", "known", "made", "one", "ours"),
    *("own", "said", "shown", "theirs", "told", "usual", "words"),
}


def sources() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield str(path.relative_to(PACKAGE)), ast.parse(path.read_text(encoding="utf-8"))


def named(node: ast.AST) -> str | None:
    """The name that a node of the syntax tree introduces."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
            return name
    return None


def test_every_public_class_name_is_used_once() -> None:
    modules: dict[str, list[str]] = defaultdict(list)
    for path, tree in sources():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules[node.name].append(path)
    assert {name: paths for name, paths in modules.items() if len(paths) > 1} == {}


def test_no_placeholder_word_is_a_name() -> None:
    uses = [
        f"{path}:{getattr(node, 'lineno', 0)}: {name}"
        for path, tree in sources()
        for node in ast.walk(tree)
        if (name := named(node)) and name.strip("_").lower() in PLACEHOLDERS
    ]
    assert uses == []
