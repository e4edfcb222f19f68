"""What the rules of sense look at: the thing, the place, the time and the manner of a clause."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from heedful.data.grammar import lexicon_sense as data
from heedful.data.grammar.frames import Clause, Phrase
from heedful.data.grammar.lexicon import Adverb, Noun, lexicon


@lru_cache(100)
def among(*classes: str) -> frozenset[Noun]:
    """The nouns of these classes."""
    return frozenset(lexicon("full").among(*classes))


def at_most(noun: Noun, verb: str) -> int:
    """How many of these one buys, eats, has, …; 0 where nobody counts."""
    most = data.COUNTED.get(verb, 0)
    return min(most, 2) if noun.counter == "대" or noun.korean in data.DEAR else most


def phrases(clause: Clause) -> Iterator[Phrase]:
    """The subject, the object, and what the extras name."""
    yield from (phrase for phrase in (clause.subject, clause.object) if phrase)
    yield from (extra.thing for extra in clause.extras if isinstance(extra.thing, Phrase))


def thing_of(clause: Clause) -> str:
    """The object's noun."""
    return clause.object.noun.korean if clause.object else ""


def adverb_of(clause: Clause, role: str) -> Adverb | None:
    """The adverb in this role: when, how, often."""
    return next((e.thing for e in clause.extras if e.role == role and isinstance(e.thing, Adverb)), None)


def manner_of(clause: Clause) -> str:
    """The adverb of manner."""
    adverb = adverb_of(clause, "how")
    return adverb.korean if adverb else ""


def place_of(clause: Clause) -> str:
    """Where it is done, or where one goes."""
    places = (e.thing for e in clause.extras if e.role not in ("with", "give", "by", "from", "than"))
    return next((place.noun.korean for place in places if isinstance(place, Phrase)), "")


def is_a_span(when: Adverb | None) -> bool:
    """From one hour, or one day, to another."""
    return when is not None and when.quantity.startswith("from-to")


def has(clause: Clause, *roles: str) -> bool:
    """Whether an extra has one of these roles."""
    return any(extra.role in roles for extra in clause.extras)


def is_elder(clause: Clause) -> bool:
    """Whether the subject is honoured."""
    return clause.subject is not None and clause.subject.noun.elder


def is_person(noun: Noun) -> bool:
    """Somebody, and not an animal."""
    return noun.animate and noun.pronoun != "it" and noun.kind != "question"


def is_stranger(phrase: Phrase | None) -> bool:
    """Somebody known by a job, not by a name or as kin."""
    return phrase is not None and is_person(phrase.noun) and phrase.noun.kind == "count"
