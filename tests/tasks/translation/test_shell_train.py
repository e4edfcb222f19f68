"""`heedful train translation`: one command for every model, file and setting."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import heedful as package
from heedful.config import read_mapping
from shell import heedful, quick_train, settings
from tiny_report import report_held

pytest_plugins = ["quick_model"]

BUNDLE = ("config.json", "model.safetensors", "tokenizer.json", "metrics.json", "README.md", "report.html", "log.jsonl")


def flat(text: str) -> str:
    return " ".join(text.split())


def test_files_may_follow_one_option_or_several(corpus: Path, tmp_path: Path) -> None:
    lines = (corpus / "train.tsv").read_text().splitlines(keepends=True)
    parts = [tmp_path / f"part{number}.tsv" for number in range(3)]
    for number, part in enumerate(parts):
        part.write_text("".join(lines[number::3]))
    one, two, three = parts
    together = quick_train(tmp_path / "together", [one, two, three])
    apart = quick_train(tmp_path / "apart", [one], "--data", two, "--data", three)
    assert (together.code, apart.code) == (0, 0), together.err + apart.err
    assert (tmp_path / "together/model.safetensors").read_bytes() == (tmp_path / "apart/model.safetensors").read_bytes()
    assert read_mapping(tmp_path / "apart/run.yaml")["files"]["train"] == [str(part) for part in parts]


def test_a_table_says_what_was_read_and_dropped_and_where(tmp_path: Path) -> None:
    rows = [f"a b {n}\tb a {n}" for n in range(100)]
    rows[10] = rows[3]  # a duplicate, on line 11
    rows[20] = "\tx"
    rows[30] = "a " * 400 + "\tx"
    rows[40] = " ".join(map(str, range(2000, 2060))) + "\t" + " ".join(map(str, range(3000, 3060)))
    (tmp_path / "train.tsv").write_text("\n".join(rows) + "\n")
    (tmp_path / "valid.tsv").write_text(f"{rows[50]}\n{rows[51]}\nnew\told\n")
    done = quick_train(
        tmp_path / "run", [tmp_path / "train.tsv"], "--valid", tmp_path / "valid.tsv", setting=["data.max_tokens=40"]
    )
    assert done.code == 0, done.err
    table = flat(done.out)
    for words in (
        "dropped: also in validation 2 train.tsv:51, train.tsv:52",
        "dropped: duplicate 1 train.tsv:11",
        "dropped: empty 1 train.tsv:21",
        "dropped: too uneven 1 train.tsv:31",
        "dropped: too many tokens 1 train.tsv:41",
        "kept 94 source: 3.0 words, longest 3",
        "Validation data",
        "kept 3 source: 2.3 words, longest 3",
    ):
        assert words in table
    read = json.loads((tmp_path / "run/data/reading.json").read_text())["train"]
    assert read["pairs"] == 100 == read["kept"] + sum(tally["count"] for tally in read["dropped"].values())


def test_pairs_held_out_for_validation_are_counted(corpus: Path, tmp_path: Path) -> None:
    done = quick_train(tmp_path / "run", [corpus / "train.tsv"])
    held_out = json.loads((tmp_path / "run/data/reading.json").read_text())["held_out"]
    assert 5 <= held_out <= 25
    assert f"of these for validation {held_out}" in flat(done.out)
    assert f"on {286 - held_out} pairs" in done.out


MODELS = {
    "transformer": ("--preset", "tiny"),
    "recurrent": ("--model", "recurrent"),
    "plain": ("--attention", "none"),
}


def test_three_models_by_one_command_and_one_page_that_compares_them(corpus: Path, tmp_path: Path) -> None:
    task = ("train", "translation", "--data", corpus / "train.tsv", "--source", "xa", "--target", "xb")
    for name, words in MODELS.items():
        done = heedful(*task, "--out", tmp_path / name, *words, *settings("model.d_model=16"))
        assert done.code == 0, done.err
        for file in BUNDLE:
            assert (tmp_path / name / file).stat().st_size > 100
    families = [package.load(tmp_path / name, "translation").config for name in MODELS]
    assert [config.family for config in families] == ["original", "recurrent", "recurrent"]
    assert [getattr(config, "attention", "") for config in families] == ["", "additive", "none"]
    done = heedful("report", *[tmp_path / name for name in MODELS], "--out", tmp_path / "all.html")
    assert (done.code, done.out) == (0, f"wrote {tmp_path / 'all.html'}\n")
    report = report_held(tmp_path / "all.html")
    assert [row[0] for row in report["comparison"]["rows"]] == list(MODELS)
    assert [model for model, _ in report["by_length"]["lines"]] == list(MODELS)


@pytest.mark.parametrize(
    ("setting", "check"),
    [
        ("training.precision=bf16", lambda run: True),
        ("generation.beam=2", lambda run: package.load(run, "translation").settings.generation.beam == 2),
        ("data.holdout=3", lambda run: read_mapping(run / "data/reading.json")["held_out"] < 12),
        ("model.dropout=0.3", lambda run: package.load(run, "translation").config.to_dict()["dropout"] == 0.3),
        ("training.average=last", lambda run: "mean" in read_mapping(run / "metrics.json")["training"]["weights"]),
    ],
)
def test_a_setting_does_what_it_says(setting: str, check: Callable[[Path], bool], corpus: Path, tmp_path: Path) -> None:
    done = quick_train(tmp_path / "run", [corpus / "train.tsv"], setting=[setting])
    assert done.code == 0, done.err
    assert check(tmp_path / "run")


def test_tensorboard_is_written_where_it_is_installed(corpus: Path, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    done = quick_train(tmp_path / "run", [corpus / "train.tsv"], setting=["training.tensorboard=true"])
    assert done.code == 0, done.err
    assert any((tmp_path / "run" / "tensorboard").iterdir())


def test_two_tokenisers_where_they_are_asked_for(corpus: Path, tmp_path: Path) -> None:
    done = quick_train(tmp_path / "run", [corpus / "train.tsv"], setting=["tokenizer.joint=false"])
    assert done.code == 0, done.err
    translator = package.load(tmp_path / "run", "translation")
    assert translator.config.to_dict()["tied"] == "output"
    assert translator.tokenizer is not translator.target_tokenizer
    assert len(translator.predict(["a b"])) == 1
    assert quick_train(tmp_path / "run", (), "--resume", setting=["tokenizer.joint=false"]).code == 0


def test_a_run_ends_with_its_time_or_its_patience(corpus: Path, tmp_path: Path) -> None:
    setting = ["training.steps=100000", "training.max_minutes=0.003"]
    assert quick_train(tmp_path / "short", [corpus / "train.tsv"], setting=setting).code == 0
    assert "minutes are over" in read_mapping(tmp_path / "short/metrics.json")["training"]["ended"]
    bored = ["training.steps=100000", "training.validate_every=1", "training.patience=2", "training.learning_rate=1e-9"]
    assert quick_train(tmp_path / "bored", [corpus / "train.tsv"], setting=bored).code == 0
    training = read_mapping(tmp_path / "bored/metrics.json")["training"]
    assert "no improvement" in training["ended"]
    assert training["steps"] < 50


def test_a_runs_own_file_is_a_config_and_options_go_above_it(corpus: Path, model: Path, tmp_path: Path) -> None:
    done = heedful("train", "translation", "--config", model / "run.yaml", "--out", tmp_path / "again")
    assert done.code == 0, done.err
    assert (tmp_path / "again/model.safetensors").read_bytes() == (model / "model.safetensors").read_bytes()
    changed = ("--set", "training.steps=2", "--target", "xc")
    done = heedful("train", "translation", "--config", model / "run.yaml", "--out", tmp_path / "other", *changed)
    assert done.code == 0, done.err
    other = read_mapping(tmp_path / "other/run.yaml")
    assert (other["training"]["steps"], other["source"], other["target"]) == (2, "xa", "xc")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "training.stepz=5"], "did you mean 'steps'?"),
        (["--set", "trainig.steps=5"], "did you mean 'training'?"),
        (["--set", "training.steps=many"], "training.steps must be a whole number"),
        (["--set", "training.steps"], "a setting must look like training.steps=20000"),
        (["--set", "model.droput=0.1"], "did you mean 'dropout'?"),
        (["--set", "training.device=gpu"], "'gpu' cannot be used here"),
        (["--set", "data.max_tokens=6000"], "more than the model's max_length=5000"),
        (["--preset", "smal"], "did you mean 'small'?"),
        (["--model", "recurent"], "did you mean 'recurrent'?"),
        (["--model", "recurrent", "--preset", "small"], "is not a preset of --model recurrent"),
        (["--preset", "small", "--attention", "none"], "unknown key 'attention'"),
        (["--target", "xa"], "source and target are both 'xa'"),
        (["--target", "english"], "a language code such as ko"),
        (["--resume", "--overwrite"], "give one of them"),
        (["--config", "nowhere.yaml"], "nowhere.yaml: No such file"),
    ],
)
def test_wrong_use_is_one_line_and_code_two(words: list[str], said: str, corpus: Path, tmp_path: Path) -> None:
    task = ("train", "translation", "--data", corpus / "train.tsv", "--source", "xa", "--target", "xb")
    done = heedful(*task, "--out", tmp_path / "run", *words)
    assert done.code == 2, done.err
    assert said in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize("files", ["3", "[a.tsv]", "{train: a.tsv}", "{trian: [a.tsv]}", "{train: [a], valid: [1]}"])
def test_wrong_files_in_a_config_are_refused_in_words(files: str, tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(f"source: xa\ntarget: xb\nfiles: {files}\n")
    done = heedful("train", "translation", "--config", tmp_path / "run.yaml", "--out", tmp_path / "run")
    assert done.code == 2
    assert re.match(r"error: files[.:]", done.err)
    assert len(done.err.splitlines()) == 1


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    done = heedful("train", "translation", "--out", tmp_path / "run", "--source", "ko")
    assert (done.code, done.err.splitlines()) == (2, ["error: --data is missing; see heedful train translation --help"])
    assert heedful("train", "translation", "--data", "a.tsv").code == 2
    assert not (tmp_path / "run").exists()


def test_a_full_gpu_is_no_traceback(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried …")

    monkeypatch.setattr("heedful.tasks.translation.task.TranslationTask.loss", full)
    done = quick_train(tmp_path / "run", [corpus / "train.tsv"])
    assert done.code == 1
    assert "--set training.batch_tokens=128 --resume" in done.err


@pytest.mark.parametrize(
    ("more", "said", "dropped"),
    [
        ((), "4 pairs are too few to hold some out", ["dropped: duplicate", "16"]),
        (("--valid", "VALID"), "all 20 are dropped or also in validation", ["dropped: duplicate", "16"]),
        (
            ("--set", "data.max_tokens=2", "--valid", "OTHER"),
            "all 4 pairs are longer than data.max_tokens=2",
            ["dropped: too many tokens", "4"],
        ),
    ],
    ids=["too few", "all in validation", "all too long"],
)
def test_where_too_few_pairs_are_left_it_is_shown_what_became_of_them(
    more: tuple[str, ...], said: str, dropped: list[str], tmp_path: Path
) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"a a a {n}\tb b b {n}\n" for n in range(4)) * 5)
    (tmp_path / "other.tsv").write_text("c\td\n" * 5)
    given = {"VALID": str(pairs), "OTHER": str(tmp_path / "other.tsv")}
    done = quick_train(tmp_path / "run", [pairs], *(given.get(word, word) for word in more))
    assert done.code == 1
    (line,) = done.err.splitlines()
    assert said in line
    row = next(row for row in done.out.splitlines() if dropped[0] in row)
    assert dropped[1] in row.split()
