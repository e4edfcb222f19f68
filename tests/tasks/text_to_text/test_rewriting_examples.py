"""Where sources and targets are found, what stands before them, and what is left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from toy_rewriting import write_jsonl

from heedful.data.columns import ColumnSelection
from heedful.errors import ConfigError, DataError
from heedful.tasks.run import Files, TooLittleDataError
from heedful.tasks.text_to_text.data import (
    EXAMPLES,
    ExampleReading,
    TextToTextExample,
    read_examples,
    split_text_pairs,
)


def triples(path: Path, **words: Any) -> list[tuple[str, str, str]]:
    return [(one.prefix, one.source, one.target) for one in read_examples([path], **words)]


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "header", ["source\ttarget", "article\thighlights", "본문\t요약", "Question \t Answer", "text\tsummary"]
)
def test_a_header_says_where_they_are(header: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", f"{header}\nlong text\tshort\n")
    assert triples(path) == [("", "long text", "short")]


def test_the_likeliest_name_counts_and_other_columns_do_not(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 'title,text,id,summary\nT,"a, b\nc",7,S\n')
    assert triples(path) == [("", "a, b\nc", "S")]
    assert triples(path, columns=("text", "title")) == [("", "a, b\nc", "T")]
    assert triples(path, columns=("text", "title", "id")) == [("7 ", "a, b\nc", "T")]


def test_without_a_header_the_order_is_said(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "short\tx\tlong text\n")
    assert triples(path, columns=("3", "1")) == [("", "long text", "short")]
    assert triples(path, columns=("3", "1", "2")) == [("x ", "long text", "short")]
    assert triples(path, columns=("target", "-", "source")) == [("", "long text", "short")]
    assert triples(path, columns=("target", "prefix", "source")) == [("x ", "long text", "short")]
    with pytest.raises(DataError, match=r"a\.tsv:1: no columns .* 1 'short', 2 'x', 3 'long text'.*--columns 1,3"):
        triples(path)


def test_json_lines(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"task": "sum:", "document": "  a b ", "summary": "c\n"},
        {"document": "d", "summary": None, "task": "x"},
    ]
    path = Path(write_jsonl(tmp_path / "a.jsonl", rows))
    reading = ExampleReading()
    assert triples(path, reading=reading) == [("sum: ", "a b", "c")]
    assert reading.dropped["empty target"].places == [f"{path}:2"]
    assert reading.to_dict()["notes"] == ["prefixes: 'sum: ' 1"]
    with pytest.raises(DataError, match=r"b\.jsonl:1: a text was expected as the target, not list"):
        triples(Path(write_jsonl(tmp_path / "b.jsonl", [{"document": "d", "summary": ["a"]}])))
    reading = ExampleReading()
    assert triples(Path(write_jsonl(tmp_path / "c.jsonl", [{"gist": "a", "document": "d"}])), reading=reading) == [
        ("", "d", "a")
    ]
    assert "column 2 ('document') is the source, column 1 ('gist') the target" in reading.to_dict()["notes"][0]


def test_a_prefix_for_all_and_one_for_each_exclude_each_other(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "source\ttarget\na\tb\n")
    assert triples(path, prefix="summarize: ") == [("summarize: ", "a", "b")]
    assert next(read_examples([path], prefix="summarize: ")).text == "summarize: a"
    path = write(tmp_path / "b.tsv", "source\ttarget\ttask\na\tb\tsum:\nc\td\t\n")
    reading = ExampleReading()
    assert triples(path, reading=reading) == [("sum: ", "a", "b")]
    assert reading.dropped["empty prefix"].count == 1
    with pytest.raises(DataError, match="leave out one"):
        triples(path, prefix="summarize: ")
    assert triples(path, prefix="q: ", columns=("source", "target")) == [("q: ", "a", "b"), ("q: ", "c", "d")]


@pytest.mark.parametrize("words", ["source", "source,source", "a,b,c,d", "article,", "target,prefix,prefix,source"])
def test_columns_that_say_nothing_are_refused(words: str) -> None:
    with pytest.raises(ConfigError, match="--columns"):
        ColumnSelection.of(EXAMPLES, words.split(","))


def test_no_source_is_on_both_sides_and_which_ones_hangs_on_no_order(tmp_path: Path) -> None:
    rows = [f"text {number % 60}\tanswer {number}\n" for number in range(120)]
    files = Files((str(write(tmp_path / "a.tsv", "source\ttarget\n" + "".join(rows))),))
    parts, _ = split_text_pairs(files, "", 1000)
    train, valid = list(parts.train()), list(parts.valid())
    assert (len(train), len(valid)) == (114, 6)  # a twentieth of 60 sources, each there twice
    assert not {one.source for one in train} & {one.source for one in valid}
    turned = Files((str(write(tmp_path / "b.tsv", "source\ttarget\n" + "".join(rows[::-1]))),))
    assert {one.source for one in split_text_pairs(turned, "", 1000)[0].valid()} == {one.source for one in valid}
    assert len(list(split_text_pairs(files, "", 1)[0].valid())) == 2


def test_what_is_validated_on_is_not_learned(tmp_path: Path) -> None:
    train = write(tmp_path / "a.tsv", "source\ttarget\na\tx\nb\ty\n")
    valid = write(tmp_path / "b.tsv", "source\ttarget\na\tother\n")
    parts, readings = split_text_pairs(Files((str(train),), (str(valid),)), "p ", 1000)
    assert [one.text for one in parts.train()] == ["p b"]
    assert list(parts.valid()) == [TextToTextExample("a", "other", str(valid), 2, "p ")]
    assert (readings.train.kept, readings.train.dropped["also in validation"].count) == (1, 1)
    with pytest.raises(TooLittleDataError, match="no pairs are left to use"):
        split_text_pairs(Files((str(train),), (str(train),)), "", 1000)
    one = write(tmp_path / "c.tsv", "source\ttarget\na\tx\n")
    with pytest.raises(TooLittleDataError, match="1 pairs are too few"):
        split_text_pairs(Files((str(one),)), "", 1000)
