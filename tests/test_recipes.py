"""Every recipe is one that `heedful train` takes, and says how it is used and what comes of it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heedful.cli import train_command
from heedful.config import read_mapping
from heedful.tasks.registry import TRAINED
from shell import heedful

ROOT = Path(__file__).parents[1]
RECIPES = sorted((ROOT / "recipes").iterdir())
LABELS = ("Data", "Hardware", "Expected", "Spread")
PAGES = ("training-speed", "clusters")
each_recipe = pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)


class AskedError(Exception):
    """What a run was asked for, in its place."""

    def __init__(self, task: Any, settings: Any, files: Any, *_: Any) -> None:
        self.task, self.settings, self.files = task, settings, files


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[str]], AskedError]:
    """What `heedful train` would have run: its options and its --config are read, and nothing is trained."""

    def stop(*given: Any) -> None:
        raise AskedError(*given)

    def train(words: list[str]) -> AskedError:
        monkeypatch.chdir(ROOT)
        monkeypatch.setattr(train_command, "run_training", stop)
        with pytest.raises(AskedError) as found:
            heedful(*words)
        return found.value

    return train


def header(path: Path) -> str:
    """The comment that a recipe begins with."""
    lines = path.read_text(encoding="utf-8").splitlines()
    end = next(number for number, line in enumerate(lines) if not line.startswith("#"))
    return "\n".join(line.removeprefix("#") for line in lines[:end])


def commands(text: str) -> list[list[str]]:
    """Each line that calls heedful, by itself or by torchrun, without what stands before its verb."""
    whole = re.sub(r"\\\n\s*", " ", text)
    lines = re.findall(r"^\s*(?:srun )?(?:torchrun .*-m )?heedful (.+)$", whole, re.M)
    return [shlex.split(line, comments=True) for line in lines]


def labels(text: str) -> dict[str, str]:
    """What stands behind each label below the first line, with the lines that go on with it."""
    found = re.findall(r"^ ([A-Z]\w+): (.+(?:\n     .+)*)", text.partition("\n")[2], re.M)
    return {label: re.sub(r"\s+", " ", said) for label, said in found}


@each_recipe
def test_a_recipe_is_what_its_first_command_trains(path: Path, asked: Callable[[list[str]], AskedError]) -> None:
    train = commands(header(path))[0]
    assert f"recipes/{path.name}" in train
    found = asked(train)
    values = read_mapping(path)
    task = TRAINED[values.pop("task")]
    assert (found.task.name, train[1]) == (task.name, task.name)
    assert found.settings == task.config_class.from_dict(values)
    assert found.files.train


@each_recipe
def test_every_command_of_a_recipe_is_one_there_is(path: Path) -> None:
    for words in commands(header(path)):
        understood(words)


@each_recipe
def test_a_recipe_says_what_comes_of_it(path: Path) -> None:
    said = labels(header(path))
    assert tuple(said) == LABELS
    assert re.search(r"\d|^no score is claimed", said["Expected"])
    assert re.search(r"\bone seed\b|\bseeds\b|^none\b", said["Spread"])


@pytest.mark.parametrize("name", PAGES)
def test_every_command_of_the_pages_about_training_is_one_there_is(name: str) -> None:
    shown = re.findall(r"```sh\n(.*?)```", (ROOT / f"docs/{name}.md").read_text(encoding="utf-8"), re.S)
    found = commands("\n".join(shown))
    assert found
    for words in found:
        understood(words)
        for recipe in (word for word in words if word.startswith("recipes/")):
            assert (ROOT / recipe).is_file()


def understood(words: list[str]) -> None:
    """Its verb and its options exist: they are read before --help is followed."""
    done = heedful(*(word for word in words if word != "$resume"), "--help")
    assert done.code == 0, f"{shlex.join(words)}\n{done.err}"


def test_an_option_that_does_not_exist_is_not_understood() -> None:
    with pytest.raises(AssertionError, match="--dta"):
        understood(["train", "images", "--dta", "mnist", "--out", "runs/mnist"])


def test_every_recipe_has_its_place_in_the_page() -> None:
    page = (ROOT / "docs/training-speed.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| \[([\w-]+)\]\(\.\./recipes/\1\.yaml\)", page, re.M) == [path.stem for path in RECIPES]
