"""Random sentences: statements, questions, commands, and joined clauses, on one speech level each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from random import Random

from heedful.data.grammar.choices import Choice, first_that, inventory
from heedful.data.grammar.clauses import ClauseSampler, is_of_it
from heedful.data.grammar.frames import Clause, Extra, Mood, Phrase, Sentence, SpeechLevel
from heedful.data.grammar.joins import Joined, JoinSampler
from heedful.data.grammar.lexicon import FANCY, HOW, WHAT, WHEN, WHERE, WHO, WHY, YOU, Adverb, I, Level, Noun, Predicate
from heedful.data.grammar.measured import MeasureSampler
from heedful.data.grammar.sense import makes_sense, suits
from heedful.data.grammar.special import SpecialSampler

_LEVELS: Choice[SpeechLevel] = Choice({"해요": 60, "합쇼": 22, "해": 18})
_POLITE: Choice[SpeechLevel] = Choice({"해요": 70, "합쇼": 30})
_INFORMAL: Choice[SpeechLevel] = Choice({"해요": 70, "해": 30})
_LEVELS_OF = {"command": _POLITE, "suggestion": _INFORMAL}  # a casual command would sound like a statement
_QUESTION_WORDS: dict[str, Adverb] = {"when": WHEN, "why": WHY, "how": HOW}


_NOT_DONE_AT_WILL = {"state", "animals", "machines", "done", "due"}
_NOT_ORDERED = ("see", "cry", "laugh", "receive")
_PHRASAL = ("turn on", "turn off", "take off", "throw away")  # what do you turn on on Friday?
_PROHIBITED = (
    "eat", "drink", "watch", "open", "close", "turn on", "turn off", "take", "go", "come", "meet", "laugh", "cry",
    "run", "use", "throw away", "delete", "buy", "sleep", "wear", "call", "ride", "write", "enter",
)  # fmt: skip
_REQUESTED = (
    "open", "close", "turn on", "turn off", "fix", "make", "buy", "write", "read", "cut", "wait for", "clean",
    "wash", "translate", "explain", "check", "save", "delete", "install", "enter", "call", "sing", "prepare", "come",
    "cook", "draw",
)  # fmt: skip
_SUGGESTED = (
    "eat", "drink", "watch", "listen to", "go", "study", "exercise", "walk", "rest", "take a walk", "swim", "cook",
    "take", "make", "play", "buy", "dance", "travel", "clean", "start", "ride", "have", "go shopping", "go hiking",
)  # fmt: skip


class SentenceSampler:
    """Draws whole sentences of one level."""

    def __init__(self, level: Level, random: Random) -> None:
        self.random, self.clauses = random, ClauseSampler(inventory(level), random)
        kinds, self.joins = self.clauses, JoinSampler(self.clauses)
        special = SpecialSampler(kinds)
        self.senses: dict[tuple[str, bool], Predicate] = {}
        for verb in kinds.words.verbs:  # the first sense is the one a bare question has: 뭐 써요?
            if verb.english == "drink":
                verb = replace(verb, honorific=None)  # 뭐 드세요? asks for food
            for person in {_is_person(noun) for noun in verb.objects}:
                self.senses.setdefault((verb.lemma, person), verb)
        full = level == "full"
        cores: dict[Callable[[], Clause], float] = {
            kinds.event: 80 if full else 50, kinds.go: 12, kinds.quality: 14, kinds.existence: 9, kinds.possession: 6,
            kinds.identity: 6, kinds.weather: 6 if full else 4,
        }  # fmt: skip
        self.cores = Choice(cores | {special.transfer: 4} | (special.cores if full else {}))
        shapes: dict[Callable[[], Sentence], float] = {
            self.statement: 56, self.question: 10, self.question_word: 10, self.command: 6,
            self.joined(self.joins.sequence): 5, self.joined(self.joins.side_by_side): 3,
            self.joined(self.joins.contrast): 5, self.joined(self.joins.because): 6, self.told(special.message): 1.5,
        }  # fmt: skip
        if full:
            told = special.shapes | MeasureSampler(kinds).shapes
            shapes |= {
                self.prohibition: 4, self.request: 4, self.suggestion: 3, self.joined(self.joins.since): 4,
                self.joined(self.joins.condition): 5, **{self.told(shape): share for shape, share in told.items()},
            }  # fmt: skip
        self.shapes = Choice(shapes)
        deep = (self.joins.because_then, self.joins.three_in_a_row, self.joins.but_then)
        self.deep = Choice({self.joined(shape): 1 for shape in deep})
        self.asking: Choice[str] = Choice({"habit": 30, "past": 50, "future": 20})

    def draw(self) -> Sentence:
        """One sentence."""
        return self.sensible(self.shapes.of(self.random))

    def draw_deeper(self) -> Sentence:
        """One sentence of three clauses."""
        return self.sensible(self.deep.of(self.random))

    def sensible(self, shape: Callable[[], Sentence]) -> Sentence:
        """A sentence of this shape that people would say."""
        return (
            first_that(makes_sense, shape, f"sentence of the shape {shape.__name__!r}")
            if self.clauses.full
            else shape()
        )

    def sentence(self, mood: Mood, *clauses: Clause, level: SpeechLevel | None = None) -> Sentence:
        """Clauses on a speech level that the mood allows, spoken as people speak."""
        sentence = Sentence(level or _LEVELS_OF.get(mood, _LEVELS).of(self.random), mood, list(clauses))
        if mood == "question":
            self.ask_you(sentence.clauses[0], sentence.level)
        self.loosen(sentence)
        return sentence

    def joined(self, shape: Callable[[], Joined]) -> Callable[[], Sentence]:
        @wraps(shape)
        def draw() -> Sentence:
            mood, clauses = shape()
            return self.sentence(mood, *clauses)

        return draw

    def told(self, shape: Callable[[], tuple[Mood, Clause, SpeechLevel | None]]) -> Callable[[], Sentence]:
        @wraps(shape)
        def draw() -> Sentence:
            mood, clause, level = shape()
            return self.sentence(mood, clause, level=level)

        return draw

    def core(self) -> Clause:
        """Any clause, with tense and extras."""
        kind = self.cores.of(self.random)
        if not self.clauses.full:
            return self.settled(kind())
        return first_that(suits, lambda: self.settled(kind()), f"clause of the kind {kind.__name__!r}")

    def settled(self, clause: Clause) -> Clause:
        predicate = clause.predicate
        if "copula" not in predicate.marks and not clause.settled:
            self.clauses.settle(clause)
        if "weather" in predicate.marks and clause.tense == "present" and not predicate.english.startswith("be "):
            clause.now, clause.habit = "copula" not in predicate.marks, False
        clause.topic = clause.topic or is_topic(clause)
        return clause

    def statement(self) -> Sentence:
        return self.sentence("statement", self.core())

    def question(self) -> Sentence:
        """Yes or no?"""
        return self.sentence("question", first_that(_is_questionable, self.core, "question"))

    def command(self) -> Sentence:
        return self.sentence("command", self.action())

    def prohibition(self) -> Sentence:
        clause = self.action(_PROHIBITED)
        if clause.object:
            clause.object = Phrase(clause.object.noun)
        return self.sentence("prohibition", clause)

    def request(self) -> Sentence:
        return self.sentence("request", self.action(_REQUESTED))

    def suggestion(self) -> Sentence:
        clause = self.action(_SUGGESTED)
        clause.extras = [extra for extra in clause.extras if extra.role in ("to", "at")]
        if self.clauses.chance(0.5):
            clause.extras.append(Extra("how", self.clauses.words.adverbs["같이"]))
        return self.sentence("suggestion", clause)

    def ask_you(self, clause: Clause, level: SpeechLevel) -> None:
        """What was said of me is asked of you, who is named only among friends."""
        if clause.person == "I":
            clause.person = "you"
            clause.subject = Phrase(YOU) if level == "해" and clause.subject else None

    def loosen(self, sentence: Sentence) -> None:
        """What speakers do: the object before the subject, or its particle dropped beside the verb."""
        for clause in sentence.clauses:
            thing = clause.object
            if thing is None or clause.predicate.particle != "을/를" or clause.asked == "object":
                continue
            draw = self.random.random()
            if draw < 0.5 and len(sentence.clauses) == 1 and may_scramble(clause):
                clause.scrambled, clause.topic = True, False
            elif draw > 0.75 and len(sentence.clauses) == 1 and sentence.level != "합쇼" and may_drop(clause):
                clause.bare_object = True

    def question_word(self) -> Sentence:
        """Who, what, when, where, why; in Korean the word stays in its place."""
        kinds = self.clauses
        clause = kinds.event() if kinds.chance(0.65) else kinds.go()
        if is_of_it(clause):
            clause = first_that(lambda other: not is_of_it(other), kinds.event, "action to ask about")
        asked = kinds.pick(self.askable(clause))
        kinds.settle(clause, None if clause.predicate.marks & {"state", "once"} else self.asking, negative=0.0)
        clause.extras = [extra for extra in clause.extras if extra.role not in ("how", "often")]
        self.put_question(clause, asked)
        clause.topic = asked != "subject"
        return self.sentence("question", clause)

    def askable(self, clause: Clause) -> list[str]:
        """What can be asked about: roles, and why."""
        marks = clause.predicate.marks
        choices = ["subject", "why"] if "state" in marks else ["subject", "when", "why"]
        if clause.object and clause.predicate.english not in _PHRASAL:
            choices += ["object", "object"]
        if clause.predicate.lemma == "가다":
            choices += ["to", "to", *(["how"] if self.clauses.full else [])]
        elif clause.predicate.lemma == "살다":
            choices += ["to"]
        elif clause.predicate.places and "motion" not in marks:
            choices.append("at")
        return choices

    def put_question(self, clause: Clause, asked: str) -> None:
        """The question word in the place of what is asked for."""
        clause.asked = asked
        if asked == "subject":
            clause.subject, clause.person = Phrase(WHO), "other"
        elif asked == "object" and clause.object:
            person = _is_person(clause.object.noun)
            clause.predicate = self.senses[clause.predicate.lemma, person]
            clause.object = Phrase(WHO if person else WHAT)
        else:
            clause.extras = [extra for extra in clause.extras if extra.role != asked]
            word = _QUESTION_WORDS.get(asked) or Phrase(WHERE)
            clause.extras.insert(0, Extra(asked, word))

    def action(self, among: Sequence[str] = ()) -> Clause:
        """Something one can be told to do; of these verbs, if any are named."""
        kinds = self.clauses

        def fits(clause: Clause) -> bool:
            verb = clause.predicate
            at_will = not verb.marks & _NOT_DONE_AT_WILL and verb.english not in _NOT_ORDERED
            return verb.english in among if among else at_will

        clause = first_that(fits, lambda: kinds.event() if kinds.chance(0.8) else kinds.go(), "action to order")
        predicate = clause.predicate
        clause.person, clause.subject = "you", None
        if clause.object:
            if clause.object.noun.kind == "kin":
                clause.object = Phrase(kinds.pick(kinds.stock.names))
            kinds.embellish(clause.object, predicate)
        if predicate.adverbs and kinds.chance(0.25):
            clause.extras.append(Extra("how", kinds.stock.manners[predicate].of(self.random)))
        elif predicate.places and "motion" not in predicate.marks and kinds.chance(0.2):
            clause.extras.append(Extra("at", Phrase(kinds.pick(predicate.places))))
        return clause


def _is_questionable(clause: Clause) -> bool:
    """What one asks of another: no denials, and not who one is oneself."""
    of_me = clause.person == "I" and "copula" in clause.predicate.marks
    return not (clause.negation or of_me or clause.predicate is FANCY)


def is_topic(clause: Clause) -> bool:
    """은/는 for I and you, for habits and states of people, and for what is pointed at; 이/가 for single events."""
    if clause.subject is None:
        return False
    noun, marks = clause.subject.noun, clause.predicate.marks
    if clause.degree:
        return False
    if noun.kind == "pronoun" or marks & {"copula", "have"} or clause.modal in ("can", "want", "must"):
        return True
    if clause.predicate.verb.adjective:
        return noun.animate or clause.subject.pointer != "" or clause.subject.relative is not None
    return clause.habit and "exist" not in marks


def may_scramble(clause: Clause) -> bool:
    """Single events and likings; a habit keeps its topic in front, and *I* moves only in short sentences."""
    if clause.subject is None or clause.asked or clause.link or clause.now or clause.modal or clause.shared:
        return False
    noun = clause.subject.noun
    if clause.object and clause.object.relative:
        return False
    if noun is YOU or not noun.animate or (noun is I and (clause.negation or clause.extras)):
        return False
    return not clause.habit or clause.predicate.english in ("like", "love")


def may_drop(clause: Clause) -> bool:
    """A thing's particle may be dropped beside the verb."""
    assert clause.object is not None
    noun, short = clause.object.noun, clause.negation in ("안", "못") and clause.modal != "can"
    if clause.predicate.lemma == "하다" and not short:
        return False  # 축구해요 is one word, 축구 안 해요 is three
    beside = not any(extra.role in ("how", "often") for extra in clause.extras)
    return (
        beside and not noun.animate and noun.kind != "name" and not clause.object.number and not clause.object.relative
    )


def _is_person(noun: Noun) -> bool:
    return noun.animate and noun.pronoun != "it"
