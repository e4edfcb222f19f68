"""Labelled texts from tables and JSON lines: columns by name or order, what is dropped, what is refused."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from heedful.data.labeled_texts import LabeledText, read_labeled_texts, sorted_labels
from heedful.data.report import TextReport
from heedful.errors import ConfigError, DataError

WANTED = [("좋은 영화", "1"), ('a "bad" one, really', "0")]


def read(path: Path, text: str, columns: Sequence[str] | None = None) -> list[LabeledText]:
    path.write_text(text, encoding="utf-8")
    return list(read_labeled_texts(path, columns=columns))


def pairs(examples: Sequence[LabeledText]) -> list[tuple[str, str]]:
    return [(example.text, example.label) for example in examples]


FORMS = {
    "a.tsv": 'id\tdocument\tlabel\n7\t좋은 영화\t1\n8\ta "bad" one, really\t0\n',
    "a.csv": 'Label,Review\n1,좋은 영화\n0,"a ""bad"" one, really"\n',
    "a.jsonl": '{"text": "좋은 영화", "label": 1}\n{"label": 0, "text": "a \\"bad\\" one, really"}\n',
    "a.txt": 'Sentence\tClass\n좋은 영화\t1\na "bad" one, really\t0\n',
    "a.json": '[\n{"text": "좋은 영화", "label": 1}, {"label": 0, "text": "a \\"bad\\" one, really"}]\n',
    "b.csv": 'label;text\n1;좋은 영화\n0;"a ""bad"" one, really"\n',
    "b.txt": 'label;text\n1;좋은 영화\n0;"a ""bad"" one, really"\n',
}


@pytest.mark.parametrize("name", FORMS)
def test_common_column_names_are_recognized_in_every_format(name: str, tmp_path: Path) -> None:
    assert pairs(read(tmp_path / name, FORMS[name])) == WANTED


def test_packed_files_and_folders_are_read(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.tsv.gz").write_bytes(gzip.compress(FORMS["a.tsv"].encode()))
    (tmp_path / "in/b.csv").write_text(FORMS["a.csv"])
    (tmp_path / "in/notes.md").write_text("not data")
    reading = TextReport()
    assert pairs(list(read_labeled_texts(tmp_path / "in", reading=reading))) == WANTED + WANTED
    assert reading.skipped["not recognized"].count == 1
    assert [file.format for file in reading.files] == ["tab-separated text", "comma-separated text"]


def test_examples_have_line_numbers(tmp_path: Path) -> None:
    examples = read(tmp_path / "a.csv", 'text,label\n"two\nlines",x\nnext,y\n')
    assert [(example.text, example.line) for example in examples] == [("two\nlines", 2), ("next", 4)]
    assert examples[1].place == f"{tmp_path / 'a.csv'}:4"


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("stars,abstract\n1,좋은 영화\n", ("abstract", "stars")),
        ("1,좋은 영화\n", ("label", "text")),
        ("7,1,x,좋은 영화\n", ("-", "label", "-", "text")),
        ("text,label\n좋은 영화,1\n", ("text", "label")),
    ],
)
def test_columns_may_be_named_or_put_in_order(text: str, columns: tuple[str, ...], tmp_path: Path) -> None:
    assert pairs(read(tmp_path / "a.csv", text, columns)) == [("좋은 영화", "1")]


def test_keys_of_json_lines_may_be_named(tmp_path: Path) -> None:
    assert pairs(read(tmp_path / "a.jsonl", '{"abstract": "t", "field": true}\n', ("abstract", "field"))) == [
        ("t", "true")
    ]


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("premise\thypothesis\tlabel\na b\tc d\tyes\n", None),
        ("label\tone\ttwo\nyes\ta b\tc d\n", ("one", "two", "label")),
        ("a b\tc d\tyes\n", ("text", "text", "label")),
    ],
)
def test_two_texts_may_have_one_label(text: str, columns: tuple[str, ...] | None, tmp_path: Path) -> None:
    (example,) = read(tmp_path / "a.tsv", text, columns)
    assert (example.texts, example.label) == (("a b", "c d"), "yes")


def test_unusable_rows_are_dropped_and_counted_with_their_place(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("text\tlabel\n\tx\ngood\t\n  \n one\tx\nmany\tcells\tx\nalone\nlast\ty\n")
    reading = TextReport()
    assert pairs(list(read_labeled_texts(path, reading=reading))) == [(" one", "x"), ("last", "y")]
    places = {reason: tally.places for reason, tally in reading.dropped.items()}
    assert places == {
        "empty text": [f"{path}:2"],
        "no label": [f"{path}:3"],
        "empty": [f"{path}:4"],
        "too many columns": [f"{path}:6"],
        "too few columns": [f"{path}:7"],
    }
    assert (reading.kept, reading.total) == (2, 7)
    report = reading.to_dict()
    assert (report["texts"], report["labels"]) == (7, {"x": 1, "y": 1})
    json.dumps(report)


def test_null_and_missing_keys_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"text": "a", "label": 2}\n{"text": null, "label": 1}\n{"text": "b"}\n{"text": "c", "label": 1.5}\n'
    )
    reading = TextReport()
    assert pairs(list(read_labeled_texts(path, reading=reading))) == [("a", "2"), ("c", "1.5")]
    assert {reason: tally.count for reason, tally in reading.dropped.items()} == {"empty text": 1, "no label": 1}


REFUSED = {
    "unnamed columns": ("a.csv", "body text,answer\nx,y\n", None, "there are 1 'body text', 2 'answer'.*--columns 1,2"),
    "a name that is not there": (
        "a.csv",
        "text,label\nx,y\n",
        ("text", "stars"),
        "named stars; there are 1 'text'",
    ),
    "keys": ("a.jsonl", '{"input": "x", "output": "y"}\n', None, "there are 1 'input', 2 'output'"),
    "another order": ("a.csv", "text,label\nx,y\n", ("label", "text"), "header names the columns text,label"),
    "too few columns": ("a.tsv", "x\ty\n", ("-", "text", "label"), "only 2 columns"),
    "a list of labels": ("a.jsonl", '{"text": "x", "label": ["y"]}\n', None, "a.jsonl:1: one label was expected"),
    "a number as text": ("a.jsonl", '{"text": 5, "label": "y"}\n', None, "text was expected under 'text', not int"),
    "no JSON": ("a.jsonl", '{"text": "x", "label": 1}\nx\n', None, "a.jsonl:2: not JSON"),
    "one column": ("a.json", '[{"text": "x"}]', None, "there are 1 'text', and two are needed"),
    "half a character": ("a.jsonl", '{"text": "\\ud800", "label": "y"}\n', None, "a.jsonl:1: half a surrogate"),
    "prose": ("a.txt", "Once upon a time.\n", None, "no tabs"),
    "an empty file": ("a.tsv", "", None, "empty"),
    "an open quote": ("a.csv", 'text,label\n"x,y\n', None, "quote left open"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_unreadable_files_are_refused(case: str, tmp_path: Path) -> None:
    name, text, columns, message = REFUSED[case]
    with pytest.raises(DataError, match=message):
        read(tmp_path / name, text, columns)


@pytest.mark.parametrize("columns", [("text",), ("text", "text"), ("label", "label", "text"), ("a", "b", "c", "d")])
def test_columns_that_make_no_sense(columns: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--columns"):
        read(tmp_path / "a.tsv", "a\tb\n", columns)


def test_missing_file_and_duplicate_path(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_labeled_texts(tmp_path / "none.tsv")
    (tmp_path / "a.tsv").write_text(FORMS["a.tsv"])
    with pytest.raises(DataError, match="given twice"):
        read_labeled_texts([tmp_path / "a.tsv", tmp_path / "a.tsv"])


def test_labels_are_sorted_numbers_as_numbers() -> None:
    assert sorted_labels(["10", "9", "-1", "9"]) == ("-1", "9", "10")
    assert sorted_labels(["b", "10", "9"]) == ("10", "9", "b")
    assert sorted_labels(["나", "가"]) == ("가", "나")
    assert sorted_labels(["1.0", "1"]) == ("1", "1.0")
