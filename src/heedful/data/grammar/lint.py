"""A lint for Korean sentences: translationese, wrong particles, mixed levels, impossible negations.

It knows no grammar of the corpus; it reads text, so that it can catch what the grammar gets wrong.
"""

from __future__ import annotations

import re
from functools import lru_cache

from heedful.data.grammar.korean.hangul import final_sound
from heedful.data.grammar.lexicon import lexicon

_PAST = "".join(chr(code) for code in range(ord("갔"), ord("힣"), 28) if chr(code) not in "있겠")
_BANNED = {
    "그녀": r"(^|\s)그녀(는|가|를|의|에게|한테|와)?\b",
    "당신": r"(^|\s)당신",
    "가지고 있다": r"가지고 (있|계)",
    "에 의해": r"에 의(해|하여)",
    "나의, 저의": r"(^|\s)(나|저)의\s",
    "double space": r"\s\s|^\s|\s$|\s[.?]",
    "no end": r"[^.?]$",
    "못 with an adjective": r"(^|\s)못 (크|작|비싸|싸|예뻐|추워|더워|바빠|좋|나빠|길|짧|높|낮|밝)",
    "안 before 있다 or 알다": r"(^|\s)안 (있[어습었]|알[아았]|없)",
    "안 before noun + 하다": r"(^|\s)(안|못) (공부|일|운동|요리|청소|수영|번역|설명|준비|초대|저장|산책)[하했해한할합]",
    "-시- on oneself": r"^(저|나)는 (?!.*(지만|고|서|니까) ).*(?<!마)(셨어요|셨습니다|셨어|세요|십니다|셔)\.$",
    "-아서 with the past": rf"[{_PAST}]어서",
    "-아서 with a command": r"^(?!.*께서).*(아서|어서|여서|와서|워서|파서|해서|빠서|퍼서) .*(세요|십시오)\.$",
    "제 or 내 as a subject": r"(^|\s)(저|나|너|누구)가(\s|$)",
    "spelling of 할 수 있다": r"[갈-힣]수(있|없)",
}
_BANNED_PATTERNS = {name: re.compile(pattern) for name, pattern in _BANNED.items()}
_FINAL = {
    "합쇼": re.compile(r"(니다|니까|십시오)[.?]$"),
    "해요": re.compile(r"요[.?]$"),
}
_PARTICLES = {"은": True, "는": False, "이": True, "가": False, "을": True, "를": False, "과": True, "와": False}


def lint(korean: str) -> list[str]:
    """What is wrong with a sentence, in words; an empty list if nothing was found."""
    found = [name for name, pattern in _BANNED_PATTERNS.items() if pattern.search(korean)]
    found += _mixed_levels(korean)
    found += [f"needless 들 in {word}" for word in korean.rstrip(".?").split() if _is_plural(word)]
    found += [f"particle of {word}" for word in korean.rstrip(".?").split() if not _particle_fits(word)]
    if "께서" in korean and not re.search(r"[시셨셔세십실신]|계", korean.split("께서", 1)[1]):
        found.append("께서 without -시-")
    return found


def _mixed_levels(korean: str) -> list[str]:
    level = next((name for name, pattern in _FINAL.items() if pattern.search(korean)), "해")
    humble = re.search(r"(^|\s)(저는|제가|저를|제)\s", korean)
    familiar = re.search(r"(^|\s)(나는|내가|너는|네가|내)\s", korean)
    if (level == "해" and humble) or (level != "해" and familiar):
        return ["저 or 나 on the wrong level"]
    return []


def _is_plural(word: str) -> bool:
    noun, plural, _ = word.partition("들")
    return bool(plural) and noun in _nouns()


@lru_cache(50_000)
def _particle_fits(word: str) -> bool:
    """Whether a known noun with a particle takes the form that its last sound asks for."""
    for length in range(len(word) - 1, 0, -1):
        noun, particle = word[:length], word[length:]
        if noun in _nouns():
            if particle in _PARTICLES:
                return bool(final_sound(noun)) == _PARTICLES[particle]
            if particle in ("로", "으로"):
                return (final_sound(noun) not in ("", "ㄹ")) == (particle == "으로")
            if particle in ("이에요", "예요", "이야", "야"):
                return bool(final_sound(noun)) == particle.startswith("이")
            if particle in ("였어요", "이었어요", "였어", "이었어", "였습니다", "이었습니다"):
                return bool(final_sound(noun)) == particle.startswith("이")
    return True


@lru_cache(1)
def _nouns() -> frozenset[str]:
    """Nouns of two syllables and more: a shorter one may be the beginning of another word."""
    return frozenset(noun for noun in lexicon("full").nouns if len(noun) > 1)
