"""The detection of a language from the text, by script and by frequent words."""

from __future__ import annotations

import pytest

from heedful.serving.libretranslate.languages import DetectedLanguage, detect

MANY = ["en", "ko", "de", "fr", "es", "ja", "zh", "ru", "uk", "el", "ar", "fa"]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The children are playing in the garden.", "en"),
        ("나는 정원에서 책을 읽었어요.", "ko"),
        ("나는 어제 iPhone을 샀다", "ko"),
        ("She ate 김치 for the first time.", "en"),
        ("Ich habe das Buch nicht gelesen, aber es ist schön.", "de"),
        ("Je ne lis pas les livres dans le jardin.", "fr"),
        ("El niño come una manzana en la casa.", "es"),
        ("私は本を読みます", "ja"),
        ("我喜歡讀書", "zh"),
        ("Я читаю книгу, и это хорошо.", "ru"),
        ("Він читає, а вона ні.", "uk"),
        ("Διαβάζω ένα βιβλίο", "el"),
        ("هذا الكتاب في البيت", "ar"),
    ],
)
def test_the_language_is_found_among_many(text: str, language: str) -> None:
    best, *others = detect(text, MANY)
    assert best.language == language
    assert 50 < best.confidence <= 100
    assert all(candidate.confidence <= best.confidence for candidate in others)


@pytest.mark.parametrize(("text", "language"), [("Hello", "en"), ("안녕", "ko"), ("ㅋㅋ", "ko"), ("a", "en")])
def test_a_script_that_one_language_has_says_it_all(text: str, language: str) -> None:
    assert detect(text, ["en", "ko"]) == [DetectedLanguage(language, 100.0)]


@pytest.mark.parametrize("text", ["", " \n", "123.4", "!?", "🙂", "Привет"])
def test_where_nothing_is_known_the_confidence_is_nought(text: str) -> None:
    assert detect(text, ["en", "ko"]) == [DetectedLanguage("en", 0.0)]


def test_of_no_languages_it_is_none() -> None:
    assert detect("Hello", []) == []


def test_a_mixed_text_is_shared_out() -> None:
    confidences = {candidate.language: candidate.confidence for candidate in detect("Hello 안녕하세요", ["en", "ko"])}
    assert confidences == {"ko": 66.7, "en": 33.3}  # 5 letters, 5 syllables that count twice


def test_a_word_that_says_nothing_is_shared_between_those_of_its_script() -> None:
    assert {candidate.confidence for candidate in detect("Taxi", ["en", "de", "ko"])} == {50.0}


def test_a_language_of_which_no_words_are_known_may_still_be_meant() -> None:
    assert detect("Mi legas libron en mia granda domo.", ["en", "eo"])[0].language == "eo"
    assert detect("I read a book in my big state.", ["en", "eo"])[0].language == "en"


def test_chinese_characters_are_japanese_where_nobody_speaks_of_chinese() -> None:
    assert detect("日本", ["en", "ja"]) == [DetectedLanguage("ja", 100.0)]
    assert detect("日本", ["ja", "zh"]) == [DetectedLanguage("zh", 100.0)]
