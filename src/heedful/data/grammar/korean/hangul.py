"""Syllables and their letters, and the sound a written word ends in.

Korean endings and particles depend on that last sound, also for digits (3 is read 삼) and for Latin words (Python is
read 파이썬). A word whose reading is not known is refused: a guess would be a wrong particle that nobody sees.
"""

from __future__ import annotations

import re

INITIALS = tuple("ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ")
VOWELS = tuple("ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ")
FINALS = ("", *"ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ")
_FIRST, _LAST = ord("가"), ord("힣")

_DIGITS = "영일이삼사오육칠팔구"
_DIGITS_IN_NAMES = ("제로", "원", "투", "쓰리", "포", "파이브", "식스", "세븐", "에이트", "나인")  # A4, MP3, GPT-2
_LETTERS = dict(zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", (
    "에이", "비", "씨", "디", "이", "에프", "지", "에이치", "아이", "제이", "케이", "엘", "엠",
    "엔", "오", "피", "큐", "알", "에스", "티", "유", "브이", "더블유", "엑스", "와이", "제트",
), strict=True))  # fmt: skip
_SYMBOLS = {"%": "퍼센트", "$": "달러", "₩": "원", "€": "유로", "℃": "도", "°": "도", "+": "플러스", "#": "샵"}

READINGS = {
    "adam": "아담", "android": "안드로이드", "attention": "어텐션", "batch": "배치", "bert": "버트", "bleu": "블루",
    "bluetooth": "블루투스", "chrome": "크롬", "cm": "센티미터", "code": "코드", "cuda": "쿠다", "decoder": "디코더",
    "docker": "도커", "dropout": "드롭아웃", "email": "이메일", "embedding": "임베딩", "encoder": "인코더",
    "excel": "엑셀", "file": "파일", "gb": "기가바이트", "git": "깃", "github": "깃허브", "google": "구글",
    "heedful": "히드풀", "html": "에이치티엠엘", "internet": "인터넷", "iphone": "아이폰", "java": "자바",
    "json": "제이슨", "kb": "킬로바이트", "keras": "케라스", "kg": "킬로그램", "km": "킬로미터", "linux": "리눅스",
    "llama": "라마", "loss": "로스", "mac": "맥", "mb": "메가바이트", "mm": "밀리미터",
    "model": "모델", "notebook": "노트북", "numpy": "넘파이", "pandas": "판다스", "pip": "핍", "python": "파이썬",
    "pytorch": "파이토치", "ram": "램", "rom": "롬", "seoul": "서울", "softmax": "소프트맥스", "tensor": "텐서",
    "tensorflow": "텐서플로", "token": "토큰", "torch": "토치", "transformer": "트랜스포머", "twitter": "트위터",
    "vit": "비트", "wi-fi": "와이파이", "wifi": "와이파이", "windows": "윈도우", "word": "워드", "yaml": "야믈",
    "youtube": "유튜브",
}  # fmt: skip
"""How Koreans read Latin words, by their lower-case spelling; other all-capital words are read letter by letter."""

_SILENT = " \t\"'“”‘’「」『』《》〈〉()[]{}<>`*_~.,!?…"
_GLOSS = re.compile(r"(?<=\w)\s*\([^()]*\)$")  # 어텐션(attention): the gloss is not read
_NUMBER_AT_END = re.compile(r"(?<![\d.,])\d[\d,]*(?:\.\d+)*$")
_DIGIT_IN_NAME = re.compile(r"[A-Za-z]-?\d$")
_LATIN_AT_END = re.compile(r"[A-Za-z]+(?:-[A-Za-z]+)*$")


def compose(initial: str, vowel: str, final: str = "") -> str:
    """The syllable of these letters: ㅎ, ㅏ, ㄴ → 한."""
    try:
        index = (INITIALS.index(initial) * len(VOWELS) + VOWELS.index(vowel)) * len(FINALS) + FINALS.index(final)
    except ValueError:
        raise ValueError(f"{initial!r}, {vowel!r}, {final!r} are not the letters of a Hangul syllable") from None
    return chr(_FIRST + index)


def decompose(syllable: str) -> tuple[str, str, str]:
    """The initial, the vowel and the final ("" where there is none) of one syllable: 한 → ㅎ, ㅏ, ㄴ."""
    if not is_syllable(syllable):
        raise ValueError(f"{syllable!r} is not one Hangul syllable (가 to 힣)")
    rest, final = divmod(ord(syllable) - _FIRST, len(FINALS))
    initial, vowel = divmod(rest, len(VOWELS))
    return INITIALS[initial], VOWELS[vowel], FINALS[final]


def is_syllable(character: str) -> bool:
    """Whether this is one composed Hangul syllable."""
    return len(character) == 1 and _FIRST <= ord(character) <= _LAST


def with_final(text: str, final: str) -> str:
    """The text with the final of its last syllable replaced: 가 + ㅆ → 갔; with "" the final is dropped."""
    initial, vowel, _ = decompose(text[-1:])
    return text[:-1] + compose(initial, vowel, final)


def final_sound(word: str) -> str:
    """The final consonant the word ends in when read aloud, or "" after a vowel: 책 → ㄱ, 7 → ㄹ, GPU → ""."""
    return decompose(_last_syllable(word))[2]


def _last_syllable(word: str) -> str:
    text = _GLOSS.sub("", word.rstrip(_SILENT.replace(")", ""))).rstrip(_SILENT)
    last = text[-1:]
    if is_syllable(last):
        return last
    if last in _SYMBOLS:
        return _SYMBOLS[last][-1]
    if _DIGIT_IN_NAME.search(text):
        return _DIGITS_IN_NAMES[int(last)][-1]
    if number := _NUMBER_AT_END.search(text):
        return _end_of_number(number.group())
    if latin := _LATIN_AT_END.search(text):
        return _end_of_latin(latin.group())
    raise ValueError(f"no reading for the end of {word!r}; allowed: Hangul, digits, {' '.join(_SYMBOLS)}, Latin words")


def _end_of_number(number: str) -> str:
    """The last syllable of the Sino-Korean reading: 35,000 → 천, 100,000 → 만, 2.5 → 오."""
    whole, _, fraction = number.replace(",", "").partition(".")
    whole = whole.lstrip("0")
    if fraction or not whole:
        return _DIGITS[int((fraction or "0")[-1])]
    zeros = len(whole) - len(whole.rstrip("0"))
    if zeros >= 16:
        raise ValueError(f"{number} is too large to be read; allowed: below 10^16")
    if zeros >= 4:
        return "만억조"[zeros // 4 - 1]
    return "십백천"[zeros - 1] if zeros else _DIGITS[int(whole[-1])]


def _end_of_latin(word: str) -> str:
    reading = READINGS.get(word.lower())
    if reading is None and "-" in word:
        return _end_of_latin(word.rpartition("-")[2])
    if reading is None and word.isupper():
        reading = _LETTERS[word[-1]]
    if reading is None:
        raise ValueError(f"no reading for the Latin word {word!r}; add it to READINGS in {__name__}")
    return reading[-1]
