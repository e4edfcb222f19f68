import unicodedata

import pytest

from heedful.demo.korean_morphology import compose, decompose, final_sound, is_syllable, latin_readings, with_final
from heedful.demo.numerals import sino

# What a word ends in when read aloud; . is a vowel.
FINAL_SOUNDS = """
.: 나무 의사 2 4 5 9 19 2.5 GPU BERT A4 MP3 GPT-2 H T Transformer PyTorch 50% C++ USB OK Wi-Fi 3km
ㄱ: 책 6 100 600 2600 Mac H200
ㄴ: 문 1000 35000 35,000 10000 100000 Python JSON N iPhone 어텐션(attention) "어텐션"
ㄹ: 서울 물 1 7 8 11 3.11 URL HTML ML R L Google YAML email 21
ㅁ: 밤 3 13 2.3 RAM M PM Chrome 10kg
ㅂ: 집 10 20 110 10010
ㅅ: 옷 Git dropout
ㅇ: 방 0 2.0 embedding
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


def test_digits_end_as_their_reading_does() -> None:
    numbers = [*range(1300), *(digit * 10**power for digit in range(1, 10) for power in range(16)), 10**8 + 10**4]
    for n in numbers:
        assert final_sound(str(n)) == final_sound(f"{n:,}") == final_sound(sino(n)), n


def test_readings_are_hangul() -> None:
    assert all(word == word.lower() and all(map(is_syllable, reading)) for word, reading in latin_readings().items())


@pytest.mark.parametrize("word", ["", "?!", "Qwzx", "日", "10000000000000000"])
def test_what_cannot_be_read_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match=r"no reading for|too large"):
        final_sound(word)


@pytest.mark.parametrize("letters", [("가", "ㅏ"), ("ㅎ", "ㄴ"), ("ㅎ", "ㅏ", "ㄸ"), ("", "ㅏ")])
def test_impossible_syllables_are_refused(letters: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="not the letters of a Hangul syllable"):
        compose(*letters)


@pytest.mark.parametrize("text", ["", "가나", "a", "ㄱ"])
def test_only_one_syllable_is_taken_apart(text: str) -> None:
    with pytest.raises(ValueError, match="not one Hangul syllable"):
        decompose(text)
