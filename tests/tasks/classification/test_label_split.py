"""Validation texts: of every class its share, none of them trained on, the same whatever the order."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from labelled_sets import reviews, small_config, write_tsv

from heedful.data.labelled import Labelled
from heedful.data.text_reading import digest
from heedful.errors import DataError
from heedful.tasks.classification.prepare import Prepared, prepare
from heedful.tasks.classification.splitting import held_out, split
from heedful.tasks.run import Files, TooLittleDataError


def examples(counts: dict[str, int]) -> list[Labelled]:
    return [
        Labelled(f"{label} {number}", None, label, "a", number) for label, n in counts.items() for number in range(n)
    ]


def chosen(given: list[Labelled], wanted: int) -> Counter[str]:
    keys = held_out(given, wanted)
    return Counter(one.label for one in given if digest(*one.texts) in keys)


def test_every_class_gives_its_share() -> None:
    assert chosen(examples({"a": 900, "b": 90, "c": 10}), 50) == {"a": 45, "b": 4, "c": 1}
    assert chosen(examples({"a": 900, "b": 90, "c": 10}), 10_000) == {"a": 90, "b": 9, "c": 1}  # a tenth at most


def test_a_rare_class_stays_in_training() -> None:
    assert chosen(examples({"a": 100, "b": 4}), 1000) == {"a": 10}


def test_the_order_does_not_matter() -> None:
    given = examples({"a": 100, "b": 50})
    before = held_out(given, 12)
    random.Random(1).shuffle(given)
    assert held_out(given, 12) == before


def test_a_text_with_two_labels_is_never_held_out() -> None:
    both = [Labelled(f"same {number}", None, label, "a", 1) for label in "ab" for number in range(50)]
    keys = held_out([*both, *examples({"a": 20, "b": 30})], 1000)
    assert keys
    assert keys.isdisjoint(digest(*one.texts) for one in both)


def texts(prepared: Prepared, part: str) -> list[str]:
    store = getattr(prepared, part)
    return [prepared.tokenizer.decode(store[row][0].tolist()) for row in range(len(store))]


def test_no_text_is_on_both_sides_though_it_comes_twice(tmp_path: Path) -> None:
    rows = reviews(100)
    file = write_tsv(tmp_path / "a.tsv", rows * 3)
    prepared, readings = prepare(small_config(), Files((file,)), tmp_path / "data")
    train, valid = texts(prepared, "train"), texts(prepared, "valid")
    assert len(train) + len(valid) == 300
    assert readings.held_out == len(valid) == 3 * len(set(valid))
    assert not set(train) & set(valid)
    assert sorted(train + valid) == sorted(text for text, _ in rows * 3)


def test_texts_of_validation_files_are_dropped_from_training(tmp_path: Path) -> None:
    rows = reviews(40)
    train, valid = write_tsv(tmp_path / "a.tsv", rows), write_tsv(tmp_path / "b.tsv", rows[3:5])
    prepared, readings = prepare(small_config(), Files((train,), (valid,)), tmp_path / "data")
    assert readings.train.dropped["also in validation"].places == [f"{train}:5", f"{train}:6"]
    assert readings.train.kept == len(prepared.train) == 38
    assert texts(prepared, "valid") == [text for text, _ in rows[3:5]]


def test_a_label_that_training_does_not_have_is_named_with_its_line(tmp_path: Path) -> None:
    train = write_tsv(tmp_path / "a.tsv", reviews(40))
    valid = write_tsv(tmp_path / "b.tsv", [("new", "pos"), ("strange", "neutral")])
    with pytest.raises(DataError, match=r"b\.tsv:3: the label 'neutral' .* which has 'neg', 'pos'"):
        prepare(small_config(), Files((train,), (valid,)), tmp_path / "data")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([(f"text {number}", "only") for number in range(50)], "only the class 'only'"),
        (reviews(4), "too few to set some apart"),
    ],
)
def test_too_little_is_said(rows: list[tuple[str, str]], words: str, tmp_path: Path) -> None:
    with pytest.raises(TooLittleDataError, match=words):
        prepare(small_config(), Files((write_tsv(tmp_path / "a.tsv", rows),)), tmp_path / "data")


def test_validation_files_without_a_text(tmp_path: Path) -> None:
    train = write_tsv(tmp_path / "a.tsv", reviews(40))
    (tmp_path / "b.tsv").write_text("text\tlabel\n\tpos\n")
    with pytest.raises(TooLittleDataError, match="no labelled text to validate on"):
        split(Files((train,), (str(tmp_path / "b.tsv"),)), 10)
