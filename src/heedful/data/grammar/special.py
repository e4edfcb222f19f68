"""Sentences of particular kinds: messages, gifts, needs, comparisons, attempts, relative clauses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from heedful.data.grammar.choices import Choice, first_that
from heedful.data.grammar.clauses import ClauseSampler, is_of_it
from heedful.data.grammar.frames import Clause, Extra, Mood, Phrase, Pointer, SpeechLevel
from heedful.data.grammar.lexicon import (
    BECOME,
    FANCY,
    GIVE_UP,
    NEED,
    I,
    Noun,
    Predicate,
)

Told = tuple[Mood, Clause, SpeechLevel | None]
_NOT_COMPARED = ("white", "red", "blue", "yellow", "black")
_ACROSS_KINDS = ("expensive", "cheap", "delicious")


class SpecialSampler:
    """Draws what is said in its own way."""

    def __init__(self, clauses: ClauseSampler) -> None:
        self.clauses = clauses
        words = clauses.words
        self.software = [verb for verb in words.verbs if "software" in verb.marks]
        self.message_modes: Choice[str] = Choice({"can": 55, "past": 25, "progressive": 10, "future": 10})
        self.comparable = [
            adjective
            for adjective in words.adjectives
            if len(adjective.subjects) > 3
            and adjective.quality not in _NOT_COMPARED
            and not adjective.subjects[0].animate
        ]
        self.of_people = [adjective for adjective in words.adjectives if adjective.quality in ("busy", "kind", "smart")]
        self.meeting = [verb for verb in words.verbs if verb.english in ("meet", "help", "see", "wait for", "invite")]
        self.cores: dict[Callable[[], Clause], float] = {
            self.need: 2.5, self.fancy: 1.5, self.become: 2, self.known_message: 5,
        }  # fmt: skip
        self.shapes: dict[Callable[[], Told], float] = {
            self.comparison: 4, self.superlative: 2, self.offer: 1, self.of_relative: 4, self.with_relative: 4,
            self.trying: 2,
        }  # fmt: skip
        self.described = [
            (verb, noun, adjectives)
            for verb in words.verbs
            for noun in verb.objects
            if _can_be_described(verb, noun, words.among("interesting"))
            and (adjectives := [a for a in words.adjectives if noun in a.subjects and a.quality not in ("good", "bad")])
        ]
        self.chained = [
            (first, noun, second)
            for first in words.verbs
            if first.english in ("buy", "make", "write", "receive", "borrow", "draw")
            for second in words.verbs
            if second.english in ("eat", "drink", "read", "wear", "like", "use", "sell", "lose", "watch", "fix", "save")
            for noun in first.objects
            if noun in second.objects
            and noun.kind in ("count", "mass", "plural")
            and (first.english, second.english) != ("borrow", "sell")
        ]

    # messages

    def message(self) -> Told:
        """파일을 저장할 수 없습니다: of nobody, in the formal level."""
        kinds = self.clauses
        verb = kinds.pick(self.software)
        clause = Clause(verb, object=Phrase(kinds.pick(verb.objects)), person="I")
        kinds.set_mode(clause, self.message_modes.of(kinds.random))
        if kinds.chance({"can": 0.75}.get(clause.modal, 0.3 if clause.tense == "past" else 0)):
            clause.negation = "못"
        return "statement", clause, "합쇼"

    def offer(self) -> Told:
        """파일을 삭제하시겠습니까?"""
        verb = self.clauses.pick(self.software)
        return "offer", Clause(verb, object=Phrase(self.clauses.pick(verb.objects)), person="you"), "합쇼"

    def known_message(self) -> Clause:
        """업데이트가 실패했습니다."""
        verb = self.clauses.pick(self.clauses.words.messages)
        clause = Clause(verb, Phrase(self.clauses.pick(verb.subjects)), settled=True)
        clause.tense = "past" if self.clauses.chance(0.8) else "future"
        return clause

    # people and things

    def transfer(self) -> Clause:
        """Giving and sending to somebody; to one's elders one 드리다."""
        kinds = self.clauses
        verb = kinds.pick(kinds.words.transfer)
        clause = Clause(verb, object=Phrase(kinds.pick(verb.objects)))
        kinds.set_subject(clause)
        actor = clause.subject.noun if clause.subject else None
        receiver = kinds.pick(kinds.stock.companions if clause.person == "I" else kinds.stock.names)
        if receiver is actor or (receiver.elder and not kinds.full):
            receiver = first_that(lambda name: name is not actor, lambda: kinds.pick(kinds.stock.names), "receiver")
        if receiver.elder:
            clause.predicate = replace(GIVE_UP, objects=clause.predicate.objects)
            clause.object = Phrase(kinds.pick(kinds.words.among("given")))
        clause.extras.append(Extra("give", Phrase(receiver)))
        return clause

    def need(self) -> Clause:
        clause = Clause(NEED, object=Phrase(self.clauses.stock.needed.of(self.clauses.random)))
        self.clauses.set_subject(clause, dropped=0.35)
        return clause

    def fancy(self) -> Clause:
        """저는 커피가 좋아요: of oneself only, and said."""
        thing = self.clauses.pick(self.clauses.words.among("liked"))
        return Clause(FANCY, Phrase(I), Phrase(thing), person="I", topic=True, habit=True, settled=True)

    def become(self) -> Clause:
        kinds = self.clauses
        jobs = [job for job in kinds.words.among("jobs") if not job.elder and job.korean != "학생"]
        clause = Clause(BECOME, object=Phrase(kinds.pick(jobs)), settled=True)
        kinds.set_subject(clause)
        if clause.subject and clause.subject.noun.kind == "count":
            clause.subject = Phrase(kinds.pick(kinds.stock.names))
        kinds.set_mode(clause, kinds.pick(("past", "future", "want", "want")))
        return clause

    # comparing

    def comparison(self) -> Told:
        """이 가방이 그 가방보다 더 비싸요."""
        kinds = self.clauses
        adjective = kinds.pick(self.comparable)
        if kinds.chance(0.25):
            adjective = kinds.pick(self.of_people)
            left, right = map(Phrase, kinds.random.sample(kinds.stock.names, 2))
        elif adjective.quality in _ACROSS_KINDS and kinds.chance(0.6):
            left, right = map(Phrase, kinds.random.sample(adjective.subjects, 2))
        else:
            noun = kinds.pick([noun for noun in adjective.subjects if noun.kind in ("count", "mass")])
            left, right = Phrase(noun, "this"), Phrase(noun, "that")
        clause = Clause(adjective, left, extras=[Extra("than", right)], degree="more")
        if kinds.chance(0.2):
            clause.tense = "past"
        return "statement", clause, None

    def superlative(self) -> Told:
        kinds = self.clauses
        adjective = kinds.pick(self.comparable)
        noun = kinds.pick(adjective.subjects)
        pointer: Pointer = "this" if noun.kind in ("count", "mass") and kinds.chance(0.6) else ""
        clause = Clause(adjective, Phrase(noun, pointer), degree="most")
        if kinds.chance(0.2):
            clause.tense = "past"
        return "statement", clause, None

    def trying(self) -> Told:
        """김치를 먹어 봤어요."""
        kinds = self.clauses
        verbs = [
            verb
            for verb in kinds.words.verbs
            if verb.english in ("eat", "drink", "read", "wear", "make", "learn", "cook", "use", "swim")
        ]
        clause = first_that(
            lambda tried: tried.subject is None or not (is_of_it(tried) or tried.subject.noun.elder),
            lambda: kinds.event(kinds.pick(verbs)),
            "attempt",
        )
        clause.modal, clause.tense = "try", "past"
        clause.topic = clause.subject is not None
        return "statement", clause, None

    # relative clauses

    def relative(self, verb: Predicate, noun: Noun, *, past: bool) -> Phrase:
        """제가 산 가방: the noun that somebody does this to."""
        kinds = self.clauses
        clause = Clause(verb)
        kinds.set_subject(clause, dropped=0, me=0.4)
        if "state" in verb.marks:
            clause.habit = True
        elif past or verb.marks & {"once", "creates"} or verb.english == "buy" or kinds.chance(0.6):
            clause.tense = "past"
        else:
            clause.now = True
        if clause.tense == "past" and kinds.chance(0.25):
            clause.extras.append(Extra("when", kinds.stock.times["past"].of(kinds.random)))
        return Phrase(noun, relative=clause)

    def of_relative(self) -> Told:
        """제가 산 가방은 비싸요."""
        kinds = self.clauses
        verb, noun, adjectives = kinds.pick(self.described)
        clause = Clause(kinds.pick(adjectives), self.relative(verb, noun, past=False), topic=True)
        if clause.subject and clause.subject.relative and clause.subject.relative.tense == "past" and kinds.chance(0.4):
            clause.tense = "past"
        return "statement", clause, None

    def with_relative(self) -> Told:
        """민수가 만든 빵을 먹었어요."""
        kinds = self.clauses
        if kinds.chance(0.5):
            return self.of_person()
        first, noun, second = kinds.pick(self.chained)
        clause = Clause(second, object=self.relative(first, noun, past=True), person="I")
        if second.english == "like":
            clause.habit = True
        else:
            kinds.set_mode(clause, kinds.pick(("past", "past", "future", "want")))
        return self.said_by_me(clause)

    def of_person(self) -> Told:
        """책을 읽는 학생은 친절해요; 책을 읽은 학생을 만났어요."""
        kinds = self.clauses
        inner = first_that(_tells_apart, lambda: kinds.person_event(objects=True), "action that tells people apart")
        assert inner.object is not None
        inner.subject, inner.person = None, "other"
        people = [noun for noun in kinds.words.among("person") if noun is not inner.object.noun]
        head = Phrase(kinds.pick(people), relative=inner)
        if kinds.chance(0.5):
            inner.now = True
            return "statement", Clause(kinds.pick(self.of_people), head, topic=True), None
        inner.tense = "past"
        return self.said_by_me(Clause(kinds.pick(self.meeting), object=head, person="I", tense="past"))

    def said_by_me(self, clause: Clause) -> Told:
        """With 저는, or without."""
        if self.clauses.chance(0.5):
            clause.subject, clause.topic = Phrase(I), True
        return "statement", clause, None


def _tells_apart(clause: Clause) -> bool:
    """Not 옷을 입은 사람, nor one's own hands: of whom would that not be true?"""
    noun = clause.object.noun if clause.object else None
    return (
        "once" not in clause.predicate.marks
        and noun is not None
        and noun.kind not in ("own", "kin")
        and noun.korean != "옷"
    )


def _can_be_described(verb: Predicate, noun: Noun, interesting: tuple[Noun, ...]) -> bool:
    """Whether *the noun that I …* has something to say: what is liked must be something to have a liking for."""
    thing = not noun.animate and noun.kind in ("count", "mass", "plural") and not noun.at
    return thing and ("state" not in verb.marks or (verb.english == "like" and noun in interesting))
