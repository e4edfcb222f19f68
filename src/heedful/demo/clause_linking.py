"""Clause linking: clauses of which one follows from the other, joined by and, but, so, since, if."""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from random import Random
from typing import cast

from .clauses import ClauseSampler
from .frames import Adjunct, Clause, Determiner, Mood, Negation, Phrase, SpeechLevel
from .inventory import Inventory, draw_until
from .lexicon import HAVE, I, Noun, Predicate
from .tables import read_yaml, split_list

_DEMONSTRATIVES: tuple[Determiner, ...] = ("", "this", "that")
Effect = tuple[Negation, Predicate, Noun | None]
Draft = tuple[Mood, list[Clause], SpeechLevel | None]
"""A mood and its clauses, and the speech level if they need one."""


class LinkedClauseSampler(ClauseSampler):
    """Draws linked clauses together with the mood of the sentence."""

    def __init__(self, inventory: Inventory, random: Random) -> None:
        super().__init__(inventory, random)
        tables, self.by_lemma = read_yaml("clause_linking.yaml"), self.lexicon.by_lemma
        self.first, self.next = self._predicates(tables["first"]), self._predicates(tables["next"])
        self.causes, self.despite = self._effects(tables["causes"]), self._effects(tables["despite"])
        self.contrasts = list(self._contrasts(tables))

    def _predicates(self, lemmas: str) -> list[Predicate]:
        return [self.by_lemma[lemma] for lemma in split_list(lemmas) if lemma in self.by_lemma]

    def _effects(self, table: dict[str, str]) -> dict[Predicate, list[Effect]]:
        """Return the effects of each cause for which this level has the words."""
        return {
            self.by_lemma[cause]: [effect for text in split_list(effects) if (effect := self._effect(text))]
            for cause, effects in table.items()
            if cause in self.by_lemma
        }

    def _effect(self, text: str) -> Effect | None:
        negation, _, rest = text.rpartition(":")
        lemma, _, thing = rest.partition(">")
        noun = self.lexicon.nouns.get(thing)
        if lemma not in self.by_lemma or (thing and noun is None):
            return None
        verb = self.by_lemma[lemma]
        if noun and noun not in (*verb.objects, *verb.places):  # another sense: 쓰다 with a hat
            verb = next(other for other in self.lexicon.verbs if other.lemma == lemma and noun in other.objects)
        return cast("Negation", negation), verb, noun

    def _contrasts(self, tables: dict[str, str]) -> Iterator[tuple[Predicate, Predicate, Noun]]:
        for fault, merit in product(self._predicates(tables["faults"]), self._predicates(tables["merits"])):
            if f"{fault.lemma}/{merit.lemma}" not in tables["opposites"]:
                yield from ((fault, merit, noun) for noun in fault.subjects if noun in merit.subjects)

    # What links two clauses

    def sequence(self) -> Draft:
        """Draw two actions that one person does, one after the other."""
        first = self.of_somebody(self.first)
        second = self.next_action(first, [first])
        mode = self.pick(("past", "past", "past", "future", "habit"))
        if mode == "habit" and "once" in first.predicate.marks:
            mode = "past"
        for clause in (first, second):
            self.set_mode(clause, mode)
        if mode != "habit" and self.chance(0.3):
            first.adjuncts.append(Adjunct("when", self.inventory.times[mode].draw(self.random)))
        return "statement", _link(first, "-고", second), None

    def two_people(self, link: str = "-고") -> Draft:
        """Draw two people who do the same thing to two objects."""
        first = draw_until(_is_of_many_things, self.event, "action with several objects")
        verb = first.predicate
        if first.subject is None or first.is_of_animal_or_thing:
            first = self.event(verb, of=Clause(verb, Phrase(I), person="I"))
        second = draw_until(
            lambda c: c.subject is not None and not c.is_of_animal_or_thing and not _have_common_noun(first, c),
            lambda: self.event(verb),
            f"second person who {verb.english}",
        )
        mode = "habit" if "state" in first.predicate.marks else self.pick(("habit", "past"))
        for clause in (first, second):
            self.set_mode(clause, mode)
            clause.topic = True
        first.link = link
        return "statement", [first, second], None

    def contrast(self) -> Draft:
        """Draw a contrast: I like tea, but Minsu likes coffee; the room is small but clean; I was tired but studied."""
        draw = self.random.random()
        if draw < 0.4:
            return self.two_people("-지만")
        if draw < 0.75:
            fault, merit, noun = self.pick(self.contrasts)
            determiner = self.pick(_DEMONSTRATIVES) if noun.kind in ("count", "mass") else ""
            first, second = Clause(fault, Phrase(noun, determiner)), Clause(merit)
            first.tense = second.tense = "past" if self.chance(0.3) else "present"
        else:
            first, second = self.cause_and_effect(self.despite)
            first.tense = second.tense = "past"
        return "statement", _link(first, "-지만", second), None

    def because(self) -> Draft:
        """Draw a cause and its effect: It is raining, so I can't exercise."""
        first, second = self.cause_and_effect(self.causes)
        if second.negation == "못":
            mode = self.pick(("past", "past", "present"))
        elif second.negation:
            mode = "past"
        else:
            mode = self.pick(("past", "past", "past", "future", "want" if second.person == "I" else "future"))
        self.set_mode(second, mode)
        first.tense = "past" if mode == "past" else "present"
        return "statement", _link(first, "-아서/어서", second), None

    def since(self) -> Draft:
        """Draw a cause and a command: Since it is cold, close the window."""
        first, second = self.cause_and_effect(
            self.causes,
            lambda pair: "weather" in pair[0].predicate.marks and not pair[1].negation,
            "weather to act on",
        )
        second.person, second.subject = "you", None
        return "command", _link(first, "-(으)니까", second), None

    def condition(self) -> Draft:
        """Draw a condition: If you are hungry, eat some bread; if it rains, I will buy an umbrella."""
        first, second = self.cause_and_effect(self.causes, _is_possible, "condition")
        if self.chance(0.25):
            first = Clause(HAVE, object=Phrase(self.lexicon.nouns["시간"]), person="I")
            second = self.next_action(first, [])
        first.subject = second.subject = None
        mood: Mood = "statement"
        if self.chance(0.5):
            first.person, second.person, mood = "you", "you", "command"
        else:
            second.tense = "future"
        return mood, _link(first, "-(으)면", second), None

    # One clause deeper

    def because_then(self) -> Draft:
        """Draw a cause and two effects: I was hungry, so I ate some bread and drank some milk."""

        def leads_on(draft: Draft) -> bool:
            return not draft[1][1].negation and draft[1][1].tense != "present"

        return self._add_third(draw_until(leads_on, self.because, "reason to act"))

    def three_in_a_row(self) -> Draft:
        """Draw three actions of one person: I ate, and read, and slept."""
        return self._add_third(self.sequence())

    def but_then(self) -> Draft:
        """Draw a contrast of three clauses: I was tired but ate and studied."""
        first, second = self.cause_and_effect(self.despite, lambda pair: not pair[1].negation, "action nevertheless")
        first.tense = second.tense = "past"
        return self._add_third(("statement", _link(first, "-지만", second), None))

    def _add_third(self, draft: Draft) -> Draft:
        mood, clauses, level = draft
        last = clauses[-1]
        third = self.next_action(last, clauses)
        third.tense, third.habit = last.tense, last.habit
        last.link, third.shares_subject, third.subject = "-고", True, None
        return mood, [*clauses, third], level

    # Parts

    def next_action(self, last: Clause, before: Sequence[Clause]) -> Clause:
        """Draw another action that the same person does next."""
        used = [clause.predicate for clause in before]

        def draw() -> Clause:
            if not self.chance(0.4):
                return self.event(self.pick(self.next), of=last)
            clause = self.go(self.by_lemma["가다"])
            clause.person, clause.subject = last.person, last.subject
            return clause

        return draw_until(lambda clause: clause.predicate not in used, draw, "next action")

    def cause_and_effect(
        self,
        table: dict[Predicate, list[Effect]],
        fits: Callable[[tuple[Clause, Clause]], bool] = lambda _: True,
        what: str = "effect",
    ) -> tuple[Clause, Clause]:
        """Draw a state of the weather or of a person and what follows from it: the first pair that `fits`."""
        return draw_until(fits, lambda: self._cause_and_effect(table), what)

    def _cause_and_effect(self, table: dict[Predicate, list[Effect]]) -> tuple[Clause, Clause]:
        cause = self.pick(list(table))
        if "weather" in cause.marks:
            first, actor = Clause(cause), Clause(cause)
            self.set_subject(actor, dropped=0.4)
        else:
            first = actor = self.quality(cause)
            if first.subject and not first.subject.noun.pronoun:
                first.subject = Phrase(self.pick(self.inventory.names))  # somebody of whom English says he or she
        negation, verb, noun = self.pick(table[cause])
        if "motion" in verb.marks:
            second = self.go(verb, noun)
            second.person, second.subject = actor.person, actor.subject
        else:
            second = self.event(verb, of=actor)
            if noun:
                second.object = Phrase(noun)
        second.negation = negation
        return first, second


def _link(first: Clause, connective: str, second: Clause) -> list[Clause]:
    """Link two clauses; the second takes over the subject of the first, unless that is the weather."""
    first.link = connective
    if "weather" in first.predicate.marks:
        active = not first.predicate.english.startswith("be ")
        first.now = first.tense == "present" and connective != "-(으)면" and active
        second.topic = second.subject is not None
    else:
        first.topic = first.subject is not None
        second.shares_subject, second.subject = True, None
    return [first, second]


def _is_of_many_things(clause: Clause) -> bool:
    return not clause.predicate.marks & {"animals", "machines", "once"} and len(clause.predicate.objects) >= 3


def _is_possible(pair: tuple[Clause, Clause]) -> bool:
    first, second = pair
    return not second.negation and second.person != "other" and first.predicate.lemma not in ("기쁘다", "슬프다")


def _have_common_noun(first: Clause, second: Clause) -> bool:
    parts = (first.subject, second.subject), (first.object, second.object)
    return any((mine.noun if mine else None) is (other.noun if other else None) for mine, other in parts)
