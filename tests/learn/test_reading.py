"""How a chapter is read from Markdown, what its cells print, and its notebook."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from heedful.learn.chapters import HERE, LANGUAGES, ChapterError, read_chapter, read_chapters
from heedful.learn.execution import run_cells
from heedful.learn.notebooks import INSTALL, write_notebooks

HEAD = "---\ntitle: A\nable: [b]\nneeds: [c]\n---\n"


def write(folder: Path, text: str, head: str = HEAD) -> Path:
    path = folder / "en" / "03-position.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(head + text, encoding="utf-8")
    return path


def test_a_chapter_is_divided_into_blocks_with_their_lines(tmp_path: Path) -> None:
    text = """First.

```python
x = "::: deep"
```
```text
::: figure no
```
:::: deep Why it works
Inside.
```text
:::
```
::: formula
a = b
:::
```python
x
```
::::
::: figure clock
Turn it.
:::
Last.
"""
    chapter = read_chapter(write(tmp_path, text))
    assert (chapter.number, chapter.language, chapter.title, chapter.able) == ("03", "en", "A", ("b",))
    assert [(block.kind, block.title, block.line) for block in chapter.blocks] == [
        ("prose", "", 6),
        ("cell", "", 8),
        ("prose", "", 11),
        ("deep", "Why it works", 14),
        ("figure", "clock", 26),
        ("prose", "", 29),
    ]
    assert [(block.kind, block.text) for block in chapter.blocks[3].blocks] == [
        ("prose", "Inside.\n```text\n:::\n```"),
        ("formula", "a = b"),
        ("cell", "x"),
    ]
    assert chapter.blocks[2].text == "```text\n::: figure no\n```"
    assert [cell.line for cell in chapter.all("cell")] == [8, 22]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\n:::: deap\nb\n::::\n", r"line 7: unknown box 'deap' \(did you mean 'deep'\?\)"),
        (":::: deep\nb\n", "line 6: ':::: deep' is not closed"),
        ("```python\nb\n", "line 6: '```python' is not closed"),
        ("a\n\n:::\n", "line 8: ':::' is not closed, or closes nothing"),
        (":::: deep\n::: recap\nb\n:::\n::::\n", "line 7: unknown box 'recap'"),
    ],
)
def test_a_mistake_names_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ChapterError, match=message):
        read_chapter(write(tmp_path, text))


@pytest.mark.parametrize("head", ["", "---\ntitle: A\n---\n", "---\ntitle: [\n---\n", HEAD.replace("able", "abel")])
def test_a_head_must_be_whole(tmp_path: Path, head: str) -> None:
    with pytest.raises(ChapterError, match=r"03-position\.md: "):
        read_chapter(write(tmp_path, "text", head))


def outputs(folder: Path, *cells: str) -> list[tuple[str, str | None]]:
    text = "".join(f"```python\n{cell}\n```\n" for cell in cells)
    return [(output.text, output.error) for output in run_cells(read_chapter(write(folder, text)))]


def test_a_cell_shows_what_it_printed_and_its_last_expression(tmp_path: Path) -> None:
    cells = (
        "import math\nprint('a')\nmath.sqrt(4)",
        "x = 3",
        "None",
        "",
        "print(x)",
        "def f():\n    return x\nf() + 1",
    )
    assert outputs(tmp_path, *cells) == [("a\n2.0", None), ("", None), ("", None), ("", None), ("3", None), ("4", None)]


def test_an_error_is_shown_and_the_next_cell_runs(tmp_path: Path) -> None:
    cells = ("print(1)\n1 / 0", "x +", "print(2)")
    assert outputs(tmp_path, *cells) == [
        ("1", "ZeroDivisionError: division by zero"),
        ("", "SyntaxError: invalid syntax (03-position.md, line 10, line 1)"),
        ("2", None),
    ]


def test_cells_leave_the_random_state_and_the_output_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    outputs(tmp_path, "import torch\ntorch.manual_seed(5)\nprint(torch.rand(2).shape)")
    assert torch.equal(torch.rand(3), expected)
    assert capsys.readouterr().out == ""


def test_the_code_of_a_notebook_runs_from_top_to_bottom(tmp_path: Path) -> None:
    """In a process of its own, as a kernel would; it prints what the page shows."""
    count = write_notebooks(tmp_path)
    paths = sorted(tmp_path.rglob("*.ipynb"))
    assert len(paths) == count == len(list(HERE.glob("*/*.md")))
    notebook = json.loads((tmp_path / "en" / "00-the-map.ipynb").read_text("utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    code = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert code[0] == INSTALL
    done = subprocess.run([sys.executable, "-c", "\n".join(code[1:])], capture_output=True, text=True, check=True)
    chapter = read_chapter(HERE / "en" / "00-the-map.md")
    assert len(code) == 1 + len(chapter.all("cell"))
    shown = "\n".join(output.text for output in run_cells(chapter)).splitlines()
    assert [line for line in done.stdout.splitlines() if line not in shown] == []


def test_every_notebook_is_valid_and_its_links_lead_somewhere(tmp_path: Path) -> None:
    write_notebooks(tmp_path)
    for path in tmp_path.rglob("*.ipynb"):
        notebook = json.loads(path.read_text("utf-8"))
        assert notebook.keys() == {"cells", "metadata", "nbformat", "nbformat_minor"}
        cells = notebook["cells"]
        assert len({cell["id"] for cell in cells}) == len(cells)
        for cell in cells:
            keys = {"id", "cell_type", "metadata", "source"}
            assert cell.keys() == keys | ({"execution_count", "outputs"} if cell["cell_type"] == "code" else set())
            links = re.findall(r"\]\(([^)]+)\)", "".join(cell["source"]) if cell["cell_type"] == "markdown" else "")
            assert all(link.startswith("http") or (path.parent / link).is_file() for link in links)


def test_the_languages_have_the_same_chapters() -> None:
    english, korean = ([chapter.path.name for chapter in read_chapters(name)] for name in LANGUAGES)
    assert english == korean
    assert english == sorted(english)
