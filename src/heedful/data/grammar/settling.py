"""When, where, how and with whom: tense, modality and polarity of a clause, and the extras that suit them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import TypeVar, cast

from heedful.data.grammar.choices import Choice, Inventory
from heedful.data.grammar.frames import Clause, Extra, Modal, Negation, Phrase, Tense
from heedful.data.grammar.lexicon import KNOW_NOT, Adverb, Predicate
from heedful.data.grammar.quantities import at_clock
from heedful.data.grammar.sense.parts import at_most
from heedful.data.grammar.sense.times import time_suits

_T = TypeVar("_T")
_SOCIAL = frozenset(
    ["eat", "drink", "watch", "study", "exercise", "walk", "go", "cook", "travel", "talk", "swim", "dance", "clean",
     "play", "take a walk", "rest", "sing", "have", "go shopping", "go hiking"]
)  # fmt: skip
_CLOCKED = frozenset(["get up", "sleep", "eat", "go", "come", "arrive", "meet", "study", "exercise", "work", "watch"])
_AFFIRMED = frozenset(["exist", "have", "due"])  # these are denied by other words, or not at all
UNCOUNTED = frozenset(["wear", "take off", "ride", "drive", "take", "use"])
_PRICED = frozenset(["buy", "sell", "wear", "receive"])


class Settler:
    """Gives clauses their time, manner and place."""

    def __init__(self, stock: Inventory, random: Random) -> None:
        self.stock, self.words, self.random, self.full = stock, stock.words, random, stock.full

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.random.random() < probability

    def pick(self, items: Sequence[_T]) -> _T:
        """Any of these, all alike."""
        return items[int(self.random.random() * len(items))]

    def settle(self, clause: Clause, modes: Choice[str] | None = None, *, negative: float = 0.18) -> None:
        """Choose tense, modality and polarity, then add extras."""
        predicate = clause.predicate
        mode = (modes or self.stock.modes_of(predicate)).of(self.random)
        self.set_mode(clause, mode)
        if not clause.negation and not predicate.marks & _AFFIRMED and self.chance(negative):
            clause.negation = self.negation_for(predicate, mode)
            if predicate.lemma == "알다" and clause.negation:
                clause.predicate, clause.negation = KNOW_NOT, "lexical"
        plain = clause.habit or clause.negation or "state" in predicate.marks
        if clause.object and not plain and not (clause.subject and clause.subject.noun.pronoun == "it"):
            self.embellish(clause.object, predicate)
        self.add_extras(clause, mode)

    def set_mode(self, clause: Clause, mode: str) -> None:
        """Past, future, habit, now, or a modal."""
        if mode in ("past", "future"):
            clause.tense = cast("Tense", mode)
        elif mode == "habit":
            clause.habit = True
        elif mode == "now":
            clause.now = True
        elif mode != "present":
            clause.modal = cast("Modal", mode)

    def negation_for(self, predicate: Predicate, mode: str) -> Negation:
        """A negation that the word and the tense allow: no 못 with adjectives, 안 only before short ones."""
        draw = self.random.random()
        if predicate.verb.adjective:
            short = len(predicate.lemma) <= 3 and not predicate.lemma.endswith("있다")
            return "안" if short and draw < 0.5 else "지"
        if predicate.lemma == "이해하다":
            return "못"
        if mode in ("habit", "past"):
            able = not predicate.marks & {"state", "weather", "done", "due"}
            return "못" if draw < 0.25 and able else "안" if draw < 0.7 else "지"
        by_mode: dict[str, Negation] = {"can": "못", "want": "지", "future": "안"}
        return by_mode.get(mode, "")

    def embellish(self, phrase: Phrase, verb: Predicate) -> None:
        """Perhaps a pointer, an adjective or a number before an object."""
        noun, draw = phrase.noun, self.random.random()
        if noun.kind not in ("count", "mass", "plural") or noun.at:
            return
        if draw < 0.06 and noun.kind != "plural" and not noun.animate:
            phrase.pointer = "this" if draw < 0.04 else "that"
        elif draw < (0.65 if self.full else 0.25) and noun in self.stock.attributes:
            adjective = self.pick(self.stock.attributes[noun])
            if adjective.quality not in ("expensive", "cheap") or verb.english in _PRICED:
                phrase.adjective = adjective
        elif draw > 0.75 and verb.english not in UNCOUNTED:
            self.count(phrase, 1, verb.english)

    def count(self, phrase: Phrase, probability: float, verb: str) -> None:
        """Perhaps a number, where the noun has a counter."""
        if phrase.noun.counter and self.chance(probability):
            most = at_most(phrase.noun, verb) if self.full else 9
            phrase.number = 1 + int(self.random.random() * most) if most else 0

    def add_extras(self, clause: Clause, mode: str) -> None:
        """At most two of: a time, a place, an adverb, company."""
        predicate, extras, marks = clause.predicate, clause.extras, clause.predicate.marks
        if mode == "now":
            extras.append(self.stock.now)
        if predicate.verb.adjective or marks & {"state", "weather"}:
            if marks & {"anyone", "oneself", "weather"} and self.chance(0.4):
                self.add_day(clause)
            if predicate.english in ("rain", "snow") and not clause.negation and self.chance(0.25):
                extras.append(Extra("how", self.words.adverbs["많이"]))
            return
        if mode == "habit" and not clause.negation and self.chance(0.3):
            extras.append(Extra("often", self.pick(self.stock.often)))
        elif mode in ("past", "future", "habit") and self.chance(0.4):
            self.add_time(clause, mode)
        if clause.subject and clause.subject.noun.animate and clause.subject.noun.pronoun == "it":
            if self.chance(0.3):
                extras.append(Extra("at", Phrase(self.pick(self.stock.pet_places))))
            return
        room = 3 if "motion" in marks else 2
        if len(extras) < room and predicate.places and "motion" not in marks and self.chance(0.28):
            place = self.stock.places[predicate].of(self.random)
            if predicate.english == "wait for" and clause.object and not clause.object.noun.animate:
                place = self.words.nouns.get("버스 정류장", place)
            extras.append(Extra("at", Phrase(place)))
        elif len(extras) < room and predicate.english in _SOCIAL and self.chance(0.15):
            self.add_company(clause)
        if len(extras) < room and predicate.adverbs and not clause.negation and self.chance(0.25):
            manner = self.stock.manners[predicate].of(self.random)
            if not (mode in ("progressive", "now") and manner.korean in ("일찍", "늦게")):
                extras.append(Extra("how", manner))

    def add_time(self, clause: Clause, mode: str) -> None:
        """A time that fits the tense: a word or, for people, a time on the clock."""
        thing = clause.subject is not None and clause.subject.noun.pronoun == "it"
        if thing and clause.subject and not clause.subject.noun.animate:
            return  # programs keep no calendar
        if not thing and clause.predicate.english in _CLOCKED and self.chance(0.4):
            clause.extras.append(Extra("when", at_clock(*self.hour_and_minute())))
        elif not (mode == "habit" and clause.negation):
            self.add_named_time(clause, mode)

    def add_named_time(self, clause: Clause, mode: str) -> None:
        """A time with a name; on the full level one of those that suit what is done, if any do."""
        times = self.stock.times[mode]
        if self.full:
            weights = {time: share for time, share in times.shares() if self.suits_at(clause, time)}
            if not weights:
                return
            times = Choice(weights)
        clause.extras.append(Extra("when", times.of(self.random)))

    def suits_at(self, clause: Clause, time: Adverb) -> bool:
        """Whether this is done at such a time."""
        return time_suits(replace(clause, extras=[*clause.extras, Extra("when", time)]))

    def hour_and_minute(self) -> tuple[int, int]:
        """A time on the clock: full hours often, in the demo only tens of minutes."""
        step = 5 if self.full else 10
        minute = step * int(self.random.random() * (60 // step)) if self.chance(0.6) else 0
        return 1 + int(self.random.random() * 12), minute

    def add_day(self, clause: Clause) -> None:
        """The day that a state or the weather is of."""
        word = {"past": "어제", "future": "내일", "present": "오늘"}[clause.tense]
        clause.extras.append(Extra("when", next(time for time in self.words.times if time.korean == word)))

    def add_company(self, clause: Clause) -> None:
        """Somebody to do it with; kin only for the speaker."""
        actor = clause.subject.noun if clause.subject else None
        friend = self.pick(self.stock.companions if clause.person == "I" else self.stock.names)
        if friend is not actor and not (clause.object and clause.object.noun is friend):
            clause.extras.append(Extra("with", Phrase(friend)))
