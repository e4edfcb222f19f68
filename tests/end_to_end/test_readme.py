"""What the READMEs and CONTRIBUTING.md show, runs. The commands of README.md are run in test_task_docs.py."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).parents[2]
READMES = ("README.md", "README.ko.md")
KOREAN = {"README.md": "README.ko.md"} | {
    f"docs/{path.name}": f"docs/ko/{path.name}" for path in sorted((ROOT / "docs/ko").glob("*.md"))
}
BUILDING = "docs/build-a-model.md"
EXAMPLES = [
    pytest.param(code, id=f"{name}-{number}")
    for name in READMES
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), re.S))
]


@pytest.mark.parametrize("code", EXAMPLES)
def test_a_python_example_runs_as_it_stands(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README", "exec"), {})


def test_the_code_about_building_models_runs_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for code in re.findall(r"```python\n(.*?)```", (ROOT / BUILDING).read_text(encoding="utf-8"), re.S):
        exec(compile(code, BUILDING, "exec"), names)


def test_the_extension_points_in_contributing_work() -> None:
    """In a process of its own: what the page registers must not reach other tests."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.S)
    code = "\n".join(dedent(block) for block in blocks)
    assert "core.Positions" in code
    assert "use_backend" in code
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.parametrize(
    "page", [str(path.relative_to(ROOT)) for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))]
)
def test_every_link_leads_somewhere(page: str) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text(encoding="utf-8"))
    folder = (ROOT / page).parent
    missing = [link for link in links if not link.startswith("http") and not (folder / link).exists()]
    assert not missing


@pytest.mark.parametrize("english", KOREAN)
def test_a_korean_page_shows_the_same_code(english: str) -> None:
    """But for the comments in it."""
    pages = [(ROOT / name).read_text(encoding="utf-8") for name in (english, KOREAN[english])]
    blocks = [re.findall(r"^```(\w*)\n(.*?)^```", page, re.S | re.M) for page in pages]
    first, second = [[(kind, re.sub(r" *# .*", "", code)) for kind, code in found] for found in blocks]
    assert first == second


@pytest.mark.parametrize("english", ["docs/silent-failures.md", "docs/serving.md"])
def test_a_korean_table_has_the_same_figures(english: str) -> None:
    pages = [(ROOT / name).read_text(encoding="utf-8") for name in (english, KOREAN[english])]
    tables = [[line for line in page.splitlines() if line.startswith("|")] for page in pages]
    first, second = [[sorted(re.findall(r"\d+(?:\.\d+)?(?:e[+-]\d+)?", row)) for row in table] for table in tables]
    assert first == second


@pytest.mark.parametrize("english", KOREAN)
def test_a_page_and_its_korean_page_link_to_each_other(english: str) -> None:
    for name, other in ((english, KOREAN[english]), (KOREAN[english], english)):
        top = (ROOT / name).read_text(encoding="utf-8").partition("\n## ")[0]
        links = re.findall(r"\[(?:한국어|English)\]\(([^)]+)\)", top)
        assert [((ROOT / name).parent / link).resolve() for link in links] == [ROOT / other]


@pytest.mark.parametrize("name", [*READMES, "CONTRIBUTING.md"])
def test_the_make_commands_exist(name: str) -> None:
    targets = re.findall(r"^make (\w+)", (ROOT / name).read_text(encoding="utf-8"), re.M)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert targets
    assert all(re.search(rf"^{target}:", makefile, re.M) for target in targets)


def test_what_ci_runs_is_the_readmes_test_command() -> None:
    assert "make test" in (ROOT / ".ci/run").read_text(encoding="utf-8")
