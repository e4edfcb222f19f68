"""The examples and the links of the READMEs work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
READMES = ("README.md", "README.ko.md")
EXAMPLES = [
    pytest.param(code, id=f"{name}-{number}")
    for name in READMES
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), re.S))
]


@pytest.mark.parametrize("code", EXAMPLES)
def test_a_python_example_runs_as_it_stands(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README", "exec"), {})


@pytest.mark.parametrize("page", [*READMES, *(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md"))])
def test_every_link_leads_somewhere(page: str) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text(encoding="utf-8"))
    folder = (ROOT / page).parent
    missing = [link for link in links if not link.startswith("http") and not (folder / link).exists()]
    assert not missing


@pytest.mark.parametrize("name", READMES)
def test_the_make_commands_exist(name: str) -> None:
    targets = re.findall(r"^make (\w+)", (ROOT / name).read_text(encoding="utf-8"), re.M)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert targets
    assert all(re.search(rf"^{target}:", makefile, re.M) for target in targets)


def test_what_ci_runs_is_the_readmes_test_command() -> None:
    assert "make test" in (ROOT / ".ci/run").read_text(encoding="utf-8")
