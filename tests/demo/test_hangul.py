import unicodedata

import pytest

from heedful.demo.korean_morphology import compose, decompose, final_sound, is_syllable, latin_readings, with_final

# What a word ends in when read aloud; . is a vowel.
FINAL_SOUNDS = """
.: 나무 의사 GPU BERT H T Transformer PyTorch USB OK
ㄱ: 책 Mac
ㄴ: 문 Python JSON N iPhone
ㄹ: 서울 물 URL HTML ML R L Google YAML email
ㅁ: 밤 RAM M PM Chrome
ㅂ: 집
ㅅ: 옷 Git dropout
ㅇ: 방 embedding
ㅄ: 값
"""


def test_composition_is_unicode_composition() -> None:
    for syllable in map(chr, range(ord("가"), ord("힣") + 1)):
        letters = decompose(syllable)
        assert compose(*letters) == syllable
        expected = [unicodedata.name(letter).split()[-1] for letter in unicodedata.normalize("NFD", syllable)]
        assert [unicodedata.name(letter).split()[-1] for letter in letters if letter] == expected


def test_finals_are_set_and_dropped() -> None:
    assert with_final("가", "ㅆ") == "갔"
    assert with_final("안 춥", "") == "안 추"


@pytest.mark.parametrize("line", FINAL_SOUNDS.strip().splitlines())
def test_final_sound_is_how_the_word_is_read(line: str) -> None:
    sound, _, words = line.partition(": ")
    assert {word: final_sound(word) for word in words.split()} == dict.fromkeys(words.split(), sound.strip("."))


def test_readings_are_hangul() -> None:
    assert all(word == word.lower() and all(map(is_syllable, reading)) for word, reading in latin_readings().items())


@pytest.mark.parametrize("word", ["", "?!", "Qwzx", "日", "10"])
def test_words_without_a_reading_are_refused(word: str) -> None:
    with pytest.raises(ValueError, match=r"no reading for"):
        final_sound(word)


@pytest.mark.parametrize("letters", [("가", "ㅏ"), ("ㅎ", "ㄴ"), ("ㅎ", "ㅏ", "ㄸ"), ("", "ㅏ")])
def test_impossible_syllables_are_refused(letters: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="not the letters of a Hangul syllable"):
        compose(*letters)


@pytest.mark.parametrize("text", ["", "가나", "a", "ㄱ"])
def test_only_one_syllable_is_taken_apart(text: str) -> None:
    with pytest.raises(ValueError, match="not one Hangul syllable"):
        decompose(text)
