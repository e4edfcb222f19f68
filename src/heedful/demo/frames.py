"""Meaning frames: what a sentence says, before it is said in either language.

Both realizers walk the same frame and mark every word with the key of the part it comes from; equal keys are aligned
words. A clause has a range of keys: its predicate's parts first, then one decade for each of its phrases.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from .lexicon import Adverb, Noun, Predicate

SpeechLevel = Literal["해요", "합쇼", "해", "한다"]
Mood = Literal["statement", "question", "command", "prohibition", "request", "suggestion", "offer"]
Determiner = Literal["", "this", "that", "my", "how many"]
Tense = Literal["present", "past", "future"]
Modal = Literal["", "progressive", "can", "want", "must", "try"]
Negation = Literal["", "안", "못", "지", "lexical"]
Token = tuple[str, int]
"""A word and the key of what it expresses; key -1 expresses nothing by itself."""
Tokens = tuple[Token, ...]

VERB, MODAL, NEGATION, TENSE, LINK = 0, 1, 2, 3, 4  # parts of a predicate
SUBJECT, OBJECT, ADJUNCTS = 10, 20, 30  # where phrases begin
HEAD, DETERMINER, ADJECTIVE, NUMBER, COUNTER, POSITION = 0, 1, 2, 3, 4, 5  # parts of a phrase
NOTHING = -1
CLAUSE, NESTED = 100, 1000  # the width of a clause; a relative clause of the phrase with key k begins at NESTED * k


@dataclass(slots=True)
class Phrase:
    """A noun and what stands before it."""

    noun: Noun
    determiner: Determiner = ""
    adjective: Predicate | None = None
    number: int = 0
    relative: Clause | None = None
    possessor: Noun | None = None


@dataclass(slots=True)
class Adjunct:
    """A phrase or adverb in a role: at, to, from, with, by, …, when, often, how."""

    role: str
    constituent: Phrase | Adverb


@dataclass(slots=True)
class Clause:
    """A predicate with its arguments; without a subject it speaks of I or you, or of the subject before it."""

    predicate: Predicate
    subject: Phrase | None = None
    object: Phrase | None = None
    adjuncts: list[Adjunct] = field(default_factory=list)
    person: Literal["I", "you", "other", "it"] = "other"
    tense: Tense = "present"
    modal: Modal = ""
    negation: Negation = ""
    habit: bool = False
    now: bool = False
    topic: bool = False
    shares_subject: bool = False
    scrambled: bool = False
    drops_particle: bool = False
    wh_role: str = ""
    """The role that a question word has: subject, object, or that of an adjunct."""
    has_tense: bool = False
    degree: Literal["", "more", "most", "too", "very", "really"] = ""
    link: str = ""
    """The connective that joins it to the next clause."""
    fronted: bool = False
    """Its subject stands before the clause of its reason: 동물은 길이 너무 넓어서 …"""
    drops_object: bool = False
    """Its object is the subject of its reason and is not repeated in Korean."""

    def phrases(self) -> Iterator[Phrase]:
        """Yield the subject, the object, and the phrases among the adjuncts."""
        for part in (self.subject, self.object, *[adjunct.constituent for adjunct in self.adjuncts]):
            if isinstance(part, Phrase):
                yield part

    def keyed_adjuncts(self, at: int) -> list[tuple[int, Adjunct]]:
        """Return the adjuncts with their keys, in a clause whose keys begin at `at`."""
        return [(at + ADJUNCTS + 10 * place, adjunct) for place, adjunct in enumerate(self.adjuncts)]

    def has_role(self, *roles: str) -> bool:
        """Return True if an adjunct has one of these roles."""
        return any(adjunct.role in roles for adjunct in self.adjuncts)

    def adverb(self, role: str) -> Adverb | None:
        """Return the adverb in this role: when, how, often."""
        for adjunct in self.adjuncts:
            if adjunct.role == role and isinstance(adjunct.constituent, Adverb):
                return adjunct.constituent
        return None

    @property
    def manner(self) -> str:
        adverb = self.adverb("how")
        return adverb.korean if adverb else ""

    @property
    def place(self) -> str:
        """The goal or the place of the action."""
        for adjunct in self.adjuncts:
            if isinstance(adjunct.constituent, Phrase) and adjunct.role not in ("with", "give", "by", "from", "than"):
                return adjunct.constituent.noun.korean
        return ""

    @property
    def object_noun(self) -> str:
        return self.object.noun.korean if self.object else ""

    @property
    def is_compared(self) -> bool:
        return self.degree in ("more", "most")

    @property
    def has_elder_subject(self) -> bool:
        return self.subject is not None and self.subject.noun.elder

    @property
    def is_of_animal_or_thing(self) -> bool:
        """True if English says *it* of the subject."""
        return self.subject is not None and self.subject.noun.pronoun == "it"


@dataclass(slots=True)
class SentenceFrame:
    """One or more clauses, spoken on one level."""

    level: SpeechLevel
    mood: Mood
    clauses: list[Clause]

    @property
    def reason(self) -> Clause | None:
        """The clause that says what is too much, which English puts last: because it was too tired."""
        first = self.clauses[0]
        return first if first.link and first.degree == "too" else None
