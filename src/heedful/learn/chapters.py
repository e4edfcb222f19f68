"""The chapters of the course, read from Markdown files: prose, formulas, figures, cells of Python, and boxes.

---                             ::: figure map-of-the-model        :::: deep Boxes have four colons
title: The map                  The caption.                       They hold prose, cells, formulas and figures.
able: [what a reader can do]    :::                                ```python
needs: [what a reader knows]                                       heedful.build("base")
---                                                                ```
                                                                   ::::
"""

import re
from collections.abc import Iterable, Iterator, Sequence
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
HEAD = re.compile(r"---\n(.*?)^---\n(.*)", re.DOTALL | re.MULTILINE)
FENCE = re.compile(
    r"^(?P<mark>`{3,}|:{3,}) *(?P<kind>\S+)(?P<title>.*)\n(?P<body>(?:.*\n)*?)(?P=mark)(?:\n|\Z)", re.MULTILINE
)
MARK = re.compile(r"^(?:```|:::).*", re.MULTILINE)


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
    match = HEAD.match(path.read_text(encoding="utf-8"))
    head, body = match.groups() if match else ("", "")
    blocks = _blocks(body, path, head.count("\n") + 3, (*BOXES, *LEAVES))
    return Chapter(path, **_head(head, path), blocks=tuple(blocks))


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


def _blocks(text: str, path: Path, first: int, kinds: Sequence[str]) -> Iterator[Block]:
    """Divide text, whose first line has this number, into blocks. A fence that is not Python stays in the prose."""
    prose = end = 0  # where the prose since the last block begins, and where the last match ends
    for match in (*FENCE.finditer(text), None):
        start = match.start() if match else len(text)
        if stray := MARK.search(text, end, start):
            line = first + text.count("\n", 0, stray.start())
            raise ChapterError(f"{path}, line {line}: {stray[0]!r} is not closed, or closes nothing")
        end = match.end() if match else start
        if match and match["mark"][0] == "`" and match["kind"] != "python":
            continue
        if body := text[prose:start].strip("\n"):
            yield Block("prose", body, line=first + text.count("\n", 0, prose))
        if match:
            yield _block(match, path, first + text.count("\n", 0, start), kinds)
        prose = end


def _block(match: re.Match[str], path: Path, line: int, kinds: Sequence[str]) -> Block:
    kind, title, body = match["kind"], match["title"].strip(), match["body"]
    if match["mark"][0] == "`":
        return Block("cell", body.rstrip("\n"), line=line)
    if kind not in kinds:
        raise ChapterError(f"{path}, line {line}: {unknown('box', kind, kinds)}")
    if kind in LEAVES:
        return Block(kind, body.rstrip("\n"), title, line)
    return Block(kind, title=title, line=line, blocks=tuple(_blocks(body, path, line + 1, LEAVES)))
