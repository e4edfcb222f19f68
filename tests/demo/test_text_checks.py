from __future__ import annotations

from itertools import islice

import pytest

from heedful.demo import ParallelExample, handwritten_sentences, lint, out_of_vocabulary

BAD = [
    "그녀는 책을 읽었어요.",
    "당신은 학생이에요?",
    "저는 책을 가지고 있어요.",
    "파일이 저에 의해 저장됐어요.",
    "나의 가방은 작아.",
    "학생들이 학교에 갔어요.",
    "저는  책을 읽어요.",
    "저는 안 공부해요.",
    "학생는 책을 읽어요.",
    "민수이 왔어요.",
    "서울으로 갔어요.",
    "의사이에요.",
    "저가 책을 읽었어요.",
    "저는 책을 읽었어.",
    "나는 책을 읽었어요.",
    "저는 책을 읽으셨어요.",
    "어머니께서 책을 읽었어요.",
    "추웠어서 문을 닫았어요.",
    "추워서 문을 닫으세요.",
    "가방이 못 비싸요.",
    "시간이 안 있어요.",
    "저는 책을 읽어요",
]


@pytest.mark.parametrize("sentence", BAD)
def test_what_is_wrong_is_found(sentence: str) -> None:
    assert lint(sentence)


@pytest.mark.parametrize("level", ["demo", "full"])
def test_the_corpus_is_clean(level: str, training: dict[str, list[ParallelExample]]) -> None:
    for example in islice(training[level], 20_000):
        assert not lint(example.korean), example.korean
    for example in islice(training[level], 1000):
        assert not any(lint(other) for other in example.accepted_korean), example.accepted_korean


@pytest.mark.parametrize("level", ["demo", "full"])
def test_the_corpus_stays_inside_its_words(level: str, training: dict[str, list[ParallelExample]]) -> None:
    for example in islice(training[level], 5000):
        assert not out_of_vocabulary(example.korean, level), example.korean  # type: ignore[arg-type]
        assert not out_of_vocabulary(example.english, level), example.english  # type: ignore[arg-type]


def test_words_outside_are_named_in_their_order() -> None:
    assert out_of_vocabulary("저는 우주선을 탔어요.") == ["우주선을"]
    assert out_of_vocabulary("도깨비가 사과를 삼켰어요!") == ["도깨비가", "삼켰어요"]
    assert out_of_vocabulary("The dragon ate an apple.") == ["dragon"]
    assert out_of_vocabulary("들으면 걸어서 추우니까 도와요") == []  # forms of known words that the demo may not use
    assert out_of_vocabulary("변호사를 만났어요.", "demo") == ["변호사를"]
    assert out_of_vocabulary("변호사를 만났어요.", "full") == []


def test_one_hundred_sentences_by_hand_within_the_demo() -> None:
    assert len({korean for korean, _ in handwritten_sentences()}) == 100
    for korean, answers in handwritten_sentences():
        assert not out_of_vocabulary(korean)
        assert not lint(korean)
        assert answers
        assert all(answer[0].isupper() and answer[-1] in ".?" for answer in answers)
        assert all((answer[-1] == "?") == (korean[-1] == "?") for answer in answers)
