"""Random clauses that make sense: who does what, what is how, what is where, who has what."""

from __future__ import annotations

from collections.abc import Sequence

from heedful.data.grammar.choices import first_that
from heedful.data.grammar.frames import Clause, Extra, Phrase, Pointer
from heedful.data.grammar.lexicon import COPULA, EXIST, HAVE, HAVE_NOT, LACK, THAT, THIS, I, Noun, Predicate
from heedful.data.grammar.settling import Settler


def is_of_it(clause: Clause) -> bool:
    """Whether an animal or a thing is the subject."""
    return clause.subject is not None and clause.subject.noun.pronoun == "it"


class ClauseSampler(Settler):
    """Builds clauses from the words of one level; settling gives them their tense."""

    def set_subject(self, clause: Clause, *, dropped: float = 0.25, me: float = 0.2) -> None:
        """Somebody for the clause to speak of: I (said or not), or another person."""
        draw = self.random.random()
        if draw < dropped + me:
            clause.person = "I"
            clause.subject = None if draw < dropped else Phrase(I)
        else:
            clause.person = "other"
            clause.subject = Phrase(self.stock.others.of(self.random))

    def event(self, verb: Predicate | None = None, *, of: Clause | None = None) -> Clause:
        """An action, its actor (or that `of` another clause) and what it is done to."""
        verb = verb or self.stock.verbs.of(self.random)
        clause = Clause(verb)
        if of is not None:
            clause.person, clause.subject = of.person, of.subject
        elif "machines" in verb.marks:
            clause.subject = Phrase(self.pick(self.stock.machines))
        elif "animals" in verb.marks or ("animal" in verb.marks and self.chance(0.2)):
            clause.subject = Phrase(self.pick(self.stock.animals))
        else:
            self.set_subject(clause)
            if "technical" in verb.marks and clause.subject and clause.subject.noun.kind == "count":
                clause.subject = Phrase(self.pick(self.stock.technicians))
        if verb.objects:
            clause.object = Phrase(self.object_for(clause))
        return clause

    def person_event(self, *, objects: bool = False) -> Clause:
        """A single action of a person."""

        def fits(clause: Clause) -> bool:
            done = not is_of_it(clause) and "state" not in clause.predicate.marks
            return done and (clause.object is not None or not objects)

        return first_that(fits, self.event, "action of a person")

    def of_somebody(self, verbs: Sequence[Predicate]) -> Clause:
        """What a person does, of these verbs."""
        return first_that(lambda clause: not is_of_it(clause), lambda: self.event(self.pick(verbs)), "action")

    def object_for(self, clause: Clause) -> Noun:
        """Something to do it to: not oneself, and kin only where they are the speaker's own."""
        actor = clause.subject.noun if clause.subject else None
        things = self.stock.objects[clause.predicate]
        if actor and actor.animate and actor.pronoun == "it":
            things = self.stock.animal_objects[clause.predicate.english]
        mine = clause.person != "other"
        whose = mine or (actor is not None and actor.pronoun != "")
        own = "own" in clause.predicate.marks
        for _ in range(20):
            thing = things.of(self.random)
            if thing is not actor and (mine or thing.kind != "kin") and (whose or not (own or thing.kind == "own")):
                return thing
        clause.subject, clause.person = Phrase(self.pick(self.stock.names)), "other"  # English needs his or her
        return thing

    def go(self, verb: Predicate | None = None, place: Noun | None = None) -> Clause:
        """Going, coming or living somewhere."""
        verb = verb or self.stock.motion.of(self.random)
        clause = Clause(verb, extras=[Extra("to", Phrase(place or self.stock.places[verb].of(self.random)))])
        self.set_subject(clause)
        return clause

    def quality(self, adjective: Predicate | None = None) -> Clause:
        """An adjective and what has the quality."""
        adjective = adjective or self.stock.adjectives.of(self.random)
        clause = Clause(adjective)
        if "oneself" in adjective.marks:
            self.set_subject(clause, dropped=0.6, me=0.4)
        elif "anyone" in adjective.marks:
            self.set_subject(clause)
        else:
            noun = self.stock.subjects[adjective].of(self.random)
            clause.subject = Phrase(noun)
            if noun.kind in ("count", "mass") and not noun.animate:
                draw = self.random.random()
                pointer: Pointer = "" if draw < 0.55 else "this" if draw < 0.77 else "that" if draw < 0.9 else "my"
                clause.subject.pointer = "this" if pointer == "my" and noun.at else pointer
        return clause

    def existence(self) -> Clause:
        """Something somewhere, or somebody somewhere."""
        if self.chance(0.25):
            clause = Clause(EXIST, extras=[Extra("in", Phrase(self.pick(self.stock.homes)))], topic=True)
            self.set_subject(clause, dropped=0.1, me=0.2)
            return clause
        role, where, what = self.pick(self.stock.scenes)
        thing = Phrase(self.pick(what))
        clause = Clause(EXIST, thing, extras=[Extra(role, Phrase(self.pick(where)))])
        if self.chance(0.15):
            clause.predicate, clause.negation = LACK, "lexical"
        else:
            self.count(thing, 0.3, "be")
        return clause

    def possession(self) -> Clause:
        """Having something, or a sister."""
        clause = Clause(HAVE)
        self.set_subject(clause, dropped=0.35)
        related = clause.subject is None or clause.subject.noun.kind in ("name", "pronoun")
        if related and self.chance(0.25):
            thing = Phrase(self.pick(self.words.among("siblings")))
        else:
            thing = Phrase(self.stock.owned.of(self.random))
        clause.object = thing
        if self.chance(0.2):
            clause.predicate, clause.negation = HAVE_NOT, "lexical"
        else:
            self.count(thing, 0.3, "have")
        return clause

    def identity(self) -> Clause:
        """This is a book; Minsu is a student."""
        clause = Clause(COPULA, negation="lexical" if self.chance(0.2) else "")
        if self.chance(0.5):
            clause.subject = Phrase(THIS if self.chance(0.6) else THAT)
            goods = [noun for noun in self.words.among("goods") if noun.kind != "plural"]
            clause.object = Phrase(self.pick(goods), "my" if self.chance(0.4) else "")
            return clause
        self.set_subject(clause, dropped=0.15, me=0.3)
        if clause.subject and clause.subject.noun.kind == "count":
            clause.subject = Phrase(self.pick(self.stock.names))
        elder = clause.subject is not None and clause.subject.noun.elder
        jobs = [job for job in self.words.among("jobs") if not job.elder and not (elder and job.korean == "학생")]
        clause.object = Phrase(self.pick(jobs))
        if self.chance(0.2):
            clause.tense = "past"
        return clause

    def weather(self) -> Clause:
        """Rain, cold and the like, of which English says *it*."""
        clause = Clause(self.pick(self.words.weather))
        if clause.predicate.verb.adjective and self.chance(0.3):
            clause.subject = Phrase(self.words.nouns["날씨"])
        return clause
