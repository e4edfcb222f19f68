"""`heedful train classification` and `masked-lm`, then predict and evaluate, as a person types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from labelled_sets import reviews, write_tsv

from heedful.config import read_mapping
from shell import Done, heedful

SETTINGS = (
    *("tokenizer.vocab_size=400", "model.d_model=16", "model.n_heads=2", "model.d_ff=32", "model.n_layers=1"),
    *("model.max_length=32", "training.steps=4", "training.validate_every=2", "training.device=cpu"),
)


def train(task: str, *options: object, settings: tuple[str, ...] = SETTINGS) -> Done:
    return heedful("train", task, *options, *(word for setting in settings for word in ("--set", setting)))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shell")
    done = train("classification", "--data", write_tsv(folder / "a.tsv", reviews(100)), "--out", folder / "run")
    assert done.code == 0, done.err
    for expected in ("kept 100", "of these for validation 10", "accuracy", "macro F1"):
        assert expected in " ".join(done.out.split())
    return folder / "run"


def test_one_class_a_line_or_all_of_them_as_json(run: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("the film was great\na sad dog\n")
    plain = heedful("predict", run, tmp_path / "in.txt", "--device", "cpu")
    assert plain.code == 0, plain.err
    assert set(plain.out.split()) <= {"pos", "neg"}
    rows = [json.loads(row) for row in heedful("predict", run, tmp_path / "in.txt", "--json").out.splitlines()]
    assert [set(row["probabilities"]) for row in rows] == [{"pos", "neg"}] * 2
    (tmp_path / "in.txt").write_text("")
    assert heedful("predict", run, tmp_path / "in.txt").out == ""


def test_evaluate_scores_a_file(run: Path, tmp_path: Path) -> None:
    file = write_tsv(tmp_path / "test.tsv", reviews(30, seed=4))
    done = heedful("evaluate", run, "--data", file, "--device", "cpu", "--out", tmp_path / "scores.json")
    assert done.code == 0, done.err
    assert "30 texts" in done.out
    scores = read_mapping(tmp_path / "scores.json")
    lines = [line.split() for line in done.out.splitlines()]
    for row in scores["classes"]:
        shares = [f"{row[name]:.1f}" for name in ("precision", "recall", "f1")]
        assert [row["label"], str(row["n"]), *shares] in lines
    (right, wrong), (missed, _) = scores["confusion"]
    assert right + wrong == 15
    for mistake, count in ((["neg", "pos"], wrong), (["pos", "neg"], missed)):
        assert ([*mistake, str(count)] in lines) == (count > 0)


@pytest.mark.parametrize(
    ("header", "more", "message"),
    [
        ("id\tbody words\tanswer", (), "there are 1 'id', 2 'body words', 3 'answer'"),
        (
            "id\tdocument\tlabel",
            ("--columns", "text,answer"),
            "named text, answer; there are 1 'id', 2 'document', 3 'label'",
        ),
    ],
)
def test_missing_columns_error_lists_the_columns(
    header: str, more: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    (tmp_path / "a.tsv").write_text(f"{header}\n1\tx\ty\n")
    done = train("classification", "--data", tmp_path / "a.tsv", "--out", tmp_path / "run", *more)
    assert done.code == 1
    assert message in done.err


def test_classifier_starts_from_masked_language_model(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"{text}\n" for text, _ in reviews(100)))
    masked = train("masked-lm", "--data", tmp_path / "a.txt", "--out", tmp_path / "masked-lm")
    assert masked.code == 0, masked.err
    scored = heedful("evaluate", tmp_path / "masked-lm", "--data", tmp_path / "a.txt", "--device", "cpu")
    assert "perplexity" in scored.out, scored.err
    file = write_tsv(tmp_path / "a.tsv", reviews(100))
    given = ("--data", file, "--init-from", tmp_path / "masked-lm", "--out", tmp_path / "run")
    tuned = train("classification", *given, settings=("training.steps=2", "training.device=cpu"))
    assert tuned.code == 0, tuned.err
    assert read_mapping(tmp_path / "run/run.yaml")["base"] == str(tmp_path / "masked-lm")
    both = train("classification", *given, "--overwrite", "--preset", "bert-tiny", settings=())
    assert (both.code, "leave out the preset" in both.err) == (2, True)
