"""Long input is cut at sentence ends, and nothing of it is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.tokenizer import Tokenizer
from heedful.errors import DataError
from heedful.families import build, config_of
from heedful.tasks.translation.data import parts_within, sentences
from heedful.tasks.translation.predictor import Translator, TranslatorSettings


def words(text: str) -> int:
    return len(text.split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ('He said "no." Then he left.', ['He said "no."', "Then he left."]),
        ("3.5 is a number. Yes.", ["3.5 is a number.", "Yes."]),
        ("밥을 먹었어요. 물도 마셨어요.", ["밥을 먹었어요.", "물도 마셨어요."]),
        ("你好。再见！", ["你好。", "再见！"]),
        ("no end", ["no end"]),
        ("", []),
    ],
)
def test_sentences_end_where_people_end_them(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_a_short_text_is_left_whole() -> None:
    assert parts_within("One. Two.", 5, words) == ["One. Two."]


def test_parts_are_as_few_as_fit() -> None:
    assert parts_within("a b. c d. e f. g h.", 4, words) == ["a b. c d.", "e f. g h."]


def test_a_sentence_that_cannot_be_cut_is_refused_with_its_length() -> None:
    with pytest.raises(DataError, match=r"7 tokens.*the 4"):
        parts_within("a b. " + "w " * 7, 4, words)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=12))
def test_nothing_is_lost_and_no_part_is_too_long(lengths: list[int]) -> None:
    text = " ".join(" ".join(["w"] * n) + "." for n in lengths)
    parts = parts_within(text, 6, words)
    assert " ".join(parts) == text
    assert all(words(part) <= 6 for part in parts)


def test_a_model_of_single_sentences_translates_every_sentence() -> None:
    tokenizer = Tokenizer.train(["a b c. d e."] * 3, vocab_size=300)
    config = config_of({"preset": "tiny", "d_model": 16, "d_ff": 16}).changed(vocab_size=tokenizer.vocab_size)
    module = build(config)
    answers = {}
    for one_sentence in (False, True):
        settings = TranslatorSettings(source="xa", target="xb", one_sentence=one_sentence)
        translator = Translator(config, module, tokenizer, settings)
        answers[one_sentence] = translator.predict(["a b c. d e.", "a b c.", "d e."], max_new_tokens=4)
    together, first, second = answers[True]
    assert together == f"{first} {second}"
    assert answers[False][1:] == [first, second]
