"""Random sentences: statements, questions, commands, and linked clauses, on one speech level each."""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from .clause_linking import Draft, LinkedClauseSampler
from .constructions import ConstructionSampler
from .frames import Adjunct, Clause, Phrase, SentenceFrame, SpeechLevel
from .inventory import WeightedChoice, draw_until, inventory
from .lexicon import FANCY, HOW, WHAT, WHEN, WHERE, WHO, WHY, YOU, Adverb, I, Level, Predicate
from .semantics import VERBS, is_felicitous, satisfies_restrictions

_WH_ADVERBS: dict[str, Adverb] = {"when": WHEN, "why": WHY, "how": HOW}
_NOT_DONE_AT_WILL = {"state", "animals", "machines", "done", "due"}


class SentenceSampler(LinkedClauseSampler, ConstructionSampler):
    """Draws whole sentences of one level."""

    def __init__(self, level: Level, random: Random) -> None:
        super().__init__(inventory(level), random)
        self.senses: dict[tuple[str, bool], Predicate] = {}
        for verb in self.lexicon.verbs:  # the first sense is the one a bare question has: 뭐 써요?
            if verb.english == "drink":
                verb = replace(verb, honorific=None)  # 뭐 드세요? asks for food
            for person in {noun.is_person for noun in verb.objects}:
                self.senses.setdefault((verb.lemma, person), verb)
        weights = self.inventory.weights
        self.clauses: WeightedChoice[Callable[[], Clause]] = self.methods(weights["clauses"][level])
        self.shapes: WeightedChoice[Callable[[], Draft]] = self.methods(weights["sentences"][level])
        self.deeper: WeightedChoice[Callable[[], Draft]] = self.methods(weights["deeper"])
        self.levels: dict[str, WeightedChoice[SpeechLevel]] = {
            mood: WeightedChoice(levels) for mood, levels in weights["speech_levels"].items()
        }

    def methods(self, weights: dict[str, float]) -> WeightedChoice[Any]:
        """Return a choice among the methods with these names."""
        return WeightedChoice({getattr(self, name): weight for name, weight in weights.items()})

    def draw(self) -> SentenceFrame:
        return self.draw_felicitous(self.shapes.draw(self.random))

    def draw_deeper(self) -> SentenceFrame:
        return self.draw_felicitous(self.deeper.draw(self.random))

    def draw_felicitous(self, shape: Callable[[], Draft]) -> SentenceFrame:
        """Draw a sentence of this shape that people would say."""
        if not self.full:
            return self.finish(shape())
        return draw_until(is_felicitous, lambda: self.finish(shape()), f"sentence of the shape {shape.__name__!r}")

    def finish(self, draft: Draft) -> SentenceFrame:
        """Return the clauses as a sentence on a speech level that the mood allows."""
        mood, clauses, level = draft
        sentence = SentenceFrame(level or self.levels.get(mood, self.levels["any"]).draw(self.random), mood, clauses)
        if mood == "question" and clauses[0].person == "I":  # you, who is named only among friends
            named = sentence.level == "해" and clauses[0].subject
            clauses[0].person, clauses[0].subject = "you", Phrase(YOU) if named else None
        self.vary_object(sentence)
        return sentence

    def vary_object(self, sentence: SentenceFrame) -> None:
        """Scramble an object before its subject or drop its particle, as speakers do."""
        for clause in sentence.clauses:
            if clause.object is None or clause.predicate.particle != "을/를" or clause.wh_role == "object":
                continue
            draw, spoken = self.random.random(), sentence.level in ("해요", "해")
            if draw < 0.5 and len(sentence.clauses) == 1 and may_scramble(clause):
                clause.scrambled, clause.topic = True, False
            elif draw > 0.75 and len(sentence.clauses) == 1 and spoken and may_drop_particle(clause):
                clause.drops_particle = True

    # Statements and questions

    def core(self) -> Clause:
        """Draw any clause, with tense and adjuncts."""
        kind = self.clauses.draw(self.random)
        if not self.full:
            return self.with_tense(kind())
        what = f"clause of the kind {kind.__name__!r}"
        return draw_until(satisfies_restrictions, lambda: self.with_tense(kind()), what)

    def with_tense(self, clause: Clause) -> Clause:
        """Add tense and adjuncts to a clause, and mark its subject as the topic where it is one."""
        predicate = clause.predicate
        if "copula" not in predicate.marks and not clause.has_tense:
            self.set_tense(clause)
        if "weather" in predicate.marks and clause.tense == "present" and not predicate.english.startswith("be "):
            clause.now, clause.habit = "copula" not in predicate.marks, False
        clause.topic = clause.topic or is_topic(clause)
        return clause

    def statement(self) -> Draft:
        return "statement", [self.core()], None

    def question(self) -> Draft:
        return "question", [draw_until(_is_questionable, self.core, "question")], None

    def wh_question(self) -> Draft:
        """Draw a question with who, what, when, where or why; in Korean the word stays in its place."""
        clause = self.event() if self.chance(0.65) else self.go()
        if clause.is_of_animal_or_thing:
            clause = draw_until(lambda c: not c.is_of_animal_or_thing, self.event, "action to ask about")
        role = self.pick(self.wh_roles(clause))
        self.set_tense(
            clause, None if clause.predicate.marks & {"state", "once"} else self.inventory.modes["wh"], negative=0.0
        )
        clause.adjuncts = [adjunct for adjunct in clause.adjuncts if adjunct.role not in ("how", "often")]
        self.put_wh_word(clause, role)
        clause.topic = role != "subject"
        return "question", [clause], None

    def wh_roles(self, clause: Clause) -> list[str]:
        """Return the roles that can be asked about, and why."""
        marks = clause.predicate.marks
        roles = ["subject", "why"] if "state" in marks else ["subject", "when", "why"]
        if clause.object and clause.predicate.english not in VERBS["phrasal"]:  # what do you turn on on Friday?
            roles += ["object", "object"]
        if clause.predicate.lemma == "가다":
            roles += ["to", "to", *(["how"] if self.full else [])]
        elif clause.predicate.lemma == "살다":
            roles += ["to"]
        elif clause.predicate.places and "motion" not in marks:
            roles.append("at")
        return roles

    def put_wh_word(self, clause: Clause, role: str) -> None:
        """Put the question word in the place of what is asked for."""
        clause.wh_role = role
        if role == "subject":
            clause.subject, clause.person = Phrase(WHO), "other"
        elif role == "object" and clause.object:
            person = clause.object.noun.is_person
            clause.predicate = self.senses[clause.predicate.lemma, person]
            clause.object = Phrase(WHO if person else WHAT)
        else:
            others = [adjunct for adjunct in clause.adjuncts if adjunct.role != role]
            clause.adjuncts = [Adjunct(role, _WH_ADVERBS.get(role) or Phrase(WHERE)), *others]

    # Commands and their kind

    def command(self) -> Draft:
        """Draw a command such as 책을 읽으세요."""
        return "command", [self.action()], None

    def prohibition(self) -> Draft:
        """Draw a prohibition such as 문을 열지 마세요."""
        clause = self.action(VERBS["prohibited"])
        if clause.object:
            clause.object = Phrase(clause.object.noun)
        return "prohibition", [clause], None

    def request(self) -> Draft:
        """Draw a request such as 문을 열어 주세요."""
        return "request", [self.action(VERBS["requested"])], None

    def suggestion(self) -> Draft:
        """Draw a suggestion such as 같이 영화를 볼까요?"""
        clause = self.action(VERBS["suggested"])
        clause.adjuncts = [adjunct for adjunct in clause.adjuncts if adjunct.role in ("to", "at")]
        if self.chance(0.5):
            clause.adjuncts.append(Adjunct("how", self.lexicon.adverbs["같이"]))
        return "suggestion", [clause], None

    def action(self, among: frozenset[str] = frozenset()) -> Clause:
        """Draw an action that one can be told to do, with one of these verbs if any are named."""

        def fits(clause: Clause) -> bool:
            verb = clause.predicate
            at_will = not verb.marks & _NOT_DONE_AT_WILL and verb.english not in VERBS["not_commanded"]
            return verb.english in among if among else at_will

        clause = draw_until(fits, lambda: self.event() if self.chance(0.8) else self.go(), "action to order")
        predicate = clause.predicate
        clause.person, clause.subject = "you", None
        if clause.object:
            if clause.object.noun.kind == "kin":
                clause.object = Phrase(self.pick(self.inventory.names))
            self.add_attribute(clause.object, predicate)
        if predicate.adverbs and self.chance(0.25):
            clause.adjuncts.append(Adjunct("how", self.inventory.manners[predicate].draw(self.random)))
        elif predicate.places and "motion" not in predicate.marks and self.chance(0.2):
            clause.adjuncts.append(Adjunct("at", Phrase(self.pick(predicate.places))))
        return clause


def _is_questionable(clause: Clause) -> bool:
    """Return True for what one asks another: no denials, and not who one is oneself."""
    of_me = clause.person == "I" and "copula" in clause.predicate.marks
    return not (clause.negation or of_me or clause.predicate is FANCY)


def is_topic(clause: Clause) -> bool:
    """Return True for 은/는: I and you, habits and states of people, pointed-at nouns; 이/가 for single events."""
    if clause.subject is None or clause.is_compared:
        return False
    noun, marks = clause.subject.noun, clause.predicate.marks
    if noun.kind == "pronoun" or marks & {"copula", "have"} or clause.modal in ("can", "want", "must"):
        return True
    if clause.predicate.verb.adjective:
        return noun.animate or clause.subject.determiner != "" or clause.subject.relative is not None
    return clause.habit and "exist" not in marks


def may_scramble(clause: Clause) -> bool:
    """Return True for single events and likings; a habit keeps its topic first, *I* moves only in short sentences."""
    if clause.subject is None or clause.wh_role or clause.link or clause.now or clause.modal or clause.shares_subject:
        return False
    noun = clause.subject.noun
    if clause.object and (clause.object.relative or clause.object.noun.kind == "pronoun"):
        return False
    if noun is YOU or not noun.animate or (noun is I and (clause.negation or clause.adjuncts)):
        return False
    return not clause.habit or clause.predicate.english in ("like", "love")


def may_drop_particle(clause: Clause) -> bool:
    """Return True if the object's particle may be dropped beside the verb."""
    assert clause.object is not None
    if clause.degree:
        return False  # 커피를 정말 좋아해요
    thing, short = clause.object, clause.negation in ("안", "못") and clause.modal != "can"
    if clause.predicate.lemma == "하다" and not short:
        return False  # 축구해요 is one word, 축구 안 해요 is three
    beside = not clause.has_role("how", "often")
    plain = not thing.noun.animate and thing.noun.kind != "name" and not thing.number and not thing.relative
    return beside and plain
