"""`heedful` in several processes: one run, one output, one voice."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from heedful.tasks.run.train import _await_file
from heedful.training import FolderError
from processes import ENOUGH, Ended, run_together
from shell import QUICK, SIZE, heedful

VOCABULARY = ["red", "blue", "cat", "dog", "runs", "sees", "the", "big"]
NO_DROPOUT = ("model.dropout=0", "training.log_every=1", "training.average=none")


def settings(*more: str) -> list[str]:
    return [word for setting in (*QUICK, *SIZE, *NO_DROPOUT, *more) for word in ("--set", setting)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs, labelled texts, and lines to ask about, one of which is refused."""
    out = tmp_path_factory.mktemp("many")
    chance = random.Random(1)
    texts = [" ".join(chance.choices(VOCABULARY, k=chance.randint(2, 6))) for _ in range(150)]
    pairs = [f"{text}\t{text[::-1]}" for text in dict.fromkeys(texts)]
    (out / "pairs.tsv").write_text("en\tde\n" + "\n".join(pairs) + "\n")
    (out / "labelled.tsv").write_text("text\tlabel\n" + "".join(f"{text}\t{'cat' in text}\n" for text in texts))
    (out / "lines.txt").write_bytes("\n".join(texts[:21]).encode() + b"\nnot \xff text\n\nthe end\n")
    return out


def train(folder: Path, name: str) -> list[str]:
    data = ["--data", str(folder / "pairs.tsv"), "--source", "en", "--target", "de"]
    return ["train", "translation", *data, "--out", str(folder / name), *settings()]


@pytest.fixture(scope="module")
def translator(folder: Path) -> Path:
    assert heedful(*train(folder, "translator")).code == 0
    return folder / "translator"


@pytest.fixture(scope="module")
def classifier(folder: Path) -> Path:
    size = ("model.d_model=16", "model.n_heads=2", "model.d_ff=32", "model.n_layers=1", "model.dropout=0")
    steps = ("training.steps=4", "training.device=cpu", "tokenizer.vocab_size=300")
    arguments = [word for setting in (*size, *steps) for word in ("--set", setting)]
    data, out = folder / "labelled.tsv", folder / "classifier"
    assert heedful("train", "classification", "--data", data, "--out", out, *arguments).code == 0
    return out


def run(*arguments: object, stdin_bytes: bytes = b"") -> Ended:
    """In two processes; of the second nothing is heard."""
    first, second = run_together("-m", "heedful", *map(str, arguments), given=stdin_bytes)
    assert (second.out, second.err) == ("", "")
    return first


def shell(*arguments: object, by: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *by, "heedful", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=ENOUGH, check=False)


def test_a_run_of_two_processes_makes_the_same_model(folder: Path, translator: Path) -> None:
    done = shell(*train(folder, "two"), "--processes", 2)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("Training ") == 2  # the table's title and the line above the steps, once each
    assert {file.name for file in (folder / "two").iterdir()} == {file.name for file in translator.iterdir()}
    logs = [(run_folder / "log.jsonl").read_text().splitlines() for run_folder in (translator, folder / "two")]
    losses = [[json.loads(row)["loss"] for row in log] for log in logs]
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)
    assert len(losses[0]) == 10  # eight steps, two validations


def test_a_folder_that_is_not_the_first_ones_is_refused(folder: Path) -> None:
    with pytest.raises(FolderError, match="is not what the first process has there"):
        _await_file(folder / "data" / "sources.json", "another sum", timeout=0.0)


def test_a_mistake_is_shown_once(folder: Path, translator: Path) -> None:
    done = shell(*train(folder, "translator"), "--processes", 2)
    assert done.returncode == 1
    assert done.stderr.count("holds a run already") == 1
    done = shell(*train(folder, "none"), "--set", "training.batch_tokens=0", "--processes", 2)
    assert done.returncode == 2
    assert done.stderr.count("error: ") == 1


@pytest.mark.parametrize(("source", "form"), [("file", "--json"), ("stdin", "plain")])
def test_predictions_come_in_order_and_are_the_same(folder: Path, translator: Path, source: str, form: str) -> None:
    text, stdin_bytes = folder / "lines.txt", b""
    if source == "stdin":
        text, stdin_bytes = Path("-"), text.read_bytes()
    options = ["--device", "cpu", "--max-new-tokens", "8", *([form] if form != "plain" else [])]
    single = heedful("predict", translator, text, *options, stdin=stdin_bytes)
    two = run("predict", translator, text, *options, stdin_bytes=stdin_bytes)
    assert (two.code, two.out) == (single.code, single.out)
    assert (single.code, len(single.out.splitlines())) == (1, 24)
    assert "not UTF-8" in two.err


def test_a_classifier_answers_and_is_scored_the_same(folder: Path, classifier: Path, tmp_path: Path) -> None:
    lines = folder / "lines.txt"
    predict_command = ("predict", classifier, lines, "--scores", "--device", "cpu")
    single, two = heedful(*predict_command), run(*predict_command)
    assert (two.code, two.out) == (single.code, single.out)
    arguments = ("evaluate", classifier, "--data", folder / "labelled.tsv", "--device", "cpu", "--out")
    of_one, of_two = heedful(*arguments, tmp_path / "one.json"), run(*arguments, tmp_path / "two.json")
    assert of_two.code == of_one.code == 0
    assert (tmp_path / "two.json").read_bytes() == (tmp_path / "one.json").read_bytes()
    assert of_two.out.replace("two.json", "one.json") == of_one.out


def test_torchrun_scores_a_translator_as_one_process_does(folder: Path, translator: Path) -> None:
    arguments = ("evaluate", translator, "--data", folder / "pairs.tsv", "--device", "cpu")
    single, two = (
        heedful(*arguments),
        shell(*arguments, by=("torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m")),
    )
    assert (two.returncode, two.stdout) == (single.code, single.out) == (0, single.out)
