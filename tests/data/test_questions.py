"""Questions with answer spans, from SQuAD JSON, JSON lines and tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from heedful.data.questions import AnswerSpan, locate, read_questions
from heedful.data.report import TextReport
from heedful.errors import ConfigError, DataError

CONTEXT = "세종대왕은 1443년에 훈민정음을 만들었다. 1446년에 반포했다."


def squad(*qas: dict[str, Any], context: str = CONTEXT) -> str:
    return json.dumps({"version": "v2.0", "data": [{"title": "t", "paragraphs": [{"context": context, "qas": qas}]}]})


def written(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_squad_with_and_without_an_answer(tmp_path: Path) -> None:
    text = squad(
        {"id": "q1", "question": "언제 만들었나?", "answers": [{"text": "1443년", "answer_start": 6}]},
        {"id": "q2", "question": "누가 불렀나?", "answers": [], "is_impossible": True, "plausible_answers": []},
    )
    first, second = read_questions([written(tmp_path, "dev.json", text)])
    assert first.answers == (AnswerSpan(6, "1443년"),)
    assert CONTEXT[first.answers[0].start : first.answers[0].end] == "1443년"
    assert (second.id, second.answers, second.line) == ("q2", (), 2)


def test_korquad_2_has_no_paragraphs(tmp_path: Path) -> None:
    entry = {
        "context": CONTEXT,
        "qas": [{"id": 1, "question": "언제?", "answer": {"text": "1446년", "answer_start": 0}}],
    }
    (example,) = read_questions([written(tmp_path, "k.json", json.dumps({"data": [entry]}))])
    assert example.answers == (AnswerSpan(CONTEXT.index("1446년"), "1446년"),)


@pytest.mark.parametrize(
    "answers", [{"text": ["훈민정음"], "answer_start": [13]}, "훈민정음", ["훈민정음"], {"text": "훈민정음"}]
)
def test_json_lines_in_every_layout(tmp_path: Path, answers: Any) -> None:
    row = json.dumps({"question": "무엇?", "context": CONTEXT, "answers": answers}, ensure_ascii=False)
    (example,) = read_questions([written(tmp_path, "q.jsonl", row + "\n")])
    assert [span.text for span in example.answers] == ["훈민정음"]
    assert CONTEXT[example.answers[0].start :].startswith("훈민정음")


def test_tables_by_header_or_by_named_columns(tmp_path: Path) -> None:
    expected_names = written(tmp_path, "a.csv", 'question,context,answer\nWho?,"A cat, a dog",a dog\nWhy?,A cat,\n')
    first, second = read_questions([expected_names])
    assert (first.answers, second.answers) == ((AnswerSpan(7, "a dog"),), ())
    named = written(tmp_path, "b.tsv", "frage\ttext\tantwort\tab\nWo?\tda und da\tda\t7\n")
    (example,) = read_questions([named], columns=["frage", "text", "antwort", "ab"])
    assert example.answers == (AnswerSpan(7, "da"),)


def test_an_answer_that_is_not_there_is_dropped_and_counted(tmp_path: Path) -> None:
    report = TextReport()
    path = written(tmp_path, "a.tsv", "question\tcontext\tanswer\nWho?\tA cat\ta dog\nWho?\tA cat\tcat\n")
    assert len(list(read_questions([path], report=report))) == 1
    assert {reason: tally.count for reason, tally in report.dropped.items()} == {"the answer is not in the context": 1}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "{}", 'a list under "data"'),
        ("a.json", "[1", "not JSON"),
        ("a.json", '{"data": [{"paragraphs": [{"qas": []}]}]}', '"context"'),
        ("a.json", squad({"question": 3}), '"question"'),
        ("a.csv", "q,context,answer\nx,y,z\n", "no column for the question"),
        ("a.jsonl", '{"question": "q", "context": "c", "answers": 5}\n', "answers are a text"),
        ("a.tsv", "question\tcontext\tanswer\tstart\nq\tc\tc\tten\n", "not 'ten'"),
        (
            "a.jsonl",
            '{"question": "q", "context": "c", "answers": {"text": ["c"], "answer_start": [1e999]}}',
            "not inf",
        ),
        ("a.jsonl", '{"%s": 1}' % ("x" * 70_000), "no column for the question"),
        ("a.md", "hello", "not a file of questions"),
        ("a.json", "", "the file is empty"),
    ],
)
def test_mistakes_are_named_with_their_place(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = written(tmp_path, name, text)
    with pytest.raises(DataError, match=message) as caught:
        list(read_questions([path]))
    assert str(caught.value).startswith(path)
    assert len(str(caught.value)) < 4100


def test_two_columns_are_not_enough(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="question,context,answer"):
        list(read_questions([written(tmp_path, "a.csv", "x")], columns=["a", "b"]))


def test_the_occurrence_nearest_to_the_claimed_start_is_the_answer() -> None:
    assert locate("da und da", "da", 6) == AnswerSpan(7, "da")
    assert locate("da und da", " da ", 0) == AnswerSpan(0, "da")
    assert locate("da und da", "dort", 0) is None
