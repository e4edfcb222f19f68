"""Long input is cut at sentence ends, and nothing of it is lost."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.tokenizer import Tokenizer
from heedful.errors import DataError
from heedful.families import build, config_of
from heedful.tasks.translation.data import LongTextWarning, parts_within, sentences
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
    assert parts_within("One. Two.", 5, 5, words) == ["One. Two."]


def test_parts_are_as_few_as_fit() -> None:
    assert parts_within("a b. c d. e f. g h.", 4, 4, words) == ["a b. c d.", "e f. g h."]


@pytest.mark.parametrize("room", [None, 9])
def test_a_sentence_longer_than_in_training_is_read_whole_where_it_has_room(room: int | None) -> None:
    long = " ".join(["w"] * 9)
    assert parts_within(f"a b. {long}", 4, room, words) == ["a b.", long]


def test_a_sentence_without_room_is_cut_at_clauses_and_else_at_spaces() -> None:
    assert parts_within("a b c, d e; f g h", 4, 4, words) == ["a b c,", "d e;", "f g h"]
    assert parts_within("a b, " + "w " * 7, 4, 4, words) == ["a b, w w", "w w w w", "w"]


def test_a_word_without_room_is_refused_with_its_length() -> None:
    with pytest.raises(DataError, match=r"a word of 7 tokens is longer than the 4 .*break it"):
        parts_within("a b ccccccc.", 4, 4, lambda text: sum(map(len, text.replace(".", "").split())))


@given(st.lists(st.integers(1, 6), min_size=1, max_size=12))
def test_nothing_is_lost_and_no_part_is_too_long(lengths: list[int]) -> None:
    text = " ".join(" ".join(["w"] * n) + "." for n in lengths)
    parts = parts_within(text, 6, 6, words)
    assert " ".join(parts) == text
    assert all(words(part) <= 6 for part in parts)


@pytest.mark.parametrize("text", ["a b c.\nd e.", "\n\n  a b c.\n\n\td e.\r\n", "d e.\n", "\n \n", "a b c.\u2028d e."])
def test_every_line_is_translated_on_its_own_and_the_line_breaks_stay(text: str) -> None:
    translator = tiny_translator(one_sentence=False)
    alone = dict(zip(("a b c.", "d e."), translator.predict(["a b c.", "d e."], max_new_tokens=4), strict=True))
    expected = "".join(alone.get(part, part) for part in re.split(r"(a b c\.|d e\.)", text))
    assert translator.predict([text], max_new_tokens=4) == [expected]
    assert "".join(translator.stream(text, max_new_tokens=4)) == expected
    (several,) = translator.candidates([text], n_best=2, max_new_tokens=4)
    assert {len(answer.text.splitlines()) for answer in several} == {len(text.splitlines())}


def test_long_sentences_are_counted_in_one_warning_for_a_call() -> None:
    translator = tiny_translator(max_tokens=6)
    texts = ["a b c. " * 30, "a b c d e " * 30, "a b " * 40 + "\nb"]
    with pytest.warns(LongTextWarning, match=r"2 sentences longer than .*\(6 tokens\) were read whole") as seen:
        translator.predict(texts, max_new_tokens=1)
    assert len(seen) == 1
    with pytest.warns(LongTextWarning, match="1 sentence longer .* was read whole") as seen:
        "".join(translator.stream(texts[1], max_new_tokens=1))
    assert len(seen) == 1


def tiny_translator(**settings: Any) -> Translator:
    tokenizer = Tokenizer.train(["a b c. d e."] * 3, vocab_size=300)
    config = config_of({"preset": "tiny", "d_model": 16, "d_ff": 16}).changed(vocab_size=tokenizer.vocab_size)
    torch.manual_seed(3)
    return Translator(config, build(config), tokenizer, TranslatorSettings(source="xa", target="xb", **settings))


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
