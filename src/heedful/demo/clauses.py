"""Random clauses that make sense: who does what, what is how, what is where, who has what; and when, where and how."""

from collections.abc import Sequence
from random import Random
from typing import TypeVar, cast

from .frames import Adjunct, Clause, Determiner, Modal, Negation, Phrase, Tense
from .inventory import Inventory, WeightedChoice, draw_until
from .lexicon import COPULA, EXIST, HAVE, HAVE_NOT, KNOW_NOT, NOT_EXIST, THAT, THIS, I, Noun, Predicate
from .numerals import at_time, clock
from .semantics import VERBS, allows, clause_facts, max_count, time_facts

_T = TypeVar("_T")
_NEVER_NEGATED = frozenset(["exist", "have", "due"])  # these are denied by other words, or not at all


class ClauseSampler:
    """Draws clauses from the words of one level, with their tense, modality, polarity and adjuncts."""

    def __init__(self, inventory: Inventory, random: Random) -> None:
        self.inventory, self.lexicon, self.random, self.full = inventory, inventory.lexicon, random, inventory.full

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def pick(self, items: Sequence[_T]) -> _T:
        return items[int(self.random.random() * len(items))]

    # Subjects and objects

    def set_subject(self, clause: Clause, *, dropped: float = 0.25, me: float = 0.2) -> None:
        """Set the subject to I (expressed or dropped) or to another person."""
        draw = self.random.random()
        if draw < dropped + me:
            clause.person = "I"
            clause.subject = None if draw < dropped else Phrase(I)
        else:
            clause.person = "other"
            clause.subject = Phrase(self.inventory.others.draw(self.random))

    def object_for(self, clause: Clause) -> Noun:
        """Draw an object: never the subject itself, and kin only of the speaker."""
        actor = clause.subject.noun if clause.subject else None
        candidates = self.inventory.objects[clause.predicate]
        if actor and actor.animate and actor.pronoun == "it":
            candidates = self.inventory.animal_objects[clause.predicate.english]
        mine = clause.person != "other"
        has_possessive = mine or (actor is not None and actor.pronoun != "")
        for _ in range(20):
            thing = candidates.draw(self.random)
            possessed = "own" in clause.predicate.marks or thing.kind == "own"
            if thing is not actor and (mine or thing.kind != "kin") and (has_possessive or not possessed):
                return thing
        clause.subject, clause.person = Phrase(self.pick(self.inventory.names)), "other"  # English needs his or her
        return thing

    # Kinds of clauses

    def event(self, verb: Predicate | None = None, *, of: Clause | None = None) -> Clause:
        """Draw an action, its subject (or that of the clause `of`) and its object."""
        verb = verb or self.inventory.verbs.draw(self.random)
        clause = Clause(verb)
        if of is not None:
            clause.person, clause.subject = of.person, of.subject
        elif "machines" in verb.marks:
            clause.subject = Phrase(self.pick(self.inventory.machines))
        elif "animals" in verb.marks or ("animal" in verb.marks and self.chance(0.2)):
            clause.subject = Phrase(self.pick(self.inventory.animals))
        else:
            self.set_subject(clause)
            if "technical" in verb.marks and clause.subject and clause.subject.noun.kind == "count":
                clause.subject = Phrase(self.pick(self.lexicon.in_classes("technicians")))
        if verb.objects:
            clause.object = Phrase(self.object_for(clause))
        return clause

    def person_event(self, *, objects: bool = False) -> Clause:
        """Draw a single action of a person."""

        def fits(clause: Clause) -> bool:
            done = not clause.is_of_animal_or_thing and "state" not in clause.predicate.marks
            return done and (clause.object is not None or not objects)

        return draw_until(fits, self.event, "action of a person")

    def of_somebody(self, verbs: Sequence[Predicate]) -> Clause:
        """Draw an action of a person with one of these verbs."""
        return draw_until(lambda c: not c.is_of_animal_or_thing, lambda: self.event(self.pick(verbs)), "action")

    def go(self, verb: Predicate | None = None, place: Noun | None = None) -> Clause:
        verb = verb or self.inventory.motion.draw(self.random)
        goal = place or self.inventory.places[verb].draw(self.random)
        clause = Clause(verb, adjuncts=[Adjunct("to", Phrase(goal))])
        self.set_subject(clause)
        return clause

    def quality(self, adjective: Predicate | None = None) -> Clause:
        """Draw an adjective and a subject that has the quality."""
        adjective = adjective or self.inventory.adjectives.draw(self.random)
        clause = Clause(adjective)
        if "oneself" in adjective.marks:
            self.set_subject(clause, dropped=0.6, me=0.4)
        elif "anyone" in adjective.marks:
            self.set_subject(clause)
        else:
            noun = self.inventory.subjects[adjective].draw(self.random)
            clause.subject = Phrase(noun)
            if noun.kind in ("count", "mass") and not noun.animate:
                draw = self.random.random()
                before: Determiner = "" if draw < 0.55 else "this" if draw < 0.77 else "that" if draw < 0.9 else "my"
                clause.subject.determiner = "this" if before == "my" and noun.at else before
        return clause

    def existence(self) -> Clause:
        if self.chance(0.25):
            home = self.pick(self.lexicon.in_classes("homes"))
            clause = Clause(EXIST, adjuncts=[Adjunct("in", Phrase(home))], topic=True)
            self.set_subject(clause, dropped=0.1, me=0.2)
            return clause
        role, where, what = self.pick(self.inventory.scenes)
        thing = Phrase(self.pick(what))
        clause = Clause(EXIST, thing, adjuncts=[Adjunct(role, Phrase(self.pick(where)))])
        if self.chance(0.15):
            clause.predicate, clause.negation = NOT_EXIST, "lexical"
        else:
            self.count(thing, 0.3, "be")
        return clause

    def possession(self) -> Clause:
        clause = Clause(HAVE)
        self.set_subject(clause, dropped=0.35)
        related = clause.subject is None or clause.subject.noun.kind in ("name", "pronoun")
        if related and self.chance(0.25):
            thing = Phrase(self.pick(self.lexicon.in_classes("siblings")))
        else:
            thing = Phrase(self.inventory.owned.draw(self.random))
        clause.object = thing
        if self.chance(0.2):
            clause.predicate, clause.negation = HAVE_NOT, "lexical"
        else:
            self.count(thing, 0.3, "have")
        return clause

    def identity(self) -> Clause:
        """Draw a copula clause: This is a book; Minsu is a student."""
        clause = Clause(COPULA, negation="lexical" if self.chance(0.2) else "")
        if self.chance(0.5):
            clause.subject = Phrase(THIS if self.chance(0.6) else THAT)
            goods = [noun for noun in self.lexicon.in_classes("goods") if noun.kind != "plural"]
            clause.object = Phrase(self.pick(goods), "my" if self.chance(0.4) else "")
            return clause
        self.set_subject(clause, dropped=0.15, me=0.3)
        self.name_stranger(clause)
        clause.object = Phrase(self.pick(self.occupations(students=not clause.has_elder_subject)))
        if self.chance(0.2):
            clause.tense = "past"
        return clause

    def name_stranger(self, clause: Clause) -> None:
        """Replace a subject known by an occupation with somebody who has a name."""
        if clause.subject and clause.subject.noun.kind == "count":
            clause.subject = Phrase(self.pick(self.inventory.names))

    def occupations(self, *, students: bool) -> list[Noun]:
        """Return the nouns for what people are or become."""
        jobs = self.lexicon.in_classes("jobs")
        return [job for job in jobs if not job.elder and (students or job.korean != "학생")]

    def weather(self) -> Clause:
        """Draw a weather clause: rain, cold and the like, with the English subject *it*."""
        clause = Clause(self.pick(self.lexicon.weather))
        if clause.predicate.verb.adjective and self.chance(0.3):
            clause.subject = Phrase(self.lexicon.nouns["날씨"])
        return clause

    # Tense, aspect, modality and polarity

    def set_tense(self, clause: Clause, modes: WeightedChoice[str] | None = None, *, negative: float = 0.18) -> None:
        """Choose tense, modality and polarity, then add adjuncts."""
        predicate = clause.predicate
        mode = (modes or self.inventory.modes_of(predicate)).draw(self.random)
        self.set_mode(clause, mode)
        if not clause.negation and not predicate.marks & _NEVER_NEGATED and self.chance(negative):
            clause.negation = self.negation_for(predicate, mode)
            if predicate.lemma == "알다" and clause.negation:
                clause.predicate, clause.negation = KNOW_NOT, "lexical"
        plain = clause.habit or clause.negation or "state" in predicate.marks
        if clause.object and not plain and not clause.is_of_animal_or_thing:
            self.add_attribute(clause.object, predicate)
        self.add_adjuncts(clause, mode)

    def set_mode(self, clause: Clause, mode: str) -> None:
        """Set the tense, aspect or modal that a mode stands for."""
        if mode in ("past", "future"):
            clause.tense = cast("Tense", mode)
        elif mode == "habit":
            clause.habit = True
        elif mode == "now":
            clause.now = True
        elif mode != "present":
            clause.modal = cast("Modal", mode)

    def negation_for(self, predicate: Predicate, mode: str) -> Negation:
        """Choose a negation that the word and the tense allow: no 못 with adjectives, 안 only before short ones."""
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

    # Attributes and adjuncts

    def add_attribute(self, phrase: Phrase, verb: Predicate) -> None:
        """Add a demonstrative, an adjective or a number to an object, or nothing."""
        noun, draw = phrase.noun, self.random.random()
        if noun.kind not in ("count", "mass", "plural") or noun.at:
            return
        if draw < 0.06 and noun.kind != "plural" and not noun.animate:
            phrase.determiner = "this" if draw < 0.04 else "that"
        elif draw < (0.65 if self.full else 0.25) and noun in self.inventory.attributes:
            adjective = self.pick(self.inventory.attributes[noun])
            if adjective.quality not in ("expensive", "cheap") or verb.english in VERBS["priced"]:
                phrase.adjective = adjective
        elif draw > 0.75 and verb.english not in VERBS["uncounted"]:
            self.count(phrase, 1, verb.english)

    def count(self, phrase: Phrase, probability: float, verb: str) -> None:
        """Add a number with this probability, if the noun has a counter."""
        if phrase.noun.counter and self.chance(probability):
            most = max_count(phrase.noun, verb) if self.full else 9
            phrase.number = 1 + int(self.random.random() * most) if most else 0

    def add_adjuncts(self, clause: Clause, mode: str) -> None:
        """Add at most two of: a time, a place, an adverb, company."""
        predicate, adjuncts, marks = clause.predicate, clause.adjuncts, clause.predicate.marks
        if mode == "now":
            adjuncts.append(self.inventory.now)
        if predicate.verb.adjective or marks & {"state", "weather"}:
            if marks & {"anyone", "oneself", "weather"} and self.chance(0.4):
                day = {"past": "어제", "future": "내일", "present": "오늘"}[clause.tense]
                adjuncts.append(Adjunct("when", next(t for t in self.lexicon.times if t.korean == day)))
            if predicate.english in ("rain", "snow") and not clause.negation and self.chance(0.25):
                adjuncts.append(Adjunct("how", self.lexicon.adverbs["많이"]))
            return
        if mode == "habit" and not clause.negation and self.chance(0.3):
            adjuncts.append(Adjunct("often", self.pick(self.inventory.often)))
        elif mode in ("past", "future", "habit") and self.chance(0.4):
            self.add_time(clause, mode)
        if clause.subject and clause.subject.noun.animate and clause.is_of_animal_or_thing:
            if self.chance(0.3):
                adjuncts.append(Adjunct("at", Phrase(self.pick(self.lexicon.in_classes("pet-places")))))
            return
        room = 3 if "motion" in marks else 2
        if len(adjuncts) < room and predicate.places and "motion" not in marks and self.chance(0.28):
            place = self.inventory.places[predicate].draw(self.random)
            if predicate.english == "wait for" and clause.object and not clause.object.noun.animate:
                place = self.lexicon.nouns.get("버스 정류장", place)
            adjuncts.append(Adjunct("at", Phrase(place)))
        elif len(adjuncts) < room and predicate.english in VERBS["social"] and self.chance(0.15):
            self.add_company(clause)
        if len(adjuncts) < room and predicate.adverbs and not clause.negation and self.chance(0.25):
            manner = self.inventory.manners[predicate].draw(self.random)
            if not (mode in ("progressive", "now") and manner.korean in ("일찍", "늦게")):
                adjuncts.append(Adjunct("how", manner))

    def add_time(self, clause: Clause, mode: str) -> None:
        """Add a time that fits the tense: a clock time for people, or a named time.

        On the full level, a named time must satisfy the restrictions of the clause; if none does, no time is added.
        """
        of_it = clause.is_of_animal_or_thing
        if of_it and clause.subject and not clause.subject.noun.animate:
            return  # programs keep no calendar
        if not of_it and clause.predicate.english in VERBS["timed_by_clock"] and self.chance(0.4):
            clause.adjuncts.append(Adjunct("when", at_time("at", clock(*self.hour_and_minute()))))
            return
        if mode == "habit" and clause.negation:
            return
        times = self.inventory.times[mode]
        if self.full:
            facts = clause_facts(clause)
            weights = {time: share for time, share in times.shares() if allows("time", facts | time_facts(time))}
            if not weights:
                return
            times = WeightedChoice(weights)
        clause.adjuncts.append(Adjunct("when", times.draw(self.random)))

    def hour_and_minute(self) -> tuple[int, int]:
        """Draw a clock time: often a full hour; in the demo the minutes are multiples of ten."""
        step = 5 if self.full else 10
        minute = step * int(self.random.random() * (60 // step)) if self.chance(0.6) else 0
        return 1 + int(self.random.random() * 12), minute

    def add_company(self, clause: Clause) -> None:
        """Add a person who takes part; kin only for the speaker."""
        actor = clause.subject.noun if clause.subject else None
        friend = self.pick(self.inventory.companions if clause.person == "I" else self.inventory.names)
        if friend not in (actor, clause.object and clause.object.noun):
            clause.adjuncts.append(Adjunct("with", Phrase(friend)))
