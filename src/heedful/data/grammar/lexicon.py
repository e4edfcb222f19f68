"""Words with their classes: what the tables say, as objects the grammar can pick from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Literal, cast

from heedful.data.grammar.korean.verbs import Kind, Verb
from heedful.data.grammar.lexicon_nouns import CLASSES, COUNTERS, PEOPLE, PLACES, THINGS
from heedful.data.grammar.lexicon_predicates import (
    ADJECTIVES,
    ADVERBS,
    MESSAGES,
    MOTION,
    TIMES,
    TRANSFER,
    VERBS,
    WEATHER,
)

Level = Literal["demo", "full"]
_ENGLISH_KINDS = {"~": "mass", "!": "bare", "+": "plural"}
_HONORIFIC = {"먹다": "드시", "마시다": "드시", "자다": "주무시"}
_OFTEN = ("자주", "항상", "가끔", "보통")
_COUNTER_OF = {word: counter for counter, words in COUNTERS.items() for word in words.split()}


@dataclass(frozen=True, eq=False, slots=True)
class Noun:
    """A noun and how English treats it.

    kind: count, mass (some bread), bare (music), plural (pants), definite (the door), own (my hands), name, kin.
    """

    korean: str
    english: str
    kind: str = "count"
    pronoun: str = "it"
    elder: bool = False
    animate: bool = False
    counter: str = ""
    at: str = ""
    to: str = ""
    quantity: str = ""
    """A number, date or amount that this noun is made for, as the held-out sets name it."""


@dataclass(frozen=True, eq=False, slots=True)
class Predicate:
    """A verb or adjective: its Korean, its English in the base form, and what it goes with."""

    lemma: str
    verb: Verb
    english: str
    objects: tuple[Noun, ...] = ()
    subjects: tuple[Noun, ...] = ()
    places: tuple[Noun, ...] = ()
    adverbs: tuple[Adverb, ...] = ()
    marks: frozenset[str] = frozenset()
    particle: str = "을/를"
    honorific: Verb | None = None
    light: str = ""
    """The noun of noun + 하다."""

    @property
    def quality(self) -> str:
        """The English adjective of an adjective."""
        return self.english.removeprefix("be ")


@dataclass(frozen=True, eq=False, slots=True)
class Adverb:
    """An adverb of manner, frequency or time; `tenses` says which tenses a time allows."""

    korean: str
    english: str
    slot: Literal["how", "often", "when"]
    tenses: frozenset[str] = frozenset()
    quantity: str = ""


@dataclass(frozen=True, eq=False)
class Lexicon:
    """All the words of one level."""

    nouns: dict[str, Noun]
    classes: dict[str, tuple[Noun, ...]]
    verbs: tuple[Predicate, ...]
    motion: tuple[Predicate, ...]
    transfer: tuple[Predicate, ...]
    adjectives: tuple[Predicate, ...]
    weather: tuple[Predicate, ...]
    messages: tuple[Predicate, ...]
    adverbs: dict[str, Adverb]
    times: tuple[Adverb, ...]

    @cached_property
    def lemmas(self) -> tuple[str, ...]:
        """Every word, in its dictionary form."""
        predicates = (*self.verbs, *self.motion, *self.transfer, *self.adjectives, *self.weather, *self.messages)
        times = (time.korean for time in self.times)
        return tuple(dict.fromkeys([*self.nouns, *(p.lemma for p in predicates), *self.adverbs, *times]))

    def among(self, *names: str) -> tuple[Noun, ...]:
        """The nouns of these classes, each once."""
        return tuple(dict.fromkeys(noun for name in names for noun in self.classes.get(name, ())))


def _entries(table: str, level: Level) -> Iterator[tuple[str, str]]:
    """(korean, the rest) of each `korean*=rest` of this level."""
    for entry in table.split():
        korean, _, rest = entry.partition("=")
        if level == "full" or korean.endswith("*"):
            yield korean.removesuffix("*").replace("_", " "), rest.replace("_", " ")


def _person(korean: str, rest: str, group: str) -> Noun:
    english, _, pronoun = rest.partition(":")
    kind = "name" if group == "name" else "kin" if "kin" in group else "count"
    pronoun = pronoun or ("it" if group == "animal" else "")
    return Noun(korean, english, kind, pronoun, "elder" in group, True, _COUNTER_OF.get(korean, ""))


def _place(korean: str, rest: str) -> Noun:
    english, *forms = rest.split(";")
    if english[0].isupper():
        return Noun(korean, english, "name", at=forms[0] if forms else f"in {english}", to=f"to {english}")
    named = f"the {english.removeprefix('the ')}"
    at = forms[0] if forms else f"at {named}"
    to = forms[1] if len(forms) > 1 else f"to {named}"
    kind = "definite" if english.startswith("the ") else "count"
    return Noun(korean, english.removeprefix("the "), kind, at=at, to=to)


def _thing(korean: str, english: str) -> Noun:
    kind = _ENGLISH_KINDS.get(english[-1], "count")
    pronoun, english = "they" if kind == "plural" else "it", english.rstrip("~!+")
    if english.startswith(("the ", "my ")):
        kind = "definite" if english.startswith("the ") else "own"
        english = english.partition(" ")[2]
    elif english[0].isupper() and english not in ("GPU", "Transformer"):
        kind = "name"
    return Noun(korean, english, kind, pronoun, counter=_COUNTER_OF.get(korean, ""))


class _Builder:
    """Reads the tables for one level."""

    def __init__(self, level: Level) -> None:
        self.level = level
        groups = {
            group: {korean: _person(korean, rest, group) for korean, rest in _entries(table, level)}
            for group, table in PEOPLE.items()
        }
        self.nouns = {korean: noun for group in groups.values() for korean, noun in group.items()}
        self.nouns |= {korean: _place(korean, rest) for korean, rest in _entries(PLACES, level)}
        self.nouns |= {korean: _thing(korean, rest) for korean, rest in _entries(THINGS, level)}
        self.classes = {group: tuple(people.values()) for group, people in groups.items()}
        self.classes |= {name: self._known(words.split()) for name, words in CLASSES.items()}
        self.adverbs = {
            korean: Adverb(korean, english, "often" if korean in _OFTEN else "how")
            for korean, english in _entries(ADVERBS, level)
        }

    def _known(self, words: Iterable[str]) -> tuple[Noun, ...]:
        names = (self._said(word).replace("_", " ") for word in words)
        return tuple(self.nouns[name] for name in names if name in self.nouns)

    def _said(self, word: str) -> str:
        """A word of a cell; one in brackets is only the demo's."""
        return word.strip("()") if self.level == "demo" else word

    def _members(self, names: str) -> tuple[Noun, ...]:
        """The nouns of a column: classes and single words."""
        found = [noun for name in names.split() for noun in self.classes.get(name) or self._known([name])]
        return tuple(dict.fromkeys(found))

    def rows(self, table: str) -> Iterator[list[str]]:
        for line in table.strip().splitlines():
            row = [cell.strip() for cell in line.split("|")]
            if self.level == "full" or row[0].endswith("*"):
                yield [row[0].removesuffix("*"), *row[1:]]

    def verb(self, row: list[str]) -> Predicate:
        word, english, objects, places, adverbs, marks = row
        chosen = tuple(self.adverbs[how] for how in map(self._said, adverbs.split()) if how in self.adverbs)
        built = _predicate(word, english, marks=marks.split())
        return replace(built, objects=self._members(objects), places=self._known(places.split()), adverbs=chosen)

    def motion(self, row: list[str]) -> Predicate:
        return replace(
            self.verb([row[0], row[1], "", "", row[3], f"motion {row[4]}"]), places=self._known(row[2].split())
        )

    def adjective(self, row: list[str]) -> Predicate:
        marks = [row[2]] if row[2] in ("anyone", "oneself") else []
        return replace(_predicate(row[0], f"be {row[1]}", marks=marks, adjective=True), subjects=self._members(row[2]))

    def message(self, row: list[str]) -> Predicate:
        return replace(_predicate(row[0], row[1], marks=row[3].split()), subjects=self._members(row[2]))

    def times(self) -> Iterator[Adverb]:
        for korean, rest in _entries(TIMES, self.level):
            english, _, tenses = rest.partition("=")
            yield Adverb(korean, english, "when", frozenset(tenses.split(",")))


def _predicate(word: str, english: str, *, marks: Iterable[str] = (), adjective: bool = False) -> Predicate:
    lemma, _, kind = word.partition(":")
    marks, stem = frozenset(marks), _HONORIFIC.get(lemma)
    verb = Verb(lemma.rpartition(" ")[2].removesuffix("다"), cast("Kind", kind or "regular"), adjective)
    light = lemma.removesuffix("하다") if "noun" in marks else ""
    return Predicate(lemma, verb, english, marks=marks, light=light, honorific=Verb(stem) if stem else None)


def _weather(row: list[str]) -> Predicate:
    return _predicate(row[0], row[1], marks=["weather"], adjective=row[1].startswith("be ") and "바람" not in row[0])


@lru_cache(2)
def lexicon(level: Level) -> Lexicon:
    """The words of a level."""
    built = _Builder(level)
    return Lexicon(
        nouns=built.nouns,
        classes=built.classes,
        verbs=tuple(map(built.verb, built.rows(VERBS))),
        motion=tuple(map(built.motion, built.rows(MOTION))),
        transfer=tuple(built.verb([*row, "", "", ""]) for row in built.rows(TRANSFER)),
        adjectives=tuple(map(built.adjective, built.rows(ADJECTIVES))),
        weather=tuple(map(_weather, built.rows(WEATHER))),
        messages=tuple(map(built.message, built.rows(MESSAGES))),
        adverbs=built.adverbs,
        times=tuple(built.times()),
    )


def _structural(lemma: str, english: str, marks: str, particle: str = "이/가") -> Predicate:
    built = _predicate(lemma, english, marks=marks.split(), adjective=lemma in ("좋다", "필요하다"))
    return replace(built, particle=particle)


COPULA = _structural("이다", "be", "copula")
CLOCK = _structural("이다", "be", "copula weather")
EXIST = replace(_structural("있다", "be", "exist at state"), honorific=Verb("계시"))
LACK = _structural("없다", "be", "exist at state")
HAVE = _structural("있다", "have", "have state")
HAVE_NOT = _structural("없다", "have", "have state")
NEED = _structural("필요하다", "need", "have state")
FANCY = _structural("좋다", "like", "state")
BECOME = _structural("되다", "become", "once have")
KNOW_NOT = replace(_structural("모르다:르", "know", "state at-hand"), particle="을/를")
GIVE_UP = replace(_structural("드리다", "give", ""), particle="을/를")  # to one's elders

I = Noun("저", "I", "pronoun", "I", animate=True)  # noqa: E741
YOU = Noun("너", "you", "pronoun", "you", animate=True)
WHO = Noun("누구", "who", "question", "who", animate=True)
WHAT = Noun("무엇", "what", "question")
WHERE = Noun("어디", "where", "question")
THIS = Noun("이것", "this", "name")
THAT = Noun("그것", "that", "name")
HOW_MUCH = Noun("얼마", "how much", "question")
HOW_OLD = Noun("몇 살", "how old", "question")
WHAT_TIME = Noun("몇 시", "what time", "question")
WHICH_DAY = Noun("언제", "when", "question")
TODAY = Noun("오늘", "today", "name")
BIRTHDAY = Noun("생일", "birthday")
WHEN = Adverb("언제", "when", "when")
WHY = Adverb("왜", "why", "how")
HOW = Adverb("어떻게", "how", "how")
