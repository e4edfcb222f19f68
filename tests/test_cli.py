"""The command line: help, exit codes, one-line errors, and output on any terminal."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from heedful import __version__, build
from heedful.cli.app import app
from heedful.cli.train import TASKS as TRAIN_COMMANDS
from heedful.families import presets
from heedful.tasks.bundle import BundleError
from shell import Done, heedful

TASKS = [
    *("translation", "text-to-text", "language-model", "classification", "question-answering", "tagging"),
    *("masked-lm", "images", "forecasting"),
]
VERBS = [
    *(
        "translate",
        "demo",
        "train",
        *(f"train {task}" for task in TASKS),
        "predict",
        "look",
        "evaluate",
        "report",
        "import",
    ),
    *("export", "lab", "learn", "learn open", "learn site", "learn notebooks", "learn start", "learn check", "doctor"),
]


def process(*command_line: object, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """The shell as a person starts it."""
    command = [sys.executable, "-m", "heedful", *map(str, command_line)]
    return subprocess.run(command, capture_output=True, env=os.environ | environment, check=False)


def test_the_version_is_printed() -> None:
    assert heedful("--version") == Done(0, f"heedful {__version__}\n".encode(), "")


def test_without_arguments_the_help_is_shown() -> None:
    done = heedful()
    for verb in VERBS:
        assert verb.split()[0] in done.out + done.err


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_every_command_has_help_with_an_example_in_eighty_columns(verb: str) -> None:
    done = heedful(*verb.split(), "--help")
    assert done.code == 0
    assert f"Example: heedful {verb}" in " ".join(done.out.split())
    assert max(map(len, done.out.splitlines())) <= 80


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_flags_are_shown_without_a_value(verb: str) -> None:
    out = heedful(*verb.split(), "--help").out
    assert "bool" not in out.lower()
    flags = re.findall(r"│ +--(?:help|debug|resume|overwrite|allow-changes) +(.*)", out)
    assert flags
    assert all(help_text[0].isupper() for help_text in flags)


@pytest.mark.parametrize(
    "command_line",
    [["dmo"], ["demo", "--language", "fr"], ["demo", "--nothing"], ["predict"], ["train", "cooking"], ["report"]],
)
def test_wrong_use_exits_with_two(command_line: list[str]) -> None:
    done = heedful(*command_line)
    assert done.code == 2
    assert "Traceback" not in done.err


def test_a_mistyped_command_is_corrected() -> None:
    assert "Did you mean 'predict'?" in heedful("predit").err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("train translation --data a.tsv --from ko", "the option --from is now --source"),
        ("train translation --data a.tsv --to=en", "the option --to is now --target"),
        ("train classification --data a.tsv --from model", "the option --from is now --init-from"),
        ("train language_model --data a.txt", "the task language_model is now language-model"),
        ("train masked --data a.txt", "the task masked is now masked-lm"),
        ("import folder --out model --task masked", "the task masked is now masked-lm"),
        ("tour", "the command tour is now learn"),
        ("look model text --lang ko", "the option --lang is now --language"),
    ],
)
def test_an_old_name_is_one_line_with_the_new_name(arguments: str, message: str) -> None:
    done = heedful(*arguments.split())
    assert (done.code, done.err) == (2, f"error: {message}\n")


def test_an_old_task_name_in_a_config_is_one_line_with_the_new_name(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("task: masked\n")
    done = heedful("train", "masked-lm", "--config", tmp_path / "run.yaml", "--out", tmp_path / "run")
    assert done.code == 2
    assert done.err.endswith("the task masked is now masked-lm\n")
    assert len(done.err.splitlines()) == 1


def test_an_option_has_the_same_help_in_all_commands() -> None:
    group: Any = get_command(app)
    inner = [command for name in ("train", "learn") for command in group.commands[name].commands.values()]
    commands = [*group.commands.values(), *inner]
    for option in ("--device", "--precision", "--seed", "--language", "--set", "--init-from", "--columns"):
        helps = {param.help for command in commands for param in command.params if option in param.opts}
        starts = {text.partition(".")[0] for text in helps} if option == "--columns" else helps
        assert len(starts) == 1, (option, starts)


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_models_of_three_sizes(task: str) -> None:
    sizes = [build(preset) for preset in TRAIN_COMMANDS[task]["sizes"][:2]]
    tiny, small = (sum(parameter.numel() for parameter in module.parameters()) for module in sizes)
    assert tiny < small
    assert TRAIN_COMMANDS[task]["sizes"][2] in presets()


def test_the_doctor_lists_what_it_finds() -> None:
    done = heedful("doctor")
    assert done.code == 0, done.out
    columns = {re.sub(r"^(. .{20}).*", r"\1", line)[-1] for line in done.out.splitlines()}
    assert columns == {" "}  # every name is shorter than its column
    assert "smoke test" in done.out


def test_a_failure_is_one_line_and_a_traceback_only_on_request(tmp_path: Path) -> None:
    done = heedful("predict", tmp_path / "nowhere", "a")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"error: {tmp_path / 'nowhere'} is not a folder; ")
    assert len(done.err.splitlines()) == 1
    for command_line in (["--debug", "predict", tmp_path, "a"], ["predict", tmp_path, "a", "--debug"]):
        with pytest.raises(BundleError):  # comes out of main, and Python shows it
            heedful(*command_line)
    assert heedful("predict", tmp_path / "nowhere", "--", "--debug").code == 1  # a text, behind --


def test_a_system_error_is_one_line_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = heedful("learn", "notebooks", tmp_path / "file")
    assert done.code == 1
    assert done.err == f"error: {tmp_path / 'file' / 'en'}: Not a directory\n"


def test_an_error_about_odd_text_stays_one_line_and_moves_no_cursor(tmp_path: Path) -> None:
    done = heedful("predict", f"{tmp_path}/[red]a\nb\x1b[2J[/]", "x")
    assert done.code == 1
    assert len(done.err.splitlines()) == 1
    assert "[red]a b�[2J[/]" in done.err


def test_an_ascii_terminal_gets_escaped_text(tmp_path: Path) -> None:
    done = heedful("predict", tmp_path / "없다", "x", encoding="ascii")
    assert done.code == 1
    assert r"\uc5c6\ub2e4 is not a folder" in done.err
    done = heedful("doctor", encoding="ascii")
    assert done.code == 0
    assert r"\u2713" in done.out
    assert "+--" in heedful("predict", "--help", encoding="ascii").out  # borders drawn with what there is


def test_other_locales_and_terminals(tmp_path: Path) -> None:
    """Whatever the surroundings, the words are there and nothing else is."""
    surroundings = [
        {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
        {"NO_COLOR": "1", "FORCE_COLOR": "1", "COLUMNS": "20", "TERM": "xterm"},
    ]
    for environment in surroundings:
        done = process("predict", tmp_path / "없다", "안녕", **environment)
        assert done.returncode == 1
        assert b"Traceback" not in done.stderr
        assert b"is not a folder" in done.stderr
        assert b"\x1b[3" not in done.stderr  # no colour
