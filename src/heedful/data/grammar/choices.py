"""What can be drawn, and how often: choices over the words of a level, balanced so that each is met often enough."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from random import Random
from typing import Generic, TypeVar

from heedful.data.grammar.frames import Extra
from heedful.data.grammar.lexicon import Adverb, Level, Noun, Predicate, lexicon
from heedful.data.grammar.lexicon_draws import SELDOM
from heedful.errors import DataError

_T = TypeVar("_T")
_PATIENCE = 20_000
_SHARES = {"name": 40, "elder kin": 22, "elder": 8, "kin": 14, "person": 20}
_ANIMAL_OBJECTS = {
    "eat": ("animal-food",),
    "drink": ("animal-drink",),
    "like": ("animal-food", "animal", "dear"),
    "see": ("met", "seen"),
    "chase": ("animal",),
}
_NOT_BEFORE_NOUNS = (
    "near", "far", "high", "low", "bright", "dark", "happy", "sick", "busy", "bad", "boring", "dirty", "slow",
    "important",
)  # fmt: skip
_ROOMS, _PET_PLACES = "방 교실 사무실 거실", "공원 집 방 부엌 정원 동물원"
_HOMES = "집 학교 회사 도서관 병원 공원 카페 방 부엌 서울 부산 사무실 교실 거실 공항"


class Choice(Generic[_T]):
    """A weighted choice."""

    def __init__(self, weights: Mapping[_T, float]) -> None:
        self.items = list(weights)
        self.sums = list(accumulate(weights.values()))

    def shares(self) -> Iterator[tuple[_T, float]]:
        """Each item and its probability."""
        before = 0.0
        for item, total in zip(self.items, self.sums, strict=True):
            yield item, (total - before) / self.sums[-1]
            before = total

    def of(self, random: Random) -> _T:
        """One item, by its weight."""
        return self.items[bisect_right(self.sums, random.random() * self.sums[-1])]


def first_that(fits: Callable[[_T], bool], draw: Callable[[], _T], what: str) -> _T:
    """The first of many draws that fits; where none does, the words leave too little to choose from."""
    for _ in range(_PATIENCE):
        if fits(drawn := draw()):
            return drawn
    raise DataError(f"{_PATIENCE:,} draws gave no {what} that makes sense; widen the tables of lexicon_sense")


Scene = tuple[str, tuple[Noun, ...], tuple[Noun, ...]]
"""A position, the places it can be of, and what can be there."""


class Inventory:
    """The choices of one level."""

    def __init__(self, level: Level) -> None:
        self.words, self.full = lexicon(level), level == "full"
        words = self.words
        self.names, self.animals, self.machines = (words.among(group) for group in ("name", "animal", "machines"))
        self.companions = words.among("name", "kin", "elder kin")
        self.others = Choice(
            {
                noun: self._often(noun.korean) * share / len(words.among(group))
                for group, share in _SHARES.items()
                for noun in words.among(group)
            }
        )
        self.technicians = self.known("학생 개발자 직원 연구원")
        self.homes, self.pet_places = self.known(_HOMES), self.known(_PET_PLACES)
        self.scenes = self._scenes()
        uses = Counter(noun for p in (*words.verbs, *words.adjectives) for noun in (*p.objects, *p.subjects))
        only_here = {verb: sum(uses[noun] == 1 for noun in verb.objects) for verb in words.verbs}
        least = 4.5 if self.full else 2.6
        self.verbs = Choice(
            {
                verb: self._often(verb.lemma) * (least + len(verb.objects) ** 0.72 + only_here[verb])
                for verb in words.verbs
            }
        )
        self.motion = Choice({verb: len(verb.places) ** 0.5 for verb in words.motion})
        fewest = 9 if self.full else 0
        self.adjectives = Choice(
            {
                adjective: self._often(adjective.lemma) * (1 + (max(len(adjective.subjects), fewest) or 9) ** 0.5)
                for adjective in words.adjectives
            }
        )
        self.attributes: dict[Noun, list[Predicate]] = {}
        for adjective in words.adjectives:
            for noun in adjective.subjects if adjective.quality not in _NOT_BEFORE_NOUNS else ():
                self.attributes.setdefault(noun, []).append(adjective)
        self.animal_objects = {
            verb: Choice(dict.fromkeys(words.among(*names), 1.0)) for verb, names in _ANIMAL_OBJECTS.items()
        }
        self.times = {
            tense: Choice({time: self._share(time) for time in words.times if tense in time.tenses})
            for tense in ("past", "future", "habit")
        }
        self.now = Extra("when", next(time for time in words.times if "now" in time.tenses))
        self.often = [adverb for adverb in words.adverbs.values() if adverb.slot == "often"]
        self._balance()
        self._choose_modes()

    def _share(self, time: Adverb) -> float:
        """How often a time is drawn: less, the more tenses it has."""
        return self._often(time.korean) / len(time.tenses)

    def _often(self, word: str) -> float:
        """Words that suit few others are drawn more often."""
        return SELDOM.get(word, 1) if self.full else 1

    def known(self, names: str) -> tuple[Noun, ...]:
        """The nouns of this level among these."""
        return tuple(self.words.nouns[name] for name in names.split() if name in self.words.nouns)

    def _scenes(self) -> list[Scene]:
        words = self.words
        furniture, small, pets = words.among("furniture")[:5], words.among("on-furniture"), self.animals[:4]
        cold = words.among("kept-cold")
        return [
            ("위", furniture, small),
            ("위", furniture, small),
            ("아래", furniture, (*pets, *self.known("가방 신발 장난감"))),
            ("옆", furniture, (*pets, *self.known("가방 꽃 나무 시계 우산"))),
            ("안", self.known("가방"), words.among("in-a-bag")),
            ("안", self.known("냉장고"), cold),
            ("in", self.known(_ROOMS), words.among("in-places")),
            ("in", self.known(_PET_PLACES), pets),
            *([("in", self.known("동물원"), self.animals[5:])] * 3 if self.full else []),
        ]

    def _balance(self) -> None:
        """Words that few others go with come up more often there."""
        words, expected, power = self.words, defaultdict[str, float](float), -1.2 if self.full else -1
        predicates = (*words.verbs, *words.motion, *words.transfer, *words.adjectives)
        for share, choices in ((0.5, self.verbs), (0.15, self.motion), (0.16, self.adjectives)):
            for predicate, weight in choices.shares():
                at = 1 if "motion" in predicate.marks else 0.25
                for part, nouns in ((1, predicate.objects), (1, predicate.subjects), (at, predicate.places)):
                    for noun in nouns:
                        expected[noun.korean] += share * weight * part / len(nouns)
        for scene in self.scenes:
            for noun in scene[2]:
                expected[noun.korean] += 0.07 / len(self.scenes) / len(scene[2])

        def choice(nouns: Sequence[Noun]) -> Choice[Noun]:
            weights = {noun: (0.0002 + expected[noun.korean]) ** power for noun in nouns}
            return Choice({noun: self._often(noun.korean) * weight for noun, weight in weights.items()})

        self.objects = {predicate: choice(predicate.objects) for predicate in predicates if predicate.objects}
        self.subjects = {predicate: choice(predicate.subjects) for predicate in predicates if predicate.subjects}
        self.places = {predicate: choice(predicate.places) for predicate in predicates if predicate.places}
        self.owned, self.needed = choice(words.among("owned")), choice(words.among("needed"))
        common = Counter(adverb for predicate in predicates for adverb in predicate.adverbs)
        self.manners = {
            predicate: Choice({adverb: self._often(adverb.korean) / common[adverb] for adverb in predicate.adverbs})
            for predicate in predicates
            if predicate.adverbs
        }

    def _choose_modes(self) -> None:
        """What may be said of a predicate: states do not go on, and what happens once is no habit."""
        will = {"want": 6.0, "can": 6, **({"must": 6} if self.full else {})}
        self.event_modes: Choice[str] = Choice(
            {"habit": 26, "past": 36, "future": 16, "progressive": 9, "now": 4, **will}
        )
        self.modes_by_mark: dict[str, Choice[str]] = {
            "weather": Choice({"habit": 50, "past": 30, "future": 20}),
            "state": Choice({"habit": 75, "past": 25}),
            "done": Choice({"past": 1}),
            "due": Choice({"past": 70, "future": 30}),
            "once": Choice({"past": 60, "future": 15, **will}),
            "moment": Choice({"habit": 26, "past": 38, "future": 13, **will}),
        }

    def modes_of(self, predicate: Predicate) -> Choice[str]:
        """The tenses and modals of a predicate, by its marks."""
        for mark, modes in self.modes_by_mark.items():
            if mark in predicate.marks or (mark == "state" and predicate.verb.adjective):
                return modes
        return self.event_modes


@lru_cache(2)
def inventory(level: Level) -> Inventory:
    """The choices of a level, made once."""
    return Inventory(level)
