"""Exact match, F1 and entity F1 by the rules of SQuAD's, KorQuAD's and CoNLL's scripts."""

from __future__ import annotations

from collections import Counter

import pytest

from heedful.tasks.class_scores import (
    EntitySpan,
    answer_scores,
    entity_scores,
    entity_spans,
    exact_match,
    marks_entities,
    token_f1,
)


@pytest.mark.parametrize(
    ("prediction", "reference", "exact", "f1"),  # worked out by hand from the rules of SQuAD's script
    [
        ("The Cat.", "cat", 1.0, 1.0),
        ("a cat and the dog", "cat and dog", 1.0, 1.0),
        ("U.S.", "US", 1.0, 1.0),
        ("1,000 cats", "1000", 0.0, 2 / 3),
        ("cat cat dog", "cat dog dog", 0.0, 2 / 3),  # a word counts as often as it is in both
        ("theater", "ater", 0.0, 0.0),  # an article is a word, not letters
        ("dog", "cat", 0.0, 0.0),
        ("the", "an", 1.0, 1.0),  # nothing is left of either
        ("it's  here", "its here", 1.0, 1.0),
    ],
)
def test_english_answers_score_as_in_squad(prediction: str, reference: str, exact: float, f1: float) -> None:
    assert exact_match(prediction, [reference]) == exact
    assert token_f1(prediction, [reference]) == pytest.approx(f1)


def test_korean_answers_score_by_characters_as_in_korquad() -> None:
    prediction, reference = "《서울 특별시》에서", "서울특별시"
    common = sum((Counter("서울특별시에서") & Counter(reference)).values())
    assert token_f1(prediction, [reference]) == pytest.approx(2 * common / (7 + 5))
    assert exact_match("'서울특별시'", [reference]) == 1.0
    assert exact_match("서울 특별시", [reference]) == 0.0  # KorQuAD's script keeps the space


def test_the_best_reference_counts_and_an_empty_answer_is_right_only_where_there_is_none() -> None:
    assert exact_match("two", ["2", "two"]) == 1.0
    assert token_f1("two dogs", ["2", "two"]) == pytest.approx(2 / 3)
    assert [exact_match("", []), exact_match("x", []), exact_match("", ["x"])] == [1.0, 0.0, 0.0]
    assert [token_f1("", []), token_f1("x", []), token_f1("", ["x"])] == [1.0, 0.0, 0.0]


def test_unanswerable_questions_are_scored_on_their_own_too() -> None:
    scores = answer_scores(["x", "", "y", ""], [["x"], ["z"], [], []])
    values = {name: score.value for name, score in scores.items()}
    assert values == {"exact_match": 50.0, "f1": 50.0, "answerable_f1": 50.0, "unanswerable": 50.0}
    assert set(answer_scores(["x"], [["x"]])) == {"exact_match", "f1"}


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("B-A I-A O B-B", [("A", 0, 2), ("B", 3, 4)]),
        ("I-A I-A B-A O I-B", [("A", 0, 2), ("A", 2, 3), ("B", 4, 5)]),  # IOB1: B only between neighbors
        ("B-A I-B I-B", [("A", 0, 1), ("B", 1, 3)]),  # a new label begins a new entity
        ("S-A B-A E-A E-A", [("A", 0, 1), ("A", 1, 3), ("A", 3, 4)]),  # IOBES
        ("O O", []),
        ("B-New-York I-New-York", [("New-York", 0, 2)]),
    ],
)
def test_entities_are_read_as_conll_does(tags: str, expected: list[tuple[str, int, int]]) -> None:
    assert entity_spans(tags.split()) == [EntitySpan(*span) for span in expected]


def test_entity_scores_count_whole_entities() -> None:
    true = [["B-A", "I-A", "O", "B-B"], ["B-B", "O"]]
    predicted = [["B-A", "O", "O", "B-B"], ["B-B", "B-A"]]
    scores, each = entity_scores(predicted, true)
    assert scores["precision"].value == pytest.approx(100 * 2 / 4)
    assert scores["recall"].value == pytest.approx(100 * 2 / 3)
    assert scores["f1"].value == pytest.approx(100 * 4 / 7)
    assert [(row.label, row.n, row.f1) for row in each] == [("A", 1, 0.0), ("B", 2, 100.0)]


def test_plain_tags_mark_no_entities() -> None:
    assert marks_entities(["O", "B-PER", "I-PER"])
    assert not marks_entities(["NOUN", "VERB", "O"])
    assert not marks_entities(["B-PER", "I-PER"][:0])
