"""What a sentence is made of: named constructions for reports, and derivation features for the held-out sets."""

from __future__ import annotations

from collections.abc import Iterator

from heedful.data.grammar.frames import Clause, Phrase, Sentence
from heedful.data.grammar.lexicon import Adverb

LINKS = {"-고": "and", "-지만": "but", "-아서/어서": "because", "-(으)니까": "since", "-(으)면": "if"}
_NEGATIONS = {"안": "negation", "지": "long negation", "못": "inability", "lexical": "negation"}
_ROLES = {
    "at": "location", "in": "location", "with": "company", "by": "means", "give": "recipient", "than": "comparison",
    "from": "from-to", "until": "from-to",
}  # fmt: skip

PROBES = {
    "who did what under scrambling": ("scrambled",),
    "polarity": ("negation", "long negation", "inability", "prohibition"),
    "tense": ("past", "future", "progressive"),
    "numbers": ("counting", "clock", "date", "money", "age"),
    "question words": ("question word",),
    "particle": ("scrambled", "transitive", "possession", "recipient"),
    "honorific": ("honorific",),
}
"""What a report groups by: the constructions that each probe looks at."""


def constructions(sentence: Sentence) -> frozenset[str]:
    """The names of the constructions in a sentence."""
    found: set[str] = {sentence.mood}
    if len(sentence.clauses) > 2:
        found.add("three clauses")
    for clause in _clauses(sentence):
        found.update(_of_clause(clause))
    return frozenset(found)


def words(sentence: Sentence) -> Iterator[str]:
    """The dictionary forms of the words in a sentence."""
    for clause in _clauses(sentence):
        yield clause.predicate.lemma
        for phrase in _phrases(clause):
            yield phrase.noun.korean
            if phrase.adjective:
                yield phrase.adjective.lemma
        for extra in clause.extras:
            if isinstance(extra.thing, Adverb):
                yield extra.thing.korean


def pairs(sentence: Sentence) -> Iterator[str]:
    """The pairs of words that depend on each other: 읽다+책, 크다+방, 가다+학교."""
    for clause in _clauses(sentence):
        lemma = clause.predicate.lemma
        if clause.object and clause.object.noun.kind != "question":
            yield f"{lemma}+{clause.object.noun.korean}"
        elif clause.predicate.verb.adjective and clause.subject and clause.predicate.subjects:
            yield f"{lemma}+{clause.subject.noun.korean}"
        for extra in clause.extras:
            if isinstance(extra.thing, Phrase) and extra.role in ("to", "at"):
                yield f"{lemma}+{extra.thing.noun.korean}"
        for phrase in _phrases(clause):
            if phrase.adjective:
                yield f"{phrase.adjective.lemma}+{phrase.noun.korean}"


def quantities(sentence: Sentence) -> Iterator[str]:
    """Numbers with what they count, times, dates and amounts: 3 개, clock 3:15."""
    for clause in _clauses(sentence):
        for phrase in _phrases(clause):
            if phrase.number:
                yield f"{phrase.number} {phrase.noun.counter}"
            if phrase.noun.quantity:
                yield phrase.noun.quantity
        for extra in clause.extras:
            if isinstance(extra.thing, Adverb) and extra.thing.quantity:
                yield extra.thing.quantity


def _clauses(sentence: Sentence) -> Iterator[Clause]:
    for clause in sentence.clauses:
        yield clause
        for phrase in _phrases(clause):
            if phrase.relative:
                yield phrase.relative


def _phrases(clause: Clause) -> Iterator[Phrase]:
    if clause.subject:
        yield clause.subject
    if clause.object:
        yield clause.object
    for extra in clause.extras:
        if isinstance(extra.thing, Phrase):
            yield extra.thing


def _of_clause(clause: Clause) -> Iterator[str]:
    predicate, marks = clause.predicate, clause.predicate.marks
    if clause.object and predicate.particle == "을/를":
        yield "transitive"
    for mark, name in (("exist", "existence"), ("have", "possession"), ("copula", "copula"), ("weather", "weather")):
        if mark in marks:
            yield name
    if "motion" in marks:
        yield "direction"
    if predicate.verb.adjective and predicate.english.startswith("be "):
        yield "adjective"
    if clause.tense != "present":
        yield clause.tense
    if clause.modal or clause.now:
        yield clause.modal or "progressive"
    if clause.negation:
        yield "negation" if clause.modal == "can" else _NEGATIONS[clause.negation]
    if clause.asked:
        yield "question word"
    if clause.scrambled:
        yield "scrambled"
    if clause.bare_object:
        yield "particle dropped"
    if clause.degree == "most":
        yield "superlative"
    if clause.link:
        yield LINKS[clause.link]
    if clause.subject and clause.subject.noun.elder:
        yield "honorific"
    for extra in clause.extras:
        if extra.role in _ROLES:
            yield _ROLES[extra.role]
        elif extra.role == "when" and isinstance(extra.thing, Adverb) and extra.thing.quantity:
            yield extra.thing.quantity.split(" ")[0]
    for phrase in _phrases(clause):
        if phrase.number:
            yield "counting"
        if phrase.adjective:
            yield "attributive"
        if phrase.relative:
            yield "relative"
        if phrase.noun.quantity:
            yield phrase.noun.quantity.split(" ")[0]
