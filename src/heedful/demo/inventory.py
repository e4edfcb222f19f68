"""What can be drawn, and how often: choices over the words of a level, balanced so that each is met often enough."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from random import Random
from typing import Generic, TypeVar

from ..errors import DataError
from .frames import Adjunct
from .lexicon import Level, Noun, Predicate, lexicon
from .semantics import ADJECTIVES
from .tables import read_rows, read_yaml, split_list

_T = TypeVar("_T")
_MAX_DRAWS = 20_000
_MARKS_WITH_MODES = ("weather", "state", "done", "due", "once", "moment")


class WeightedChoice(Generic[_T]):
    """Draws items in proportion to their weights."""

    def __init__(self, weights: Mapping[_T, float]) -> None:
        self.items = list(weights)
        self.sums = list(accumulate(weights.values()))

    def shares(self) -> Iterator[tuple[_T, float]]:
        before = 0.0
        for item, total in zip(self.items, self.sums, strict=True):
            yield item, (total - before) / self.sums[-1]
            before = total

    def draw(self, random: Random) -> _T:
        return self.items[bisect_right(self.sums, random.random() * self.sums[-1])]


def draw_until(fits: Callable[[_T], bool], draw: Callable[[], _T], what: str) -> _T:
    """Return the first draw that `fits`.

    Raises:
        DataError: no draw of many fits, so the words leave too little choice.
    """
    for _ in range(_MAX_DRAWS):
        if fits(drawn := draw()):
            return drawn
    raise DataError(f"{_MAX_DRAWS:,} draws gave no {what} that makes sense; widen the lists of semantics.yaml")


def sampling_weights() -> dict[str, float]:
    """Return how much more often the full level draws words that suit few others."""
    return {row["word"]: float(row["weight"]) for row in read_rows("sampling_weights.tsv", "word", "weight")}


Scene = tuple[str, tuple[Noun, ...], tuple[Noun, ...]]
"""A position, the places it can be of, and what can be there."""


class Inventory:
    """The weighted choices over the words of one level."""

    def __init__(self, level: Level) -> None:
        self.lexicon, self.full = lexicon(level), level == "full"
        vocabulary, among, self.weights = self.lexicon, self.lexicon.in_classes, read_yaml("sampling.yaml")
        self._weights = sampling_weights() if self.full else {}
        self.names, self.animals, self.machines = among("name"), among("animal"), among("machines")
        self.companions = among("name", "kin", "elder kin")
        self.others = WeightedChoice(
            {
                noun: self._weight(noun.korean) * share / len(among(group))
                for group, share in self.weights["people"].items()
                for noun in among(group)
            }
        )
        self.scenes = self._scenes()
        uses = Counter(noun for p in (*vocabulary.verbs, *vocabulary.adjectives) for noun in (*p.objects, *p.subjects))
        only_here = {verb: sum(uses[noun] == 1 for noun in verb.objects) for verb in vocabulary.verbs}
        least, fewest = (4.5, 9) if self.full else (2.6, 0)
        self.verbs = WeightedChoice(
            {
                verb: self._weight(verb.lemma) * (least + len(verb.objects) ** 0.72 + only_here[verb])
                for verb in vocabulary.verbs
            }
        )
        self.motion = WeightedChoice({verb: len(verb.places) ** 0.5 for verb in vocabulary.motion})
        self.adjectives = WeightedChoice(
            {
                adjective: self._weight(adjective.lemma) * (1 + (max(len(adjective.subjects), fewest) or 9) ** 0.5)
                for adjective in vocabulary.adjectives
            }
        )
        self.attributes: dict[Noun, list[Predicate]] = {}
        for adjective in vocabulary.adjectives:
            for noun in adjective.subjects if adjective.quality not in ADJECTIVES["not_attributive"] else ():
                self.attributes.setdefault(noun, []).append(adjective)
        self.animal_objects = {
            verb: WeightedChoice(dict.fromkeys(among(*split_list(names)), 1.0))
            for verb, names in self.weights["animal_objects"].items()
        }
        self.times = {
            tense: WeightedChoice(
                {t: self._weight(t.korean) / len(t.tenses) for t in vocabulary.times if tense in t.tenses}
            )  # the more tenses a time has, the less it is drawn in each
            for tense in ("past", "future", "habit")
        }
        self.now = Adjunct("when", next(time for time in vocabulary.times if "now" in time.tenses))
        self.often = [adverb for adverb in vocabulary.adverbs.values() if adverb.slot == "often"]
        self.modes: dict[str, WeightedChoice[str]] = {
            kind: WeightedChoice({mode: weight for mode, weight in modes.items() if level != "demo" or mode != "must"})
            for kind, modes in self.weights["modes"].items()
        }
        self._balance()

    def _weight(self, word: str) -> float:
        """Return the weight of a word; words that suit few others have more than 1."""
        return self._weights.get(word, 1)

    def _scenes(self) -> list[Scene]:
        among, animals = self.lexicon.in_classes, self.animals
        parts = {"large-furniture": among("furniture")[:5], "pets": animals[:4], "wild": animals[5:]}

        def nouns(names: str) -> tuple[Noun, ...]:
            return tuple(noun for name in split_list(names) for noun in parts.get(name, among(name)))

        scenes = [*self.weights["scenes"]["everyday"], *(self.weights["scenes"]["zoo"] if self.full else ())]
        return [(position, nouns(where), nouns(what)) for position, where, what in scenes]

    def _balance(self) -> None:
        """Weight nouns and adverbs so that those with few predicates occur more often with them."""
        vocabulary, expected, power = self.lexicon, defaultdict[str, float](float), -1.2 if self.full else -1
        predicates = vocabulary.with_arguments
        for share, choices in ((0.5, self.verbs), (0.15, self.motion), (0.16, self.adjectives)):
            for predicate, weight in choices.shares():
                at = 1 if "motion" in predicate.marks else 0.25
                for part, nouns in ((1, predicate.objects), (1, predicate.subjects), (at, predicate.places)):
                    for noun in nouns:
                        expected[noun.korean] += share * weight * part / len(nouns)
        for scene in self.scenes:
            for noun in scene[2]:
                expected[noun.korean] += 0.07 / len(self.scenes) / len(scene[2])

        def choice(nouns: Sequence[Noun]) -> WeightedChoice[Noun]:
            weights = {noun: (0.0002 + expected[noun.korean]) ** power for noun in nouns}
            return WeightedChoice({noun: self._weight(noun.korean) * weight for noun, weight in weights.items()})

        self.objects = {predicate: choice(predicate.objects) for predicate in predicates if predicate.objects}
        self.subjects = {predicate: choice(predicate.subjects) for predicate in predicates if predicate.subjects}
        self.places = {predicate: choice(predicate.places) for predicate in predicates if predicate.places}
        self.owned, self.needed = choice(vocabulary.in_classes("owned")), choice(vocabulary.in_classes("needed"))
        uses = Counter(adverb for predicate in predicates for adverb in predicate.adverbs)
        self.manners = {
            predicate: WeightedChoice({a: self._weight(a.korean) / uses[a] for a in predicate.adverbs})
            for predicate in predicates
            if predicate.adverbs
        }

    def modes_of(self, predicate: Predicate) -> WeightedChoice[str]:
        """Return the tenses and modals of a predicate: no progressive of states, no habit of single events."""
        for mark in _MARKS_WITH_MODES:
            if mark in predicate.marks or (mark == "state" and predicate.verb.adjective):
                return self.modes[mark]
        return self.modes["event"]


@lru_cache(3)
def inventory(level: Level) -> Inventory:
    """Return the choices of a level, computed once."""
    return Inventory(level)
