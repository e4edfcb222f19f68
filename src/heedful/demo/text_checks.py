"""Checks of text: which words the corpus does not know, and what is wrong with a Korean sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from . import english_morphology as english
from . import numerals
from .korean_morphology import Verb, attach, conjugate, copula, final_sound
from .korean_realization import FINAL
from .lexicon import (
    BECOME,
    COPULA,
    EXIST,
    FANCY,
    GIVE_TO_ELDER,
    KNOW_NOT,
    NEED,
    NOT_EXIST,
    Level,
    Lexicon,
    Predicate,
    lexicon,
)

_PARTICLES = (
    "은/는", "이/가", "을/를", "과/와", "(으)로", "에", "에서", "에게", "한테", "께", "께서", "께서는", "보다", "부터",
    "까지", "의", "도", "만", "하고",
)  # fmt: skip
_TENSED = (*FINAL.values(), "-ㅂ니까/습니까", "-고", "-지만", "-(으)니까", "-(으)면")
ENDINGS = (
    *_TENSED, "-아서/어서", "-는", "-(으)ㄴ", "-(으)ㄹ", "-지", "-(으)세요", "-(으)십시오", "-(으)ㄹ까요", "-아야/어야",
    "-겠습니다", "-게", "-기",
)  # fmt: skip
_COPULAS = (*FINAL.values(), "-ㅂ니까/습니까", "-고", "-지만", "-(으)면")
_HELPERS = [Verb(stem) for stem in ("하", "잘하", "않", "말", "주", "못하", "계시", "아니")]
_DESCRIBING_HELPERS = [Verb(stem, adjective=True) for stem in ("싶", "않")]
_SMALL_WORDS = """
이 그 저 제 내 무슨 몇 더 가장 안 못 수 마 위에 아래에 옆에 안에 앞에 뒤에 위 아래 옆 거예요 겁니다 겁니까 거야 왜
어떻게 언제 누가 뭐 무엇 같이 반 원
"""
_LIKE_NOUNS = "저 나 너 누구 뭐 무엇 어디 언제 얼마 이것 그것 오늘 생일 사람 살 시 분 일 월 원 반"
_ENGLISH_SMALL_WORDS = """
i you he she it we they who what where when why how much many old time is am are was were be been being have has had do
does did will can could cannot can't couldn't won't don't doesn't didn't isn't aren't wasn't weren't not no want wants
to a an the some any my your his her its our their this that there in on at under next of front behind from and but so
if since because please shall than more most with by for must try tries tried o'clock years won i'm you're it's he's
she's i'll
"""
_NUMBER = re.compile(r"\d[\d,:.]*(만|천|억|월|일(에|이에요|입니다|이야)?)?")
_EDGES = " .,?!\"'“”‘’()[]"


def out_of_vocabulary(text: str, level: Level = "demo") -> list[str]:
    """The words of a Korean or English text that are not in the lexicon, in any form the corpus uses."""
    words = [word.strip(_EDGES) for word in text.split()]
    korean, english = _korean_words(level), _english_words(level)
    return [word for word in words if word and not _known(word, korean, english)]


def _known(word: str, korean: frozenset[str], english: frozenset[str]) -> bool:
    if word in korean or _NUMBER.fullmatch(word):
        return True
    lower = word.lower()
    return (
        lower in english
        or lower.removesuffix("'s") in english
        or ("-" in lower and all(part in english for part in lower.split("-")))
    )


def _predicates(words: Lexicon) -> tuple[Predicate, ...]:
    structural = (EXIST, NOT_EXIST, COPULA, KNOW_NOT, GIVE_TO_ELDER, NEED, FANCY, BECOME)
    return (*words.predicates, *structural)


@lru_cache(2)
def _korean_words(level: Level) -> frozenset[str]:
    return frozenset(_SMALL_WORDS.split()) | frozenset(_korean_forms(lexicon(level)))


def _korean_forms(words: Lexicon) -> Iterator[str]:
    counters = {noun.counter for noun in words.nouns.values() if noun.counter}
    for noun in (*words.nouns, *_LIKE_NOUNS.split(), *counters):
        yield from noun.split(" ")
        last = noun.split(" ")[-1]
        yield from (attach(last, particle) for particle in _PARTICLES)
        for ending in _COPULAS:
            yield from (copula(last, ending), copula(last, ending, honorific=True))
            yield copula(last, ending, past=True)
    for adverb in (*words.adverbs.values(), *words.times):
        yield from adverb.korean.split(" ")
        yield from (adverb.korean.removesuffix("에") + particle for particle in ("부터", "까지"))
    for predicate in _predicates(words):
        before, _, _ = predicate.lemma.rpartition(" ")
        yield before or predicate.light or predicate.lemma
        if predicate.light:
            yield attach(predicate.light, "을/를")
        for verb in {predicate.verb, predicate.honorific or predicate.verb} - {COPULA.verb}:
            yield from _forms_of(verb)
    for verb in (*_HELPERS, *_DESCRIBING_HELPERS):
        yield from _forms_of(verb)
    for n in range(1, 100):
        yield from (numerals.native(n), numerals.native(n, before_counter=True), numerals.sino(n))
    for month in range(1, 13):
        yield from (numerals.month(month), numerals.month(month) + "에")


def _forms_of(verb: Verb) -> Iterator[str]:
    for _, form in inflected(verb):
        yield from (form, form.removesuffix("요"), re.sub("겠습니다$", "겠습니까", form))


def inflected(verb: Verb) -> Iterator[tuple[str, str]]:
    """Each form of a verb, after the name of the form."""
    for ending in ENDINGS:
        for honorific in (False, True):
            for past in (False, True) if ending in _TENSED else (False,):
                try:
                    form = conjugate(verb, ending, honorific=honorific, past=past)
                except ValueError:  # this word does not take this ending
                    continue
                yield f"{'-시-' * honorific}{'-었-' * past}{ending}", form


@lru_cache(2)
def _english_words(level: Level) -> frozenset[str]:
    words, found = lexicon(level), [*_ENGLISH_SMALL_WORDS.split(), *(month.lower() for month in english.MONTHS)]
    for noun in words.nouns.values():
        found += f"{noun.english} {english.plural(noun.english)} {noun.at} {noun.to}".split()
    for adverb in (*words.adverbs.values(), *words.times):
        found += adverb.english.split()
    for predicate in _predicates(words):
        head, *rest = predicate.english.split()
        found += [head, english.third(head), english.past(head), english.participle(head), english.ing(head), *rest]
        if head == "be":
            found += [*rest, *english.comparative(predicate.quality), *english.superlative(predicate.quality)]
    found += [english.in_words(n) for n in range(1, 100)]
    return frozenset(word.lower() for word in found)


# Lint

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
_FINAL_ENDINGS = {
    "합쇼": re.compile(r"(니다|니까|십시오)[.?]$"),
    "해요": re.compile(r"요[.?]$"),
}
_AFTER_CONSONANT = {"은": True, "는": False, "이": True, "가": False, "을": True, "를": False, "과": True, "와": False}


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
    level = next((name for name, pattern in _FINAL_ENDINGS.items() if pattern.search(korean)), "해")
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
            if particle in _AFTER_CONSONANT:
                return bool(final_sound(noun)) == _AFTER_CONSONANT[particle]
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
