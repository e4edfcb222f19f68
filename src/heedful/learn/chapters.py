"""The chapters of the course, read from Markdown files: prose, formulas, figures, boxes and cells of Python.

---                             ::: figure map-of-the-model        ```python
title: The map                  The caption.                       heedful.build("base")
able: [what a reader can do]    :::                                ```
needs: [what a reader knows]
---
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ..errors import HeedfulError, unknown

HERE = Path(__file__).parent / "chapters"
LANGUAGES = ("en", "ko")
BOXES = ("analogy", "deep", "misconception", "exercise", "recap", "reading")  # they hold prose, cells and the next two
LEAVES = ("formula", "figure")
NUMBERS = tuple(f"{number:02}" for number in range(14))  # of all chapters
FENCE = re.compile(r"(`{3,}|~{3,}) *([\w-]*) *")
OPENING = re.compile(r"::: +(\S+) *(.*)")

Line = tuple[int, str]


class ChapterError(HeedfulError, ValueError):
    """A chapter that cannot be read or shown; the message names the file and the line."""


@dataclass(frozen=True)
class Block:
    """A piece of a chapter.

    `kind` is prose, cell, formula, figure or one of BOXES. `title` is a figure's name, an exercise's number or a box's
    title. `text` is Markdown, a formula or code; a box has `blocks` instead. `line` counts from 1.
    """

    kind: str
    text: str = ""
    title: str = ""
    line: int = 1
    blocks: tuple["Block", ...] = ()


@dataclass(frozen=True)
class Chapter:
    """A chapter in one language: its title, what its reader will be able to do and has to know, and its blocks."""

    path: Path
    title: str
    able: tuple[str, ...]
    needs: tuple[str, ...]
    blocks: tuple[Block, ...]

    @property
    def number(self) -> str:
        """Two digits."""
        return self.path.name[:2]

    @property
    def language(self) -> str:
        return self.path.parent.name

    def all(self, kind: str) -> list[Block]:
        """Return the blocks of a kind in order, those within boxes too."""
        return [block for block in _flat(self.blocks) if block.kind == kind]


def read_chapters(language: str) -> list[Chapter]:
    """Read all chapters of a language, in order."""
    return [read_chapter(path) for path in sorted((HERE / language).glob("[0-9][0-9]-*.md"))]


def read_chapter(path: Path) -> Chapter:
    """Read a chapter; its language is the name of its folder."""
    lines = path.read_text(encoding="utf-8").splitlines()
    end = lines.index("---", 1) if lines[:1] == ["---"] and "---" in lines[1:] else 0
    head = _head("\n".join(lines[1:end]), path)
    return Chapter(path, **head, blocks=tuple(_blocks(list(enumerate(lines[end + 1 :], end + 2)), path)))


def _head(text: str, path: Path) -> dict[str, Any]:
    try:
        head = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ChapterError(f"{path}: {' '.join(str(error).split())}") from None
    kinds = {"title": str, "able": list, "needs": list}
    if not isinstance(head, dict) or {key: type(value) for key, value in head.items()} != kinds:
        raise ChapterError(f"{path}: a chapter begins with ---, then title: TEXT, able: [TEXT] and needs: [TEXT], ---")
    return {key: value if key == "title" else tuple(map(str, value)) for key, value in head.items()}


def _flat(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        yield block
        yield from _flat(block.blocks)


def _blocks(lines: list[Line], path: Path, *, allowed: tuple[str, ...] = (*BOXES, *LEAVES)) -> Iterator[Block]:
    """Divide lines into blocks. A fence that is not Python stays in the prose."""
    prose: list[Line] = []
    at = 0
    while at < len(lines):
        number, line = lines[at]
        fence, box = FENCE.fullmatch(line), OPENING.fullmatch(line)
        end = _closing(lines, at, fence[1] if fence else ":::", path) if fence or box else at
        body = lines[at + 1 : end]
        if box or (fence and fence[2] == "python"):
            yield from _prose(prose)
            prose = []
            yield _box(box, body, number, path, allowed) if box else Block("cell", _text(body), line=number)
        elif line.strip() == ":::":
            raise ChapterError(f"{path}, line {number}: this ::: closes nothing")
        else:
            prose += lines[at : end + 1]
        at = end + 1
    yield from _prose(prose)


def _closing(lines: list[Line], start: int, mark: str, path: Path) -> int:
    """Return the index of the line that closes a fence or a box; fences and boxes within a box are passed over."""
    at = start + 1
    while at < len(lines):
        line = lines[at][1]
        if line.strip() == mark:
            return at
        inner = FENCE.fullmatch(line) if mark == ":::" else None
        opened = inner[1] if inner else ":::" if mark == ":::" and OPENING.fullmatch(line) else None
        at = 1 + (_closing(lines, at, opened, path) if opened else at)
    raise ChapterError(f"{path}, line {lines[start][0]}: {lines[start][1]!r} is not closed; close it with {mark}")


def _box(opening: re.Match[str], body: list[Line], number: int, path: Path, allowed: tuple[str, ...]) -> Block:
    kind, title = opening[1], opening[2].strip()
    if kind not in allowed:
        raise ChapterError(f"{path}, line {number}: {unknown('box', kind, allowed)}")
    if kind in LEAVES:
        return Block(kind, _text(body), title, number)
    return Block(kind, title=title, line=number, blocks=tuple(_blocks(body, path, allowed=LEAVES)))


def _prose(lines: list[Line]) -> Iterator[Block]:
    if text := _text(lines).strip("\n"):
        yield Block("prose", text, line=lines[0][0])


def _text(lines: list[Line]) -> str:
    return "\n".join(line for _, line in lines)
