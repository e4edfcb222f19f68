"""The files of the exercises: each is a solution from `solutions/` without the bodies of its functions."""

import ast
from pathlib import Path

from .result import message

SOLUTIONS = Path(__file__).parent / "solutions"
NAMES = {int(path.name[:2]): path.stem for path in sorted(SOLUTIONS.glob("*.py"))}


def title(number: int, language: str) -> str:
    """Return the title of an exercise."""
    return message(language, number, "title")


def solution(number: int) -> str:
    """Return the source of the solution of an exercise."""
    return (SOLUTIONS / f"{NAMES[number]}.py").read_text(encoding="utf-8")


def starter(number: int, language: str) -> str:
    """Return the file to complete: the task in a language, and functions that raise NotImplementedError."""
    source = solution(number)
    lines, tree = source.splitlines(), ast.parse(source)
    for node in reversed(tree.body):
        if isinstance(node, ast.FunctionDef):
            lines[node.body[0].end_lineno : node.end_lineno] = ["    raise NotImplementedError"]
    lines[: tree.body[0].end_lineno] = [
        f'"""{number}. {title(number, language)}\n\n{message(language, number, "task")}\n"""'
    ]
    return "\n".join(lines) + "\n"


def start(folder: Path, language: str = "en") -> tuple[list[Path], list[Path]]:
    """Write a file for each exercise; return the new files, and those that exist already and stay as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    written, existing = [], []
    for number, name in NAMES.items():
        path = folder / f"{name}.py"
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(starter(number, language))
            written.append(path)
        except FileExistsError:
            existing.append(path)
    return written, existing
