"""Which words of an input the corpus does not know, so that a page can say so instead of guessing with confidence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from heedful.data.grammar import english_forms as forms
from heedful.data.grammar.korean import numbers
from heedful.data.grammar.korean.particles import attach
from heedful.data.grammar.korean.verbs import Verb, conjugate, copula
from heedful.data.grammar.korean_predicates import FINAL
from heedful.data.grammar.lexicon import (
    BECOME,
    COPULA,
    EXIST,
    FANCY,
    GIVE_UP,
    KNOW_NOT,
    LACK,
    NEED,
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


def words_outside(text: str, level: Level = "demo") -> list[str]:
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
    extra = (EXIST, LACK, COPULA, KNOW_NOT, GIVE_UP, NEED, FANCY, BECOME)
    return (*words.verbs, *words.motion, *words.transfer, *words.adjectives, *words.weather, *words.messages, *extra)


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
        yield from (numbers.native(n), numbers.native(n, before_counter=True), numbers.sino(n))
    for month in range(1, 13):
        yield from (numbers.month(month), numbers.month(month) + "에")


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
    words, found = lexicon(level), [*_ENGLISH_SMALL_WORDS.split(), *(month.lower() for month in forms.MONTHS)]
    for noun in words.nouns.values():
        found += f"{noun.english} {forms.plural(noun.english)} {noun.at} {noun.to}".split()
    for adverb in (*words.adverbs.values(), *words.times):
        found += adverb.english.split()
    for predicate in _predicates(words):
        head, *rest = predicate.english.split()
        found += [head, forms.third(head), forms.past(head), forms.participle(head), forms.ing(head), *rest]
        if head == "be":
            found += [*rest, *forms.comparative(predicate.quality), *forms.superlative(predicate.quality)]
    found += [forms.in_words(n) for n in range(1, 100)]
    return frozenset(word.lower() for word in found)
