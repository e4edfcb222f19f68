"""Checks of text: which words the corpus does not know, and what is wrong with a Korean sentence."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import product
from typing import Any, Literal

from . import english_morphology as english
from . import numerals
from .course import FirstContact, first_contact_sentences
from .korean_morphology import Verb, attach, conjugate, copula, final_sound
from .lexicon import COPULA, STRUCTURAL_PREDICATES, Level, Lexicon, lexicon
from .tables import read_rows, read_yaml, split_list

_TABLE = read_yaml("function_words.yaml")
_TENSED, _UNTENSED, _PARTICLES = (split_list(_TABLE[name]) for name in ("tensed", "untensed", "particles"))
_HELPERS = [Verb(stem) for stem in ("하", "잘하", "않", "말", "주", "못하", "계시", "아니")]
_DESCRIBING_HELPERS = [Verb(stem, adjective=True) for stem in ("싶", "않")]
_NUMBER = re.compile(r"\d[\d,:.]*(만|천|억|월|일(에|이에요|입니다|이야)?)?")
_TAG = re.compile(r"^\[\w+\] ")
_EDGES = " .,?!\"'“”‘’()[]"


def out_of_vocabulary(text: str, level: Level = "demo") -> list[str]:
    """Return the words of a Korean or English text that the lexicon lacks in every form the corpus uses."""
    tokens = [word.strip(_EDGES) for word in text.split()]
    korean, english = _korean_words(level), _english_words(level)
    return [word for word in tokens if word and not _is_known(word, korean, english)]


def unknown_words(model: Any, text: Any) -> list[str]:
    """Return the words of a text that a model of the built-in grammar does not know; none for any other model."""
    level: Level | Literal[""] = getattr(model.settings, "lexicon", "")
    return out_of_vocabulary(_TAG.sub("", text), level) if level else []


def _is_known(word: str, korean: frozenset[str], english: frozenset[str]) -> bool:
    if word in korean or _NUMBER.fullmatch(word):
        return True
    lower = word.lower()
    return (
        lower in english
        or lower.removesuffix("'s") in english
        or ("-" in lower and all(part in english for part in lower.split("-")))
    )


@lru_cache(3)
def _korean_words(level: Level) -> frozenset[str]:
    first = [word for sentence in _first_contact(level) for text in sentence.korean for word in text.split()]
    return frozenset((*_of_level("korean", level), *_korean_forms(lexicon(level)), *(w.strip(_EDGES) for w in first)))


def _first_contact(level: Level) -> tuple[FirstContact, ...]:
    return first_contact_sentences() if level == "course" else ()


def _of_level(name: str, level: Level) -> list[str]:
    """Return a list of function words, with those of the course where it is meant."""
    more = _TABLE["course"].get(name, "") if level == "course" else ""
    return [*split_list(_TABLE[name]), *split_list(more)]


def _korean_forms(vocabulary: Lexicon) -> Iterator[str]:
    counters = {noun.counter for noun in vocabulary.nouns.values() if noun.counter}
    tensed = _of_level("tensed", vocabulary.level)
    of_copula = [ending for ending in tensed if ending != "-(으)니까"]
    for noun in (*vocabulary.nouns, *_of_level("korean_nominals", vocabulary.level), *counters):
        yield from noun.split(" ")
        last = noun.split(" ")[-1]
        yield from (attach(last, particle) for particle in _PARTICLES)
        for ending, honorific, past in product(of_copula, (False, True), (False, True)):
            yield copula(last, ending, honorific=honorific, past=past)
    for adverb in (*vocabulary.adverbs.values(), *vocabulary.times):
        yield from adverb.korean.split(" ")
        yield from (adverb.korean.removesuffix("에") + particle for particle in ("부터", "까지"))
    for predicate in (*vocabulary.predicates, *STRUCTURAL_PREDICATES):
        before, _, _ = predicate.lemma.rpartition(" ")
        yield before or predicate.light or predicate.lemma
        if predicate.light:
            yield attach(predicate.light, "을/를")
        for verb in {predicate.verb, predicate.honorific or predicate.verb} - {COPULA.verb}:
            yield from _forms_of(verb, tensed)
    for verb in (*_HELPERS, *_DESCRIBING_HELPERS):
        yield from _forms_of(verb, tensed)
    for n in range(1, 100):
        yield from (numerals.native(n), numerals.native(n, before_counter=True), numerals.sino(n))
    yield from (numerals.month(month) + particle for month in range(1, 13) for particle in ("", "에"))


def _forms_of(verb: Verb, tensed: list[str]) -> Iterator[str]:
    for _, form in inflected(verb, tensed):
        yield from (form, form.removesuffix("요"), re.sub("겠습니다$", "겠습니까", form))


def inflected(verb: Verb, tensed: Sequence[str] = _TENSED) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each form of a verb."""
    for ending, honorific, past in product((*tensed, *_UNTENSED), (False, True), (False, True)):
        if past and ending not in tensed:
            continue
        with suppress(ValueError):  # this word does not take this ending
            form = conjugate(verb, ending, honorific=honorific, past=past)
            yield f"{'-시-' * honorific}{'-었-' * past}{ending}", form


@lru_cache(3)
def _english_words(level: Level) -> frozenset[str]:
    vocabulary, forms = lexicon(level), [*_of_level("english", level), *english.MONTHS]
    for noun in vocabulary.nouns.values():
        forms += f"{noun.english} {english.plural(noun.english)} {noun.at} {noun.to}".split()
    for adverb in (*vocabulary.adverbs.values(), *vocabulary.times):
        forms += adverb.english.split()
    for predicate in (*vocabulary.predicates, *STRUCTURAL_PREDICATES):
        head, *rest = predicate.english.split()
        forms += [head, english.third(head), english.past(head), english.participle(head), english.ing(head), *rest]
        if head == "be":
            forms += [*rest, *english.comparative(predicate.quality), *english.superlative(predicate.quality)]
    forms += [english.in_words(n) for n in range(1, 100)]
    forms += [word for sentence in _first_contact(level) for text in sentence.english for word in text.split()]
    return frozenset(word.lower().strip(_EDGES) for word in forms)


# Lint

_FINAL_ENDINGS = {"합쇼": re.compile(r"((?<!아)니다|니까|십시오)[.?]$"), "해요": re.compile(r"요[.?]$")}
_AFTER_CONSONANT = {"은": True, "는": False, "이": True, "가": False, "을": True, "를": False, "과": True, "와": False}


def lint(korean: str) -> list[str]:
    """Return the names of faults in a sentence: translationese, particles, mixed levels, impossible negations.

    The check reads text and knows nothing of the grammar, so it can catch the grammar's mistakes.
    """
    faults = [name for name, pattern in _banned_patterns().items() if pattern.search(korean)]
    faults += _mixed_levels(korean)
    faults += [f"needless 들 in {word}" for word in korean.rstrip(".?").split() if _is_plural(word)]
    faults += [f"particle of {word}" for word in korean.rstrip(".?").split() if not _particle_fits(word)]
    if "께서" in korean and not re.search(r"[시셨셔세십실신]|계", korean.split("께서", 1)[1]):
        faults.append("께서 without -시-")
    return faults


@lru_cache(1)
def _banned_patterns() -> dict[str, re.Pattern[str]]:
    return {row["name"]: re.compile(row["pattern"]) for row in read_rows("lint_patterns.tsv", "name", "pattern")}


def _mixed_levels(korean: str) -> list[str]:
    level = next((name for name, pattern in _FINAL_ENDINGS.items() if pattern.search(korean)), "해")
    humble = re.search(r"(^|\s)(저는|제가|저를|제)\s", korean)
    familiar = re.search(r"(^|\s)(나는|내가|너는|네가|내)\s", korean)
    return ["저 or 나 on the wrong level"] if (humble if level == "해" else familiar) else []


def _is_plural(word: str) -> bool:
    noun, plural, _ = word.partition("들")
    return bool(plural) and noun in _nouns()


@lru_cache(50_000)
def _particle_fits(word: str) -> bool:
    """Return True unless a noun of the lexicon has the wrong form of a particle."""
    for length in range(len(word) - 1, 0, -1):
        noun, particle = word[:length], word[length:]
        if noun in _nouns():
            if particle in _AFTER_CONSONANT:
                return bool(final_sound(noun)) == _AFTER_CONSONANT[particle]
            if particle in ("로", "으로"):
                return (final_sound(noun) not in ("", "ㄹ")) == (particle == "으로")
            if re.fullmatch("이에요|예요|이?야|(였|이었)(어|어요|습니다)", particle):
                return bool(final_sound(noun)) == particle.startswith("이")
    return True


@lru_cache(1)
def _nouns() -> frozenset[str]:
    """Nouns of two syllables and more: a shorter one may be the beginning of another word."""
    return frozenset(noun for noun in lexicon("full").nouns if len(noun) > 1)
