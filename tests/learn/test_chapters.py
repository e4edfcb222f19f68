"""Every chapter in both languages: its cells run, its figures are computed, and it has the parts that a chapter has."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from heedful.cli.app import app
from heedful.lab import EXPERIMENTS
from heedful.learn import exercises
from heedful.learn.chapters import HERE, LANGUAGES, NUMBERS, Block, Chapter, read_chapter
from heedful.learn.execution import run_cells
from heedful.learn.figures import figure_data, script_of
from heedful.learn.rendering import HERE as PAGE

PATHS = sorted(HERE.glob("*/*.md"))
chapter_of = pytest.mark.parametrize("path", PATHS, ids=lambda path: f"{path.parent.name}/{path.stem}")


@chapter_of
def test_every_cell_runs(path: Path) -> None:
    chapter = read_chapter(path)
    errors = [(cell.line, output.error) for cell, output in zip(chapter.all("cell"), run_cells(chapter), strict=True)]
    assert [error for error in errors if error[1]] == []


def test_a_cell_shows_its_last_expression_alone() -> None:
    code = ("first, _ = 1, 2", "print(first)", "first + 1")
    outputs = run_cells(Chapter(Path("00-x.md"), "", (), (), tuple(Block("cell", text) for text in code)))
    assert [output.text for output in outputs] == ["", "1", "2"]


@chapter_of
def test_every_figure_is_computed_and_has_a_script(path: Path) -> None:
    chapter = read_chapter(path)
    for block in chapter.all("figure"):
        assert figure_data(block.title, chapter.language)
        script, export = script_of(block.title)
        assert f"export const {export} = " in (PAGE / "script" / "figures" / script).read_text(encoding="utf-8")


@chapter_of
def test_a_chapter_has_all_parts_in_order(path: Path) -> None:
    chapter = read_chapter(path)
    kinds = [block.kind for block in chapter.blocks]
    assert kinds[0] == "prose"
    for kind in ("analogy", "misconception", "exercise"):
        assert kinds.count(kind) == 1, kind
    assert chapter.all("figure")
    assert kinds[-2:] == ["recap", "reading"]


@pytest.mark.parametrize("number", sorted({path.name[:2] for path in PATHS}))
def test_both_languages_have_the_same_cells_and_figures(number: str) -> None:
    def skeleton(chapter: Chapter) -> list[object]:
        return [(block.kind, block.title if block.kind in ("figure", "exercise") else "") for block in chapter.blocks]

    english, korean = (read_chapter(next((HERE / language).glob(f"{number}-*.md"))) for language in LANGUAGES)
    for kind in ("cell", "figure"):
        assert len(english.all(kind)) == len(korean.all(kind))
    assert [block.title for block in english.all("figure")] == [block.title for block in korean.all("figure")]
    assert [item for item in skeleton(english) if item[0] != "prose"] == [  # type: ignore[index]
        item
        for item in skeleton(korean)
        if item[0] != "prose"  # type: ignore[index]
    ]


def test_all_chapters_exist() -> None:
    for language in LANGUAGES:
        assert tuple(sorted(path.name[:2] for path in (HERE / language).glob("*.md"))) == NUMBERS


def parse(line: str) -> dict[str, Any]:
    """Parse a command line; return the values of its options and arguments. A command alone may lack arguments."""
    command: Any = get_command(app)
    context, (name, *arguments) = None, shlex.split(line)
    while hasattr(command, "commands"):
        context = command.make_context(name, arguments, parent=context)
        name, command, arguments = command.resolve_command(context, [*context._protected_args, *context.args])
    final = command.make_context(name, arguments, parent=context, resilient_parsing=not arguments)
    return {"command": command.name, **final.params}


@chapter_of
def test_every_command_line_can_be_run(path: Path) -> None:
    chapter = read_chapter(path)
    lines = re.findall(r"`(heedful [^`]+)`|^(heedful .+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for line in (inline or block for inline, block in lines):
        values = parse(line)
        if values["command"] == "lab":
            assert values["experiment"] in (None, "all", *EXPERIMENTS), line
    files = re.findall(r"`(\d\d_\w+)\.py`", path.read_text(encoding="utf-8"))
    assert set(files) <= {exercises.NAMES[int(chapter.number)]}
    assert [block.title for block in chapter.all("exercise")] == [str(int(chapter.number))]


def test_a_wrong_command_line_is_noticed() -> None:
    assert parse("heedful lab warm-up --seeds 5")["experiment"] == "warm-up"
    for line in ("heedful laboratory", "heedful lab warm-up --seed 5", "heedful learn start a b"):
        with pytest.raises(Exception, match=r"No such|Unexpected|unexpected"):
            parse(line)
