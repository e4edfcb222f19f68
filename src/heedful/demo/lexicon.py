"""The words of the corpus with their classes, read from the tables, and the structural words of constructions."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Literal, cast, get_args

from ..errors import DataError, unknown
from .korean_morphology import Conjugation, Verb
from .tables import TsvRow, read_rows, read_yaml, split_list

Level = Literal["demo", "full", "course"]
Slot = Literal["how", "often", "when"]
_PEOPLE = ("name", "elder kin", "elder", "kin", "person", "animal")
_PREDICATE_GROUPS = ("verbs", "motion", "transfer", "adjectives", "weather", "messages")
_NOUN_KINDS = ("count", "mass", "bare", "plural", "definite", "own", "name", "kin")


@dataclass(frozen=True, eq=False, slots=True)
class Noun:
    """A noun and how English treats it.

    kind: count, mass (some bread), bare (music), plural (pants), definite (the door), own (my hands), name, kin; of
    structural words also pronoun and question.
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
    """A number, date or amount that this noun stands for, as the held-out sets name it."""

    @property
    def is_person(self) -> bool:
        """True for persons, who? included; False for animals."""
        return self.animate and self.pronoun != "it"


@dataclass(frozen=True, eq=False, slots=True)
class Adverb:
    """An adverb of manner, frequency or time; `tenses` says which tenses a time allows."""

    korean: str
    english: str
    slot: Slot
    tenses: frozenset[str] = frozenset()
    quantity: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class Predicate:
    """A verb or adjective: its Korean, its English in the base form, and its arguments."""

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


class Lexicon:
    """All the words of one level, read from the tables; a word that no table has is an error."""

    def __init__(self, level: Level) -> None:
        self.level, course = level, read_yaml("course.yaml")
        self._chosen = frozenset(split_list(course["words"]) if level == "course" else ())
        self.common = frozenset(split_list(course["common"]) if level == "course" else ())
        """Words of which no form is held out of training."""
        more = course["classes"] if level == "course" else {}
        columns = "korean", "english", "level", "group", "kind", "pronoun", "counter", "at", "to"
        rows = read_rows("nouns.tsv", *columns)
        self._all_nouns = {row["korean"] for row in rows}
        groups = {row["korean"]: row["group"] for row in filter(self._has, rows)}
        self.nouns = {row["korean"]: _noun(row) for row in filter(self._has, rows)}
        self.classes = {kind: tuple(self.nouns[word] for word in groups if groups[word] == kind) for kind in _PEOPLE}
        for name, lemmas in read_yaml("noun_classes.yaml").items():
            lemmas = f"{lemmas}, {more[name]}" if name in more else lemmas
            self.classes[name] = self._nouns_of(split_list(lemmas), f"noun_classes.yaml: {name}")
        rows = read_rows("adverbs.tsv", "korean", "english", "level", "slot", "tenses")
        self._all_adverbs = {row["korean"] for row in rows}
        adverbs = [_adverb(row) for row in filter(self._has, rows)]
        self.adverbs = {adverb.korean: adverb for adverb in adverbs if adverb.slot != "when"}
        self.times = tuple(adverb for adverb in adverbs if adverb.slot == "when")
        predicates: dict[str, list[Predicate]] = {group: [] for group in _PREDICATE_GROUPS}
        for row in read_rows(
            "predicates.tsv", "lemma", "english", "level", "group", "pos", "conjugation", "honorific", "objects",
            "subjects", "places", "adverbs", "marks",
        ):  # fmt: skip
            if self._has(row):
                predicates[row.checked("group", _PREDICATE_GROUPS)].append(self._predicate(row))
        self.verbs, self.motion, self.transfer, self.adjectives, self.weather, self.messages = map(
            tuple, predicates.values()
        )

    @cached_property
    def predicates(self) -> tuple[Predicate, ...]:
        return (*self.with_arguments, *self.weather, *self.messages)

    @cached_property
    def with_arguments(self) -> tuple[Predicate, ...]:
        """The verbs and adjectives that select their nouns."""
        return (*self.verbs, *self.motion, *self.transfer, *self.adjectives)

    @cached_property
    def lemmas(self) -> tuple[str, ...]:
        """All words in their dictionary forms."""
        times = (time.korean for time in self.times)
        return tuple(dict.fromkeys([*self.nouns, *(p.lemma for p in self.predicates), *self.adverbs, *times]))

    def in_classes(self, *names: str) -> tuple[Noun, ...]:
        """Return the nouns of these classes, each once."""
        return tuple(dict.fromkeys(noun for name in names for noun in self.classes.get(name, ())))

    @cached_property
    def by_lemma(self) -> dict[str, Predicate]:
        """The first sense of each lemma of verbs and adjectives."""
        predicates = (*self.verbs, *self.motion, *self.adjectives, *self.weather)
        return {predicate.lemma: predicate for predicate in reversed(predicates)}

    def _has(self, row: TsvRow) -> bool:
        """Return True if the level has the word of this row."""
        level = row.checked("level", get_args(Level))
        word = next(iter(row.cells.values()))
        return level in ("demo", self.level) or (level == "full" and word in self._chosen)

    def _nouns_of(self, lemmas: Iterable[str], place: str) -> tuple[Noun, ...]:
        """Return the nouns of the level among these; a word in brackets is not in the full level."""
        return tuple(
            self.nouns[word] for word in self._checked_words(lemmas, self._all_nouns, place) if word in self.nouns
        )

    def _members(self, names: Iterable[str], place: str) -> tuple[Noun, ...]:
        """Return the nouns of a cell that lists classes and single words."""
        groups = (self.classes[name] if name in self.classes else self._nouns_of([name], place) for name in names)
        return tuple(dict.fromkeys(noun for group in groups for noun in group))

    def _checked_words(self, lemmas: Iterable[str], dictionary: set[str], place: str) -> list[str]:
        bare = {word: word.strip("()") for word in lemmas}
        if missing := [word for word in bare.values() if word not in dictionary]:
            raise DataError(f"{place}: no table of words has {', '.join(missing)}")
        return [word for cell, word in bare.items() if cell == word or self.level != "full"]

    def _predicate(self, row: TsvRow) -> Predicate:
        adverbs = self._checked_words(row.listed("adverbs"), self._all_adverbs, row.place)
        conjugation = cast("Conjugation", row.checked("conjugation", get_args(Conjugation)))
        pos = row.checked("pos", ("verb", "adjective"))
        return replace(
            _predicate(row["lemma"], row["english"], row.listed("marks"), "을/를", pos, conjugation),
            objects=self._members(row.listed("objects"), row.place),
            subjects=self._members(row.listed("subjects"), row.place),
            places=self._nouns_of(row.listed("places"), row.place),
            adverbs=tuple(self.adverbs[word] for word in adverbs if word in self.adverbs),
            honorific=Verb(row["honorific"].removesuffix("다")) if row["honorific"] else None,
        )


def _noun(row: TsvRow) -> Noun:
    group, kind = row.checked("group", (*_PEOPLE, "place", "thing")), row.checked("kind", _NOUN_KINDS)
    names = row["korean"], row["english"], kind, row.checked("pronoun", ("", "it", "he", "she", "they"))
    return Noun(*names, "elder" in group, group in _PEOPLE, row["counter"], row["at"], row["to"])


def _adverb(row: TsvRow) -> Adverb:
    slot = cast("Slot", row.checked("slot", get_args(Slot)))
    return Adverb(row["korean"], row["english"], slot, frozenset(row.listed("tenses")))


@lru_cache(3)
def lexicon(level: Level) -> Lexicon:
    """Return the words of a level, read once."""
    if level not in get_args(Level):
        raise DataError(unknown("level of the grammar", level, get_args(Level)))
    return Lexicon(level)


def _predicate(
    lemma: str,
    english: str,
    marks: Iterable[str],
    particle: str = "이/가",
    pos: str = "verb",
    conjugation: Conjugation = "regular",
) -> Predicate:
    verb = Verb(lemma.rpartition(" ")[2].removesuffix("다"), conjugation, pos == "adjective")
    light = lemma.removesuffix("하다") if "noun" in marks else ""
    return Predicate(lemma, verb, english, marks=frozenset(marks), particle=particle, light=light)


COPULA = _predicate("이다", "be", ["copula"])
CLOCK = _predicate("이다", "be", ["copula", "weather"])
EXIST = replace(_predicate("있다", "be", ["exist", "at", "state"]), honorific=Verb("계시"))
NOT_EXIST = _predicate("없다", "be", ["exist", "at", "state"])
HAVE = _predicate("있다", "have", ["have", "state"])
HAVE_NOT = _predicate("없다", "have", ["have", "state"])
NEED = _predicate("필요하다", "need", ["have", "state"], pos="adjective")
FANCY = _predicate("좋다", "like", ["state"], pos="adjective")
BECOME = _predicate("되다", "become", ["once", "have"])
KNOW_NOT = _predicate("모르다", "know", ["state", "at-hand"], "을/를", conjugation="르")
GIVE_TO_ELDER = _predicate("드리다", "give", [], "을/를")
STRUCTURAL_PREDICATES = (EXIST, NOT_EXIST, COPULA, KNOW_NOT, GIVE_TO_ELDER, NEED, FANCY, BECOME)

I = Noun("저", "I", "pronoun", "I", animate=True)  # noqa: E741
YOU = Noun("너", "you", "pronoun", "you", animate=True)
WE = Noun("우리", "we", "pronoun", "we", animate=True)
HE = Noun("그", "he", "pronoun", "he", animate=True)
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
