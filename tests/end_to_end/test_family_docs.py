"""What the pages about families, import and export say, is so: their code is the tree's, their commands run."""

from __future__ import annotations

import re
import shlex
from dataclasses import fields
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers

from heedful.errors import ConfigError
from heedful.families import FAMILIES, GenerationDefaults, Imported, build, hf_config, write_checkpoint
from heedful.families.ctranslate2 import Model, Vocabularies, write_folder
from heedful.families.weight_map import Link, WeightMap
from heedful.tasks.model_import import IMPORTED_TASKS, published_task
from published_pairs import pair
from shell import heedful

ROOT = Path(__file__).parents[2]
ADDING, IMPORTING = ((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("add-a-family.md", "import.md"))
LEFT_OUT = re.compile(r"^ *# …\n", re.M)
MINILM, CT2 = "all-MiniLM-L6-v2", "aren-ct2"


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, re.S)


def table(page: str, heading: str) -> list[list[str]]:
    """The rows of the table that has this as its first line."""
    _, section = page.split(heading + "\n", 1)
    rows = section.partition("\n\n")[0].splitlines()[1:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def source(name: str) -> str:
    path = ROOT / name if name.startswith("tests/") else ROOT / "src/heedful" / name
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("block", blocks(ADDING, "python"))
def test_the_code_shown_is_the_code_there_is(block: str) -> None:
    first, _, code = block.partition("\n")
    written = source(first.removeprefix("# "))
    place = 0
    for part in LEFT_OUT.split(code):
        place = written.find(part, place)
        assert place >= 0, f"{first} does not have, in this order:\n{part}"


def test_the_family_shown_is_as_short_as_the_page_says() -> None:
    (lines,) = re.findall(r"`families/opt\.py`, (\d+) lines", ADDING)
    assert int(lines) == len(source("families/opt.py").splitlines())


def test_the_opt_with_norms_after_is_refused_in_the_words_shown() -> None:
    message = ADDING.split("```\nopt: ", 1)[1].partition("\n")[0]
    narrow: dict[str, Any] = {"hidden_size": 1024, "word_embed_proj_dim": 512}
    with pytest.raises(ConfigError, match=re.escape(f"opt: {message}") + "$"):
        read_opt(**narrow, do_layer_norm_before=False)
    with pytest.raises(ConfigError, match="hidden_size=1024 and word_embed_proj_dim=512 differ"):
        read_opt(**narrow)


def read_opt(**values: Any) -> Any:
    family = FAMILIES["opt"]
    assert family.published is not None
    return family.published.read(values, family.config)


def test_the_words_of_tables_and_settings_are_those_there_are() -> None:
    known = {field.name for field in fields(WeightMap)} | set(Link._fields)
    rows = table(ADDING, "| | purpose | used by |")
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row[0])}
    assert named == known - {"links", "local", "hf"}
    settings = [row[0].strip("`") for row in table(ADDING, "| | how the field is read |")]
    assert all(hasattr(hf_config, name) for name in settings)


@torch.no_grad()
def test_the_smallest_opt_is_as_large_as_the_published_one() -> None:
    with torch.device("meta"):
        assert sum(parameter.numel() for parameter in build("opt-125m").parameters()) == 125_239_296


@cache
def tasks() -> dict[tuple[str, str], str]:
    """Of every family and class of transformers that is read: the task of what it becomes."""
    task_by_class = {}
    for tag, family in FAMILIES.items():
        heads = dict(reversed(family.published.architectures)) if family.published else {}  # the first of a name counts
        for name, implied in heads.items():
            config = family.config(**implied)
            with torch.device("meta"):
                task_by_class[tag, name] = published_task(Imported(family.build(config), config, GenerationDefaults()))
    return task_by_class


def test_every_class_that_is_read_stands_beside_its_task() -> None:
    assert "`ViTModel` and `DeiTModel` have no classifier" in IMPORTING
    rows = table(IMPORTING, "| task | families | classes | `predict` |")
    stated = {
        (family, name, task.strip("`"))
        for task, families, classes, _ in rows
        for family, name in tasks()
        if family in families.split(", ") and any(fnmatchcase(name, pattern) for pattern in classes.split(", "))
    }
    assert stated == {(*key, task) for key, task in tasks().items() if key[1] not in ("ViTModel", "DeiTModel")}
    assert {row[0].strip("`") for row in rows} == set(IMPORTED_TASKS)


@pytest.mark.parametrize("name", ["README.md", "README.ko.md"])
def test_a_readme_shows_what_the_page_shows(name: str) -> None:
    examples = commands((ROOT / name).read_text(encoding="utf-8"), "bash")
    documented = commands(IMPORTING, "sh")
    assert [command for command in examples if {"minilm", MINILM} & set(command)] == documented[:3]


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folders that the page names, with tiny models in them."""
    monkeypatch.chdir(tmp_path)
    both = pair("bert hidden")
    write_checkpoint(MINILM, both.module, both.config)
    tokenizer: Any = Tokenizer(models.WordLevel({"?": 0, "A": 1, "cat": 2}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(f"{MINILM}/tokenizer.json")
    pytest.importorskip("ctranslate2", reason="needs CTranslate2: pip install heedful[ctranslate2]")
    module = build(
        {"family": "original", "vocab_size": 6, "d_model": 8, "n_heads": 2, "d_ff": 8, "n_encoder_layers": 1}
    )
    tokens = ("<unk>", "<s>", "</s>", *"آتز")
    Path(CT2).mkdir()
    write_folder(Model(module, Vocabularies(tokens, tokens), GenerationDefaults(start=1, end=(2,))), CT2)


def commands(page: str, language: str) -> list[list[str]]:
    return [shlex.split(line, comments=True) for line in "".join(blocks(page, language)).splitlines()]


@pytest.mark.usefixtures("folders")
def test_the_commands_and_the_code_about_importing_run() -> None:
    for program, *arguments in commands(IMPORTING, "sh"):
        done = heedful(*arguments)
        assert (program, done.code) == ("heedful", 0), done.err
    for number, code in enumerate(blocks(IMPORTING, "python")):
        exec(compile(code.replace('"minilm"', f'"minilm-{number}"'), "import.md", "exec"), {})
