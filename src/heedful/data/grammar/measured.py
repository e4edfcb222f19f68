"""Sentences with distances, hours, dates, prices, ages and numbers."""

from __future__ import annotations

from collections.abc import Callable

from heedful.data.grammar import quantities
from heedful.data.grammar.choices import first_that
from heedful.data.grammar.clauses import ClauseSampler
from heedful.data.grammar.frames import Clause, Extra, Phrase, Pointer
from heedful.data.grammar.lexicon import (
    BIRTHDAY,
    CLOCK,
    COPULA,
    HOW_MUCH,
    HOW_OLD,
    TODAY,
    WHAT_TIME,
    WHICH_DAY,
    Adverb,
    I,
    Noun,
)
from heedful.data.grammar.settling import UNCOUNTED
from heedful.data.grammar.special import Told

_BY_FOOT = ("걷다", "달리다")
_ABROAD, _FAR = ("제주도", "미국", "일본", "한국", "중국", "프랑스"), ("서울", "부산")
_IN_TOWN = "공항 기차역 호텔 집 학교 회사 도서관 공원 은행 시장 지하철역 슈퍼마켓"
_DEAR_GOODS = ("휴대폰", "컴퓨터", "카메라", "침대", "자전거", "반지", "시계", "노트북", "프린터", "오토바이")
_TAKES_HOURS = ("study", "work", "exercise", "sleep", "read", "rest", "swim")
_POINTERS: tuple[Pointer, ...] = ("this", "that", "")


class MeasureSampler:
    """Draws sentences with quantities."""

    def __init__(self, clauses: ClauseSampler) -> None:
        self.clauses, words = clauses, clauses.words
        self.in_town, self.far = clauses.stock.known(_IN_TOWN), clauses.stock.known(" ".join(_FAR))
        self.weekdays = [
            time for time in words.times if time.english.startswith("on ") and "weekend" not in time.english
        ]
        self.lasting = [verb for verb in words.verbs if verb.english in _TAKES_HOURS]
        self.goods = [noun for noun in words.among("priced") if noun.kind != "plural" and noun.korean != "자동차"]
        self.tasty = words.among("tasty")
        self.shapes: dict[Callable[[], Told], float] = {
            self.journey: 3, self.by_vehicle: 2, self.hours: 2.5, self.on_a_date: 2.5, self.price: 3, self.birthday: 2,
            self.age: 2, self.time: 2, self.how_many: 2,
        }  # fmt: skip

    def journey(self) -> Told:
        """서울에서 부산까지 기차로 갔어요."""
        kinds = self.clauses
        start, end = kinds.random.sample(self.in_town if kinds.chance(0.6) else self.far, 2)
        words = kinds.words
        go = next(verb for verb in words.motion if verb.lemma == "가다")
        on_foot = [verb for verb in words.verbs if verb.lemma in _BY_FOOT and start not in self.far]
        clause = Clause(kinds.pick([go, *on_foot]))
        kinds.set_subject(clause)
        clause.extras = [Extra("from", Phrase(start)), Extra("until", Phrase(end))]
        if clause.predicate is go and kinds.chance(0.6):
            clause.extras.append(Extra("by", Phrase(self.vehicle_to(clause.extras[1].thing))))
        kinds.set_mode(clause, kinds.pick(("past", "past", "future")))
        clause.topic = clause.subject is not None and clause.subject.noun is I
        return "statement", clause, None

    def vehicle_to(self, place: Phrase | Adverb) -> Noun:
        """Trains and planes go far, the others stay in town; only planes cross the sea."""
        assert isinstance(place, Phrase)
        name, nouns = place.noun.korean, self.clauses.words.nouns
        if name in _ABROAD:
            return nouns["비행기"]
        return nouns[self.clauses.pick(("기차", "버스", "비행기") if name in _FAR else ("버스", "지하철", "택시"))]

    def by_vehicle(self) -> Told:
        """버스로 학교에 가요."""
        kinds = self.clauses
        clause = kinds.go(next(verb for verb in kinds.words.motion if verb.lemma == "가다"))
        clause.extras.append(Extra("by", Phrase(self.vehicle_to(clause.extras[0].thing))))
        kinds.set_mode(clause, kinds.pick(("past", "habit", "future")))
        clause.topic = clause.subject is not None and (clause.subject.noun is I or clause.habit)
        return "statement", clause, None

    def hours(self) -> Told:
        """세 시부터 다섯 시까지 공부했어요; 월요일부터 금요일까지 일해요."""
        kinds = self.clauses
        clause = kinds.of_somebody(self.lasting)
        kinds.set_mode(clause, kinds.pick(("past", "past", "habit")))
        start, length = kinds.pick(range(1, 10)), kinds.pick(range(1, 4))
        span = quantities.between_clocks(start, start + length)
        if kinds.chance(0.3):
            first = kinds.pick(range(4))
            span = quantities.between_days(self.weekdays[first], self.weekdays[first + kinds.pick((1, 2))])
        clause.extras.append(Extra("when", span))
        clause.topic = clause.subject is not None and (clause.subject.noun is I or clause.habit)
        return "statement", clause, None

    def month_and_day(self) -> tuple[int, int]:
        """A date; no month is too short for it."""
        return self.clauses.pick(range(1, 13)), self.clauses.pick(range(1, 29))

    def on_a_date(self) -> Told:
        """유월 십오 일에 만났어요."""
        kinds = self.clauses
        clause = first_that(lambda found: found.predicate.english != "get up", kinds.person_event, "dated action")
        kinds.set_mode(clause, "past" if "done" in clause.predicate.marks else kinds.pick(("past", "past", "future")))
        clause.extras.append(Extra("when", quantities.on_date(*self.month_and_day())))
        clause.topic = clause.subject is not None and clause.subject.noun is I
        return "statement", clause, None

    def price(self) -> Told:
        """이 가방은 3만 5천 원이에요; 이 가방은 얼마예요?"""
        kinds = self.clauses
        noun = kinds.pick(self.goods)
        clause = Clause(COPULA, Phrase(noun, kinds.pick(_POINTERS)), topic=True)
        if kinds.chance(0.25):
            return _asking(clause, HOW_MUCH)
        if noun.korean in _DEAR_GOODS:
            won = 10_000 * kinds.pick(range(10, 100))
        else:
            won = (
                500 * kinds.pick(range(2, 20))
                if noun in self.tasty or noun.korean == "꽃"
                else 1000 * kinds.pick(range(5, 100))
            )
        clause.object = Phrase(quantities.money(won))
        return "statement", clause, None

    def birthday(self) -> Told:
        """제 생일은 유월 십오 일이에요; 민수의 생일은 언제예요?"""
        kinds = self.clauses
        owner = kinds.pick(kinds.stock.names) if kinds.chance(0.5) else None
        subject = Phrase(BIRTHDAY, owner=owner) if owner else Phrase(BIRTHDAY, "my")
        clause = Clause(COPULA, Phrase(TODAY) if kinds.chance(0.3) else subject, topic=True)
        if clause.subject is subject and owner and kinds.chance(0.4):
            return _asking(clause, WHICH_DAY)
        clause.object = Phrase(quantities.date(*self.month_and_day()))
        return "statement", clause, None

    def age(self) -> Told:
        """저는 스무 살이에요; 민수는 몇 살이에요?"""
        kinds = self.clauses
        young = [noun for noun in kinds.words.among("kin") if noun.pronoun and "older" not in noun.english]
        clause = Clause(COPULA, Phrase(kinds.pick((I, *kinds.stock.names, *young))), topic=True)
        assert clause.subject is not None
        if clause.subject.noun is I:
            clause.person = "I"
        elif kinds.chance(0.3):
            return _asking(clause, HOW_OLD)
        clause.object = Phrase(quantities.age(kinds.pick(range(5, 55))))
        return "statement", clause, None

    def time(self) -> Told:
        """지금 세 시 십오 분이에요; 지금 몇 시예요?"""
        kinds = self.clauses
        clause = Clause(CLOCK, extras=[kinds.stock.now])
        if kinds.chance(0.1):
            return _asking(clause, WHAT_TIME)
        clause.object = Phrase(quantities.clock(*kinds.hour_and_minute()))
        return "statement", clause, None

    def how_many(self) -> Told:
        """사과 몇 개를 샀어요?"""
        kinds = self.clauses
        clause = first_that(_is_countable, lambda: kinds.person_event(objects=True), "action with a number")
        assert clause.object is not None
        clause.object = Phrase(clause.object.noun, "how many")
        clause.tense, clause.asked, clause.topic = "past", "object", True
        return "question", clause, None


def _is_countable(clause: Clause) -> bool:
    noun = clause.object.noun if clause.object else None
    counted = clause.predicate.english not in UNCOUNTED
    return counted and noun is not None and noun.counter != "" and noun.kind == "count"


def _asking(clause: Clause, word: Noun) -> Told:
    clause.object, clause.asked = Phrase(word), "object"
    return "question", clause, None
