from __future__ import annotations

from heedful.demo import ParallelExample
from heedful.demo.template_lookup import TemplateLookup


def test_words_are_exchanged_in_remembered_sentences() -> None:
    lookup = TemplateLookup("demo")
    lookup.learn([("민수가 책을 읽었어요.", "Minsu read a book."), ("저는 커피를 마셔요.", "I drink coffee.")])
    assert lookup.answer("유나가 사과를 샀어요.") == "Yuna bought an apple."
    assert lookup.answer("저는 우유를 마셔요.") == "I drink milk."
    assert lookup.answer("책을 민수가 읽었어요.") is None
    assert lookup.answer("저는 사과를 마셔요.") is None  # apples are counted, coffee is not


def test_it_answers_part_of_what_is_new(
    training: dict[str, list[ParallelExample]], held_out: dict[str, dict[str, list[ParallelExample]]]
) -> None:
    lookup = TemplateLookup("demo")
    lookup.learn((example.korean, example.english) for example in training["demo"])

    def right(split: str) -> float:
        examples = held_out["demo"][split]
        return sum(lookup.answer(example.korean) in example.accepted for example in examples) / len(examples)

    assert 0.3 < right("T1") < 0.9
    assert right("T5") == 0
