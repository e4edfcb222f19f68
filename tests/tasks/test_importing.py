"""`heedful import`: what is taken along, and what is refused in one line, with nothing left behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

import heedful
import published_folders as published
from heedful.tasks import model_import
from heedful.tasks.model_import import import_model
from published_folders import publish, write
from shell import heedful as shell


def without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def changed(**values: Any) -> Callable[[Path], None]:
    """Another config.json."""

    def change(folder: Path) -> None:
        write(folder / "config.json", json.loads((folder / "config.json").read_text()) | values)

    return change


def larger_tokenizer(folder: Path) -> None:
    fast = Tokenizer.from_file(str(folder / "tokenizer.json"))
    fast.add_tokens([f"new{index}" for index in range(20)])
    fast.save(str(folder / "tokenizer.json"))


def older_tokenizer(folder: Path) -> None:
    without("tokenizer.json")(folder)
    write(folder / "vocab.txt", "a\nb\n")


REFUSED: dict[str, tuple[Callable[[Path], None], tuple[str, ...], int, str]] = {
    "no tokenizer": (without("tokenizer.json"), (), 1, "has no tokenizer.json. transformers writes one: AutoTokenizer"),
    "an older tokenizer": (older_tokenizer, (), 1, "; vocab.txt is read by other programs"),
    "a damaged tokenizer": (lambda folder: write(folder / "tokenizer.json", "{"), (), 1, "not a tokenizer file"),
    "a larger tokenizer": (larger_tokenizer, (), 1, "has ids up to 219, but the model has 200 tokens"),
    "no weights": (without("model.safetensors"), (), 1, "holds no weights that are read here"),
    "no config": (without("config.json"), (), 1, "has no config.json"),
    "an unknown model": (changed(model_type="berd"), (), 2, "did you mean 'bert'"),
    "an unknown class": (changed(architectures=["BertForMaskedLMs"]), (), 2, "did you mean 'BertForMaskedLM'"),
    "a task of another kind": (
        lambda _: None,
        ("--task", "images"),
        2,
        "is a model for masked-lm, and not for images; as",
    ),
    "a task without weights": (lambda _: None, ("--task", "classification"), 1, "classifier"),
    "no task": (lambda _: None, ("--task", "reading"), 2, "reading"),
    "a unit": (lambda _: None, ("--unit", "words"), 2, "--unit is for CTranslate2 models without a tokenizer"),
    "no unit": (lambda _: None, ("--unit", "syllables"), 2, "syllables"),
    "no mask": (lambda folder: published.unigram().save(str(folder / "tokenizer.json")), (), 1, "has no mask token"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_imported_is_refused_in_one_line(case: str, tmp_path: Path) -> None:
    spoil, words, code, why = REFUSED[case]
    folder = publish(tmp_path / "theirs", published.bert())
    if case == "no mask":
        write(folder / "tokenizer_config.json", {})
    spoil(folder)
    done = shell("import", folder, "--out", tmp_path / "new" / "ours", *words)
    assert (done.code, done.out) == (code, "")
    assert why in done.err
    assert "Traceback" not in done.err
    if case not in ("no task", "no unit"):  # the shell's own words come in a box
        assert done.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["theirs"]


def test_only_readers_serve_several_tasks(tmp_path: Path) -> None:
    folder = publish(tmp_path / "theirs", published.gpt2())
    done = shell("import", folder, "--task", "embedding", "--out", tmp_path / "ours")
    assert done.code == 2
    assert done.err.endswith("is a model for language-model, and not for embedding\n")


def test_a_reader_of_masked_words_serves_as_an_embedder(tmp_path: Path) -> None:
    folder = publish(tmp_path / "theirs", published.bert())
    done = shell("import", folder, "--task", "embedding", "--out", tmp_path / "new" / "ours")
    assert (done.code, done.err) == (0, "")
    assert "a bert model for embedding" in done.out
    config: Any = heedful.load(tmp_path / "new" / "ours", "embedding").config
    assert config.head == "mean"


def test_folders_that_are_not_there_or_in_the_way(tmp_path: Path) -> None:
    assert "is not there; a checkpoint is a folder" in shell("import", tmp_path / "no", "--out", tmp_path / "ours").err
    (tmp_path / "file").write_text("")
    assert "is a file; a checkpoint is a folder" in shell("import", tmp_path / "file", "--out", tmp_path / "ours").err
    folder = publish(tmp_path / "theirs", published.bert())
    for out in (tmp_path / "file", folder):
        before = {path.name: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
        done = shell("import", folder, "--out", out)
        assert done.code == 1
        assert "already exists and is not an empty folder; choose another one (--out)" in done.err
        assert {path.name: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    (tmp_path / "empty").mkdir()
    assert shell("import", folder, "--out", tmp_path / "empty").code == 0
    again = shell("import", tmp_path / "empty", "--out", tmp_path / "again")
    assert again.code == 1
    assert "is a Heedful bundle" in again.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "file", "theirs"]


def test_authors_words_go_along_and_nothing_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"auto_map": {"AutoTokenizer": "evil.Code"}, "mask_token": "[MASK]"}
    folder = publish(tmp_path / "theirs", published.bert(), README_md="# 라이선스\n", tokenizer_config_json=said)
    write(folder / "evil.py", "raise SystemExit")
    changed(auto_map={"AutoModel": "evil.Code"})(folder)
    import_model(folder, tmp_path / "ours")
    names = ["AUTHORS.md", "README.md", "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    assert sorted(path.name for path in (tmp_path / "ours").iterdir()) == names
    assert (tmp_path / "ours" / "AUTHORS.md").read_bytes() == (folder / "README.md").read_bytes()
    assert "in AUTHORS.md" in (tmp_path / "ours" / "README.md").read_text()
    assert not [path for path in (tmp_path / "ours").iterdir() if b"auto_map" in path.read_bytes()]
    monkeypatch.setattr(model_import, "MAX_CARD_BYTES", 5)
    import_model(folder, tmp_path / "other")
    assert not (tmp_path / "other" / "AUTHORS.md").exists()
    assert "AUTHORS" not in (tmp_path / "other" / "README.md").read_text()
    assert model_import.MAX_CARD_BYTES == 5
    monkeypatch.undo()
    assert model_import.MAX_CARD_BYTES == 2**20


def test_two_labels_of_one_name_and_an_unknown_problem_are_refused(tmp_path: Path) -> None:
    folder = publish(tmp_path / "theirs", published.bert("ForSequenceClassification", num_labels=2))
    changed(id2label={"0": "a", "1": "a"})(folder)
    done = shell("import", folder, "--out", tmp_path / "ours")
    assert (done.code, "the labels a occur twice" in done.err) == (2, True)
    changed(id2label={"0": "a", "1": "b"}, problem_type="single_label")(folder)
    done = shell("import", folder, "--out", tmp_path / "ours")
    assert (done.code, "problem_type" in done.err) == (2, True)
    assert not (tmp_path / "ours").exists()


def test_a_model_with_two_vocabularies_wants_two_tokenisers(tmp_path: Path) -> None:
    sides = {"decoder_vocab_size": 200, "share_encoder_decoder_embeddings": False}
    folder = publish(tmp_path / "theirs", published.marian(**sides))
    done = shell("import", folder, "--out", tmp_path / "ours")
    assert done.code == 1
    assert "reads 300 tokens and writes 200, so it needs a tokenizer for each side" in done.err
    published.wordpiece().save(str(folder / "target_tokenizer.json"))
    model = import_model(folder, tmp_path / "ours")
    assert (model.tokenizer.vocab_size, model.target_tokenizer.vocab_size) == (300, 200)
    published.byte_level().save(str(folder / "target_tokenizer.json"))
    assert "they do not belong together" in shell("import", folder, "--out", tmp_path / "other").err


def test_a_card_that_is_linked_from_elsewhere_is_not_copied(tmp_path: Path) -> None:
    folder = publish(tmp_path / "models--a" / "snapshots" / "1", published.bert())
    (tmp_path / "secret").write_text("secret")
    (folder / "README.md").symlink_to(tmp_path / "secret")
    import_model(folder, tmp_path / "ours")
    assert not (tmp_path / "ours" / "AUTHORS.md").exists()
    (folder / "README.md").unlink()
    (tmp_path / "models--a" / "blobs").mkdir()
    (tmp_path / "models--a" / "blobs" / "0").write_text("# A model")
    (folder / "README.md").symlink_to("../../blobs/0")  # as the hub's cache has it
    import_model(folder, tmp_path / "again")
    assert (tmp_path / "again" / "AUTHORS.md").read_text() == "# A model"
