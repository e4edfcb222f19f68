"""Columns that no header names: what is guessed and said, and what is refused with the option that fixes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from heedful.data.labeled_texts import read_labeled_texts
from heedful.data.questions import read_questions
from heedful.data.readers import read_pairs
from heedful.data.report import PairReport, SplitReport, TextReport
from heedful.data.tagged import read_tagged
from heedful.errors import ConfigError, DataError
from heedful.tasks.text_to_text.data import ExampleReading, read_examples

N = 40
TEXT = [f"{('what', 'how', 'where')[n % 3]} is number {n} of all" for n in range(N)]
TOPIC = [("sports", "politics", "art")[n % 3] for n in range(N)]
LANGUAGE = [("de", "en")[n % 2] for n in range(N)]
NUMBER = [str(7 * n) for n in range(N)]
ANSWER = [f"{n} is it" for n in range(N)]
KOREAN = [f"{n} 번은 모두 가운데 무엇인가" for n in range(N)]
SOURCE = [f"CC-BY 2.0 (France) by number {n}" for n in range(N)]
CONTEXT = [f"{n} is it, as all know" for n in range(N)]
Columns = tuple[str, ...] | None


def table(path: Path, *columns: Iterable[str], header: str = "") -> Path:
    rows = [header] if header else []
    path.write_text("\n".join([*rows, *("\t".join(row) for row in zip(*columns, strict=True))]) + "\n")
    return path


def labeled(path: Path, columns: Columns = None, report: TextReport | None = None) -> list[tuple[str, str]]:
    return [(each.text, each.label) for each in read_labeled_texts(path, columns=columns, reading=report)]


def examples(path: Path, columns: Columns = None, report: ExampleReading | None = None) -> list[tuple[str, str]]:
    return [(each.source, each.target) for each in read_examples([path], columns=columns, reading=report)]


def pairs(path: Path, columns: Columns = None, report: PairReport | None = None) -> list[tuple[str, str]]:
    return [(each.source, each.target) for each in read_pairs(path, "en", "ko", columns=columns, reading=report)]


def questions(path: Path, columns: Columns = None, report: SplitReport | None = None) -> list[tuple[str, str]]:
    return [(each.question, each.answers[0].text) for each in read_questions([path], columns=columns, report=report)]


def tagged(path: Path, columns: Columns = None, report: SplitReport | None = None) -> list[tuple[str, str]]:
    return [(each.text, each.tags[0]) for each in read_tagged([path], columns=columns, report=report)]


GUESSED: dict[str, tuple[Any, list[list[str]], str, list[str], list[str]]] = {
    "text, label": (labeled, [TEXT, TOPIC], "", TEXT, TOPIC),
    "label, text": (labeled, [TOPIC, TEXT], "", TEXT, TOPIC),
    "a header": (labeled, [TOPIC, TEXT], "What it is\tThe words", TEXT, TOPIC),
    "a number, text, label": (labeled, [NUMBER, TEXT, TOPIC], "", TEXT, TOPIC),
    "one usual name": (labeled, [LANGUAGE, TEXT, TOPIC], "language\twords\tclass", TEXT, TOPIC),
    "a few rows": (labeled, [TOPIC[:6], TEXT[:6]], "", TEXT[:6], TOPIC[:6]),
    "sorted by label": (labeled, [["yes"] * N, TEXT], "", TEXT, ["yes"] * N),
    "label is a number": (labeled, [["0", "1"] * (N // 2), TEXT], "", TEXT, ["0", "1"] * (N // 2)),
    "source, target": (examples, [TEXT, ANSWER], "", TEXT, ANSWER),
    "source, numbers": (examples, [TEXT, NUMBER], "", TEXT, NUMBER),
    "number, source, target": (examples, [NUMBER, TEXT, ANSWER], "", TEXT, ANSWER),
    "source, target, remark": (examples, [TEXT, ANSWER, SOURCE], "", TEXT, ANSWER),
    "English, Korean, remark": (pairs, [TEXT, KOREAN, SOURCE], "", TEXT, KOREAN),
    "number, Korean, number, English": (pairs, [NUMBER, KOREAN, NUMBER, TEXT], "", TEXT, KOREAN),
}


@pytest.mark.parametrize("case", GUESSED)
def test_columns_are_guessed_and_named(case: str, tmp_path: Path) -> None:
    read, columns, header, text, label = GUESSED[case]
    report = {labeled: TextReport, examples: ExampleReading, pairs: PairReport}[read]()
    assert read(table(tmp_path / "a.tsv", *columns, header=header), None, report) == list(zip(text, label, strict=True))
    (note,) = report.to_dict()["notes"]
    assert re.search(rf"column {columns.index(text) + 1} .*column {columns.index(label) + 1} ", note)
    assert (("is a header" in note) if header else ("is an example" in note)) or read is pairs
    # The option in the note is for the other way round.
    other = tuple(note.split("--columns ")[1].split(")")[0].split(","))
    assert other == (str(columns.index(label) + 1), str(columns.index(text) + 1))


# What is read, its columns, --columns, and the right columns, which the message asks for.
REFUSED: dict[str, tuple[Callable[..., Any], list[list[str]], Columns, tuple[str, ...]]] = {
    "two possible labels": (labeled, [LANGUAGE, TEXT, TOPIC], None, ("2", "3")),
    "two possible texts": (labeled, [TEXT, KOREAN, TOPIC], None, ("1", "3")),
    "no label repeats": (labeled, [TEXT, NUMBER], None, ("1", "2")),
    "no such name": (labeled, [TEXT, TOPIC], ("words", "topic"), ("1", "2")),
    "no such number": (labeled, [TOPIC, TEXT], ("3", "1"), ("2", "1")),
    "number 0": (labeled, [TOPIC, TEXT], ("1", "0"), ("2", "1")),
    "one name": (labeled, [TOPIC, TEXT], ("1",), ("2", "1")),
    "the same twice": (labeled, [TOPIC, TEXT], ("1", "1"), ("2", "1")),
    "an order that is too long": (labeled, [TOPIC, TEXT], ("label", "-", "text"), ("2", "1")),
    "three texts": (examples, [TEXT, ANSWER, KOREAN], None, ("1", "2")),
    "no such source": (examples, [TEXT, ANSWER], ("article", "2"), ("1", "2")),
    "two sources": (examples, [TEXT, ANSWER], ("source", "source"), ("1", "2")),
    "languages that are not meant": (pairs, [KOREAN, TEXT], ("ja", "en"), ("2", "1")),
    "questions without a header": (questions, [TEXT, CONTEXT, ANSWER], None, ("1", "2", "3")),
    "a question alone": (questions, [TEXT, CONTEXT, ANSWER], ("question",), ("1", "2", "3")),
    "tags of a name": (tagged, [TOPIC, LANGUAGE, NUMBER], ("what", "how"), ("1", "2")),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_names_the_option_that_fixes_it(case: str, tmp_path: Path) -> None:
    read, contents, columns, right = REFUSED[case]
    path = table(tmp_path / "a.tsv", *contents)
    with pytest.raises((ConfigError, DataError)) as refusal:
        read(path, columns)
    assert "column" in str(refusal.value)
    suggested = re.findall(r"\d+(?:,\d+)+", str(refusal.value))
    assert suggested, "numbers of columns are an answer to each"
    assert len(suggested[-1].split(",")) == len(right)
    first, *_, last = (contents[int(number) - 1] for number in right)
    assert read(path, right)[0] == (" ".join(first) if read is tagged else first[0], last[0])


@pytest.mark.parametrize("case", ["two possible labels", "two possible texts", "no label repeats", "three texts"])
def test_the_suggested_columns_are_read(case: str, tmp_path: Path) -> None:
    read, contents, _, right = REFUSED[case]
    path = table(tmp_path / "a.tsv", *contents)
    with pytest.raises(DataError) as refusal:
        read(path)
    suggested = str(refusal.value).rsplit("--columns ", 1)[1].split(",")
    assert len(read(path, tuple(suggested))) == N
    assert suggested[0] in right or case == "two possible texts"


@pytest.mark.parametrize(
    ("read", "contents", "header", "warning"),
    [
        (labeled, [NUMBER, TEXT, TOPIC], "text\twords\tlabel", "column 1, read as the text, .*--columns 2,3"),
        (labeled, [TEXT, NUMBER], "text\tlabel", "a label of its own in column 2"),
        (examples, [NUMBER, TEXT, ANSWER], "source\twords\ttarget", "column 1, read as the source, .*--columns 2,3"),
        (pairs, [TEXT, NUMBER], "", "column 2 is read as ko and holds hardly any words"),
        (pairs, [NUMBER, KOREAN, TEXT], "en\tko\tx", "column 1 is read as en and holds hardly any words"),
    ],
)
def test_a_column_of_something_else_is_noticed(
    read: Any, contents: list[list[str]], header: str, warning: str, tmp_path: Path
) -> None:
    report = {labeled: TextReport, examples: ExampleReading, pairs: PairReport}[read]()
    assert len(read(table(tmp_path / "a.tsv", *contents, header=header), None, report)) == N
    assert re.search(warning, report.to_dict()["warnings"][0])


def test_a_pair_with_usual_names_keeps_both_texts_when_the_label_is_guessed(tmp_path: Path) -> None:
    path = table(tmp_path / "a.tsv", TEXT, KOREAN, TOPIC, header="premise\thypothesis\tsubject")
    first = next(iter(read_labeled_texts(path)))
    assert (first.texts, first.label) == ((TEXT[0], KOREAN[0]), TOPIC[0])


def test_a_label_that_is_a_usual_name_is_no_header(tmp_path: Path) -> None:
    labels = [("question", "title")[n % 2] for n in range(N)]
    assert labeled(table(tmp_path / "a.tsv", labels, TEXT)) == list(zip(TEXT, labels, strict=True))
