"""Validation texts: of every class its share, none of them trained on, the same whatever the order."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from labelled_sets import reviews, small_config, write_tsv

from heedful.errors import DataError
from heedful.tasks.classification.task import ClassificationTask
from heedful.tasks.run import Files, TooLittleDataError
from heedful.tasks.text_encoder_task import TextData


def configured() -> ClassificationTask:
    task = ClassificationTask()
    task.config = small_config()
    return task


def test_holdout_is_stratified_and_excludes_ambiguous_texts(tmp_path: Path) -> None:
    both = [(f"both {number}", label) for label in ("neg", "pos") for number in range(20)]
    rows = [(f"{label} {number}", label) for label, n in (("neg", 100), ("pos", 50)) for number in range(n)]
    split, readings = configured().split(Files((write_tsv(tmp_path / "a.tsv", [*both, *rows]),)))
    assert Counter(example.label for example in split.valid()) == {"neg": 10, "pos": 5}
    assert not any(example.text.startswith("both") for example in split.valid())
    assert readings.held_out == 15


def texts(prepared: TextData, part: str) -> list[str]:
    store = getattr(prepared, part)
    return [prepared.tokenizer.decode(store[row][0].tolist()) for row in range(len(store))]


def test_duplicates_stay_on_one_side_of_the_split(tmp_path: Path) -> None:
    rows = reviews(100)
    file = write_tsv(tmp_path / "a.tsv", rows * 3)
    prepared, readings = ClassificationTask().prepare(small_config(), Files((file,)), tmp_path / "data")
    train, valid = texts(prepared, "train"), texts(prepared, "valid")
    assert len(train) + len(valid) == 300
    assert readings.held_out == len(valid) == 3 * len(set(valid))
    assert not set(train) & set(valid)
    assert sorted(train + valid) == sorted(text for text, _ in rows * 3)


def test_texts_of_validation_files_are_dropped_from_training(tmp_path: Path) -> None:
    rows = reviews(40)
    train, valid = write_tsv(tmp_path / "a.tsv", rows), write_tsv(tmp_path / "b.tsv", rows[3:5])
    prepared, readings = ClassificationTask().prepare(small_config(), Files((train,), (valid,)), tmp_path / "data")
    assert readings.train.dropped["also in validation"].places == [f"{train}:5", f"{train}:6"]
    assert readings.train.kept == len(prepared.train) == 38
    assert texts(prepared, "valid") == [text for text, _ in rows[3:5]]


def test_a_label_that_training_does_not_have_is_named_with_its_line(tmp_path: Path) -> None:
    train = write_tsv(tmp_path / "a.tsv", reviews(40))
    valid = write_tsv(tmp_path / "b.tsv", [("new", "pos"), ("strange", "neutral")])
    with pytest.raises(DataError, match=r"b\.tsv:3: the label 'neutral' .* which has 'neg', 'pos'"):
        ClassificationTask().prepare(small_config(), Files((train,), (valid,)), tmp_path / "data")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(f"text {number}", "only") for number in range(50)], "only the class 'only'"),
        (reviews(4), "^4 texts are too few to hold some out"),
        (
            [(f"text {number}", f"label {number}") for number in range(300)],
            "each of the 300 texts has a label of its own",
        ),
        ([("a film", ("neg", "pos")[number % 2]) for number in range(300)], "all 300 texts are the same"),
        (
            [(f"film {number // 2}", ("neg", "pos")[number % 2]) for number in range(300)],
            "each of the 300 texts occurs with several labels",
        ),
        ([("", ("neg", "pos")[number % 2]) for number in range(300)], "no texts are left to use"),
    ],
)
def test_too_little_data_is_refused(rows: list[tuple[str, str]], message: str, tmp_path: Path) -> None:
    with pytest.raises(TooLittleDataError, match=message):
        ClassificationTask().prepare(small_config(), Files((write_tsv(tmp_path / "a.tsv", rows),)), tmp_path / "data")


def test_validation_files_without_a_text(tmp_path: Path) -> None:
    train = write_tsv(tmp_path / "a.tsv", reviews(40))
    (tmp_path / "b.tsv").write_text("text\tlabel\n\tpos\n")
    with pytest.raises(TooLittleDataError, match=r"b\.tsv: no texts are left to use"):
        configured().split(Files((train,), (str(tmp_path / "b.tsv"),)))
