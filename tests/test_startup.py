"""What a command imports before it has something to compute: neither torch nor numpy."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

TASKS = [
    *("translation", "text-to-text", "language-model", "classification", "question-answering", "tagging"),
    *("masked-lm", "images", "forecasting"),
]
COMMANDS = [
    "translate",
    "demo",
    "train",
    "predict",
    "look",
    "serve",
    "evaluate",
    "import",
    "export",
    "report",
    "lab",
    "learn",
    "doctor",
]

PROGRAM = """
import json, sys
from heedful.cli import main
sys.argv[0] = "heedful"
try:
    main()
except SystemExit as end:
    code = end.code
print()
print(json.dumps([code, sorted({"torch", "numpy", "tokenizers", "fastapi"} & set(sys.modules))]))
"""


def started(*arguments: str, **environment: str) -> tuple[str, list[str]]:
    """What a process printed, and which heavy packages it had imported at its end."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        check=True,
    )
    *output, last = done.stdout.splitlines()
    code, imported = json.loads(last)
    assert code in (0, None), done.stderr
    return "\n".join(output), imported


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        *([command, "--help"] for command in COMMANDS),
        *(["train", task, "--help"] for task in TASKS),
        *(["learn", command, "--help"] for command in ("start", "check")),
    ],
    ids=" ".join,
)
def test_help_and_version_import_neither_torch_nor_numpy(arguments: list[str]) -> None:
    output, imported = started(*arguments)
    assert output
    assert imported == []


@pytest.mark.parametrize(
    ("typed", "offered"), [("heedful pre", "predict"), ("heedful train la", "language-model"), ("heedful lo", "look")]
)
def test_shell_completion_imports_neither_torch_nor_numpy(typed: str, offered: str) -> None:
    position = str(len(typed.split()) - 1)
    output, imported = started(_HEEDFUL_COMPLETE="complete_bash", COMP_WORDS=typed, COMP_CWORD=position)
    assert output.split() == [offered]
    assert imported == []


def test_the_package_imports_torch_when_a_name_is_used() -> None:
    program = """
import sys, heedful
assert set(heedful.__all__) <= set(dir(heedful))
assert "torch" not in sys.modules and "numpy" not in sys.modules
assert callable(heedful.build) and "torch" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
