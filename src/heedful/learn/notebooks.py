"""Chapters as Jupyter notebooks (nbformat 4.5), which are JSON: text as Markdown, cells to run."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from .. import files
from .chapters import LANGUAGES, Block, Chapter, read_chapters
from .rendering import catalog

INSTALL = "%pip install -q heedful"  # for Colab; it changes nothing where heedful is installed
LINK = re.compile(r"\[([^]]+)\]\((\d\d|docs:[\w/-]+)\)")
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def write_notebooks(folder: Path) -> int:
    """Write every chapter of both languages below a folder, and return their number."""
    every = [chapter for language in LANGUAGES for chapter in read_chapters(language)]
    files_by_number = {chapter.number: f"{chapter.path.stem}.ipynb" for chapter in every}
    for chapter in every:
        target = folder / chapter.language / files_by_number[chapter.number]
        target.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(notebook(chapter, files_by_number), ensure_ascii=False, indent=1) + "\n"
        files.write_text(target, text)
    return len(every)


def notebook(chapter: Chapter, files_by_number: dict[str, str]) -> dict[str, Any]:
    """Return a chapter as a notebook; links to chapters lead to their files, other links of the course are text."""
    messages = catalog(chapter.language)

    def relink(match: re.Match[str]) -> str:
        file = files_by_number.get(match[2])
        return f"[{match[1]}]({file})" if file else match[1]

    def contents(blocks: Iterable[Block]) -> Iterator[tuple[str, str]]:
        for block in blocks:
            match block.kind:
                case "cell":
                    yield "code", block.text
                case "prose":
                    yield "markdown", LINK.sub(relink, block.text)
                case "formula":
                    yield "markdown", f"```text\n{block.text}\n```"
                case "figure":
                    live = f"`heedful learn {int(chapter.number)} --language {chapter.language}`"
                    yield "markdown", f"**{messages['figure']}** ({live}): {block.text}"
                case kind:
                    yield "markdown", f"### {messages[kind]} {block.title}".rstrip()
                    yield from contents(block.blocks)
                    if kind == "exercise":
                        yield "markdown", f"`heedful learn check {block.title}`"

    aims = [
        f"**{messages[key]}**\n\n" + "\n".join(f"- {item}" for item in items)
        for key, items in (("able", chapter.able), ("needs", chapter.needs))
    ]
    head = "\n\n".join([f"# {int(chapter.number)} · {chapter.title}", *aims])
    parts = [("code", INSTALL), ("markdown", head), *contents(chapter.blocks)]
    cells = [_cell(kind, text, f"cell-{place}") for place, (kind, text) in enumerate(parts)]
    return {"cells": cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}


def _cell(kind: str, text: str, name: str) -> dict[str, Any]:
    cell = {"id": name, "cell_type": kind, "metadata": {}, "source": text.splitlines(keepends=True)}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})
