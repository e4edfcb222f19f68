"""The texts of the exercises: solutions, messages in each language, and the files that a learner completes."""

import ast
import json
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
SOLUTIONS = HERE / "solutions"
NAMES = {int(path.name[:2]): path.stem for path in sorted(SOLUTIONS.glob("*.py"))}


@cache
def messages(language: str) -> dict[str, dict[str, str]]:
    """Return the messages of a language: those of each exercise by its number, and "common" ones."""
    catalog: dict[str, dict[str, str]] = json.loads((HERE / "locales" / f"{language}.json").read_text("utf-8"))
    return catalog


def message(language: str, number: int, key: str) -> str:
    """Return a message of an exercise, or the common one with this key."""
    catalog = messages(language)
    return catalog[str(number)].get(key) or catalog["common"][key]


def title(number: int, language: str) -> str:
    """Return the title of an exercise."""
    return message(language, number, "title")


def solution(number: int) -> str:
    """Return the source of the solution of an exercise."""
    return (SOLUTIONS / f"{NAMES[number]}.py").read_text(encoding="utf-8")


def starter(number: int, language: str) -> str:
    """Return the file to complete: the solution with the task for its docstring, and without the functions' bodies."""
    source = solution(number)
    lines, tree = source.splitlines(), ast.parse(source)
    for node in reversed(tree.body):
        if isinstance(node, ast.FunctionDef):
            lines[node.body[0].end_lineno : node.end_lineno] = ["    raise NotImplementedError"]
    task = f'"""{number}. {title(number, language)}\n\n{message(language, number, "task")}\n"""'
    return "\n".join([task, *lines[tree.body[0].end_lineno :]]) + "\n"


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
