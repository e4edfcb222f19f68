"""Clauses joined so that one follows from the other: and, but, so, since, if."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Literal, cast

from heedful.data.grammar.choices import first_that
from heedful.data.grammar.clauses import ClauseSampler, is_of_it
from heedful.data.grammar.frames import Clause, Extra, Mood, Negation, Phrase
from heedful.data.grammar.lexicon import HAVE, I, Noun, Predicate

_CAUSES = {
    "배고프다": "먹다",
    "목마르다": "마시다",
    "피곤하다": "자다 쉬다 못:공부하다 못:운동하다 못:일하다 못:청소하다",
    "아프다": "쉬다 자다 못:공부하다 못:운동하다 못:일하다 못:먹다 가다>병원",
    "바쁘다": "못:자다 못:쉬다 못:운동하다 못:만나다 못:가다 못:먹다 못:읽다 못:청소하다",
    "슬프다": "울다 못:자다 못:먹다 듣다>음악",
    "기쁘다": "웃다 춤추다 노래하다",
    "심심하다": "보다 읽다 듣다 산책하다",
    "비가 오다": "못:운동하다 못:가다>공원 못:걷다 사다>우산 닫다>창문 안:가다>시장",
    "눈이 오다": "못:운동하다 못:가다>학교 못:걷다 입다>코트 신다>부츠 안:가다>시장",
    "춥다": "닫다>창문 닫다>문 입다>코트 끼다>장갑 마시다>차 쓰다>모자",
    "덥다": "열다>창문 열다>문 마시다>물 마시다>주스 못:자다 못:운동하다",
    "바람이 불다": "닫다>창문 입다>코트 못:가다>바다",
}
"""What makes people do, or keeps them from doing, what: 못: and 안: are not done, > names the thing or the place."""

_FAULTS = "작다 비싸다 어렵다 무겁다 느리다 시끄럽다 멀다 어둡다"
_MERITS = "예쁘다 맛있다 재미있다 싸다 깨끗하다 조용하다 좋다 빠르다 밝다 유명하다 크다"
_OPPOSITES = ({"작다", "크다"}, {"비싸다", "싸다"}, {"느리다", "빠르다"}, {"시끄럽다", "조용하다"}, {"어둡다", "밝다"})

_DESPITE = {
    "피곤하다": "공부하다 일하다 운동하다 청소하다 가다>회사 가다>학교 만나다 못:자다 안:자다",
    "아프다": "공부하다 일하다 운동하다 가다>회사 가다>학교 안:쉬다 만나다",
    "바쁘다": "운동하다 만나다 돕다 읽다 청소하다 가다>병원 가다>공원",
    "배고프다": "안:먹다 못:먹다 공부하다 일하다",
    "비가 오다": "운동하다 걷다 가다>시장 가다>공원",
    "춥다": "열다>창문 운동하다 걷다 가다>공원",
    "덥다": "닫다>창문 입다>코트 운동하다 걷다",
}
"""What people do nevertheless."""

_FIRST = (
    "먹다 마시다 읽다 쓰다 보다 듣다 사다 만들다 만나다 공부하다 청소하다 씻다 일하다 운동하다 열다 닫다 끄다 요리하다 "
    "수영하다 산책하다"
)
_THEN = "먹다 마시다 읽다 보다 듣다 자다 쉬다 공부하다 운동하다 청소하다 씻다 일하다 쓰다 만나다 산책하다 요리하다"

POINTERS: tuple[Literal["", "this", "that"], ...] = ("", "this", "that")
Effect = tuple[Negation, Predicate, Noun | None]
Joined = tuple[Mood, list[Clause]]


class JoinSampler:
    """Draws joined clauses, each with the mood of the whole."""

    def __init__(self, clauses: ClauseSampler) -> None:
        self.clauses, words = clauses, clauses.words
        self.by_lemma: dict[str, Predicate] = {}
        for predicate in (*words.verbs, *words.motion, *words.adjectives, *words.weather):
            self.by_lemma.setdefault(predicate.lemma, predicate)
        self.first, self.then = self._known(_FIRST), self._known(_THEN)
        self.causes, self.despite = self._effects(_CAUSES), self._effects(_DESPITE)
        self.contrasts = list(self._contrasts())

    def _known(self, lemmas: str) -> list[Predicate]:
        return [self.by_lemma[lemma] for lemma in lemmas.split() if lemma in self.by_lemma]

    def _effects(self, table: dict[str, str]) -> dict[Predicate, list[Effect]]:
        """The effects of each cause, as far as this level has the words."""
        return {
            self.by_lemma[cause]: [effect for text in effects.split() if (effect := self._effect(text))]
            for cause, effects in table.items()
            if cause in self.by_lemma
        }

    def _effect(self, text: str) -> Effect | None:
        negation, _, rest = text.rpartition(":")
        lemma, _, thing = rest.partition(">")
        noun = self.clauses.words.nouns.get(thing)
        if lemma not in self.by_lemma or (thing and noun is None):
            return None
        verb = self.by_lemma[lemma]
        if noun and noun not in (*verb.objects, *verb.places):  # another sense: 쓰다 with a hat
            verb = next(other for other in self.clauses.words.verbs if other.lemma == lemma and noun in other.objects)
        return cast("Negation", negation), verb, noun

    def _contrasts(self) -> Iterator[tuple[Predicate, Predicate, Noun]]:
        for fault, merit in product(self._known(_FAULTS), self._known(_MERITS)):
            if {fault.lemma, merit.lemma} not in _OPPOSITES:
                yield from ((fault, merit, noun) for noun in fault.subjects if noun in merit.subjects)

    def join(self, first: Clause, link: str, second: Clause) -> list[Clause]:
        """Join two clauses; the second takes over the subject of the first, unless that is the weather."""
        first.link = link
        if "weather" in first.predicate.marks:
            first.now = first.tense == "present" and link != "-(으)면" and not first.predicate.english.startswith("be ")
            second.topic = second.subject is not None
        else:
            first.topic = first.subject is not None
            second.shared, second.subject = True, None
        return [first, second]

    def sequence(self) -> Joined:
        """One does this and then that."""
        kinds = self.clauses
        first = kinds.of_somebody(self.first)
        second = self.next_of(first, [first])
        mode = kinds.pick(("past", "past", "past", "future", "habit"))
        if mode == "habit" and "once" in first.predicate.marks:
            mode = "past"
        for clause in (first, second):
            kinds.set_mode(clause, mode)
        if mode != "habit" and kinds.chance(0.3):
            first.extras.append(Extra("when", kinds.stock.times[mode].of(kinds.random)))
        return "statement", self.join(first, "-고", second)

    def next_of(self, last: Clause, before: Sequence[Clause]) -> Clause:
        """Something else the same one does next."""
        kinds, known = self.clauses, [clause.predicate for clause in before]

        def draw() -> Clause:
            if not kinds.chance(0.4):
                return kinds.event(kinds.pick(self.then), of=last)
            clause = kinds.go(self.by_lemma["가다"])
            clause.person, clause.subject = last.person, last.subject
            return clause

        return first_that(lambda clause: clause.predicate not in known, draw, "next action")

    def side_by_side(self) -> Joined:
        """One does this, another that."""
        return self.two_people("-고")

    def two_people(self, link: str) -> Joined:
        """The same done by two people to two things."""
        kinds = self.clauses
        first = first_that(_is_of_many_things, kinds.event, "action with several objects")
        verb = first.predicate
        if first.subject is None or is_of_it(first):
            first = kinds.event(verb, of=Clause(verb, Phrase(I), person="I"))
        second = first_that(
            lambda other: other.subject is not None and not is_of_it(other) and not _alike(first, other),
            lambda: kinds.event(verb),
            f"second person who {verb.english}",
        )
        mode = "habit" if "state" in first.predicate.marks else kinds.pick(("habit", "past"))
        for clause in (first, second):
            kinds.set_mode(clause, mode)
            clause.topic = True
        first.link = link
        return "statement", [first, second]

    def contrast(self) -> Joined:
        """I like tea, but Minsu likes coffee; the room is small but clean; I was tired but studied."""
        kinds, draw = self.clauses, self.clauses.random.random()
        if draw < 0.4:
            return self.two_people("-지만")
        if draw < 0.75:
            fault, merit, noun = kinds.pick(self.contrasts)
            pointer = kinds.pick(POINTERS) if noun.kind in ("count", "mass") else ""
            first, second = Clause(fault, Phrase(noun, pointer)), Clause(merit)
            first.tense = second.tense = "past" if kinds.chance(0.3) else "present"
        else:
            first, second = self.cause_and_effect(self.despite)
            first.tense = second.tense = "past"
        return "statement", self.join(first, "-지만", second)

    def because(self) -> Joined:
        """It is raining, so I can't exercise."""
        kinds = self.clauses
        first, second = self.cause()
        if second.negation == "못":
            mode = kinds.pick(("past", "past", "present"))
        elif second.negation:
            mode = "past"
        else:
            mode = kinds.pick(("past", "past", "past", "future", "want" if second.person == "I" else "future"))
        kinds.set_mode(second, mode)
        first.tense = "past" if mode == "past" else "present"
        return "statement", self.join(first, "-아서/어서", second)

    def since(self) -> Joined:
        """Since it is cold, close the window."""
        first, second = first_that(
            lambda pair: "weather" in pair[0].predicate.marks and not pair[1].negation, self.cause, "weather that tells"
        )
        second.person, second.subject = "you", None
        return "command", self.join(first, "-(으)니까", second)

    def condition(self) -> Joined:
        """If you are hungry, eat some bread; if it rains, I will buy an umbrella."""
        kinds = self.clauses
        first, second = first_that(_is_possible, self.cause, "condition")
        if kinds.chance(0.25):
            first = Clause(HAVE, object=Phrase(kinds.words.nouns["시간"]), person="I")
            second = self.next_of(first, [])
        first.subject = second.subject = None
        mood: Mood = "statement"
        if kinds.chance(0.5):
            first.person, second.person, mood = "you", "you", "command"
        else:
            second.tense = "future"
        return mood, self.join(first, "-(으)면", second)

    def because_then(self) -> Joined:
        """I was hungry, so I ate some bread and drank some milk."""
        mood, clauses = first_that(
            lambda said: not said[1][1].negation and said[1][1].tense != "present", self.because, "reason to act"
        )
        return mood, self.and_then(clauses)

    def three_in_a_row(self) -> Joined:
        """I ate, and read, and slept."""
        mood, clauses = self.sequence()
        return mood, self.and_then(clauses)

    def but_then(self) -> Joined:
        """I was tired but ate and studied."""
        first, second = first_that(
            lambda pair: not pair[1].negation, lambda: self.cause_and_effect(self.despite), "action nevertheless"
        )
        first.tense = second.tense = "past"
        return "statement", self.and_then(self.join(first, "-지만", second))

    def and_then(self, clauses: list[Clause]) -> list[Clause]:
        last = clauses[-1]
        third = self.next_of(last, clauses)
        third.tense, third.habit = last.tense, last.habit
        last.link, third.shared, third.subject = "-고", True, None
        return [*clauses, third]

    def cause(self) -> tuple[Clause, Clause]:
        """A state and what one does because of it."""
        return self.cause_and_effect(self.causes)

    def cause_and_effect(self, table: dict[Predicate, list[Effect]]) -> tuple[Clause, Clause]:
        """A state of the weather or of somebody, and what follows from it for them."""
        kinds = self.clauses
        cause = kinds.pick(list(table))
        first = Clause(cause) if "weather" in cause.marks else kinds.quality(cause)
        if first.subject and not first.subject.noun.pronoun:
            first.subject = Phrase(kinds.pick(kinds.stock.names))  # somebody of whom English says he or she
        actor = first
        if "weather" in cause.marks:
            actor = Clause(cause)
            kinds.set_subject(actor, dropped=0.4)
        negation, verb, noun = kinds.pick(table[cause])
        if "motion" in verb.marks:
            second = kinds.go(verb, noun)
            second.person, second.subject = actor.person, actor.subject
        else:
            second = kinds.event(verb, of=actor)
            if noun:
                second.object = Phrase(noun)
        second.negation = negation
        return first, second


def _is_of_many_things(clause: Clause) -> bool:
    return not clause.predicate.marks & {"animals", "machines", "once"} and len(clause.predicate.objects) >= 3


def _is_possible(pair: tuple[Clause, Clause]) -> bool:
    first, second = pair
    return not second.negation and second.person != "other" and first.predicate.lemma not in ("기쁘다", "슬프다")


def _alike(first: Clause, second: Clause) -> bool:
    return _nouns(first)[0] is _nouns(second)[0] or _nouns(first)[1] is _nouns(second)[1]


def _nouns(clause: Clause) -> tuple[Noun | None, Noun | None]:
    return clause.subject.noun if clause.subject else None, clause.object.noun if clause.object else None
