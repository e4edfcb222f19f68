"""English realization: from a frame to English words, by rules.

The English is a function of the Korean; docs/corpus.md lists the rules.
"""

from dataclasses import dataclass, replace

from . import frames as f
from .english_morphology import article, comparative, in_words, participle, plural, superlative, verb_words, with_not
from .frames import CLAUSE, MODAL, NEGATION, NOTHING, VERB, Adjunct, Clause, Phrase, SentenceFrame, Token, Tokens
from .lexicon import Adverb, Noun

_POSITIONS = {"위": "on", "아래": "under", "옆": "next to", "안": "in", "앞": "in front of", "뒤": "behind"}
_PREPOSITIONS = {"with": "with", "give": "to", "than": "than"}
_ORDER = {
    "than": 0, "to": 0, "give": 0, "from": 1, "until": 2, "how": 3, "with": 4, "by": 5, "at": 6, "in": 6, "when": 9,
}  # fmt: skip
_COORDINATING, _SUBORDINATORS = ("-고", "-지만"), {"-(으)니까": "since", "-(으)면": "if"}
_COORDINATORS = {"-고": "and", "-지만": "but", "-아서/어서": "so"}
_IMPERATIVES: dict[str, Tokens] = {
    "command": (),
    "prohibition": (("don't", NEGATION),),
    "request": (("please", MODAL),),
    "suggestion": (("shall", VERB), ("we", NOTHING)),
    "offer": (("do", VERB), ("you", NOTHING), ("want", VERB), ("to", VERB)),
}


@dataclass(frozen=True)
class Style:
    """Chooses among several right answers; the default is the canonical one."""

    contracted: bool = True
    the: bool = False
    time_first: bool = False
    since: bool = False


CANONICAL = Style()


class EnglishRealizer:
    """Realizes one sentence as English words with their keys."""

    def __init__(self, sentence: SentenceFrame, style: Style = CANONICAL) -> None:
        self.mood, self.style, self.formal = sentence.mood, style, sentence.level == "합쇼"
        self.asking = self.mood in ("question", "suggestion", "offer")
        self.tokens: list[Token] = []
        self.postponed: list[Token] = []
        self.reason = sentence.reason
        before, actor = None, ""
        if self.reason and not style.since:
            self.because(*sentence.clauses)
            return
        for number, clause in enumerate(sentence.clauses):
            actor = actor if clause.shares_subject else _actor(clause)
            self.connective(before, clause, number * CLAUSE)
            self.clause(clause, number * CLAUSE, actor, before)
            before = clause
        self.tokens += self.postponed

    def because(self, reason: Clause, main: Clause) -> None:
        """Add what happened, then what was too much: The animal didn't cross the street because it was too tired."""
        actor = _actor(reason if main.shares_subject else main)
        if main.shares_subject:
            main = replace(main, subject=reason.subject)
        self.clause(main, CLAUSE, actor, None)
        self.tokens.append(("because", VERB))
        noun = reason.subject.noun if reason.subject else None
        actor = noun.pronoun if noun and noun.kind != "pronoun" else _actor(reason)
        self.clause(replace(reason, subject=None), 0, actor or "it", None)

    def text(self) -> str:
        line = " ".join([word for word, _ in self.tokens])
        return line[0].upper() + line[1:] + ("?" if self.asking else ".")

    def connective(self, before: Clause | None, clause: Clause, at: int) -> None:
        """Add the comma and conjunction between two clauses, and the conjunction that opens a clause."""
        tokens = self.tokens
        link = before.link if before else ""
        if link and not (clause.shares_subject and link in _COORDINATING):
            tokens[-1] = (tokens[-1][0] + ",", tokens[-1][1])
        since = self.style.since and self.reason is None
        if link in _COORDINATORS and not (link == "-아서/어서" and since):
            tokens.append((_COORDINATORS[link], at - CLAUSE + VERB))
        if opening := "since" if since and clause.link == "-아서/어서" else _SUBORDINATORS.get(clause.link):
            tokens.append((opening, at + VERB))

    def clause(self, clause: Clause, at: int, actor: str, before: Clause | None) -> None:
        mood = self.mood if clause.link in ("", "-고") else "statement"
        link = before.link if before else ""
        inverted = mood == "question" and clause.wh_role != "subject"
        actor = "we" if mood == "suggestion" else actor
        auxiliary, main = self.group(clause, actor, inverted)
        if mood in _IMPERATIVES:
            self.tokens += _IMPERATIVES[mood] if before is None or link != "-고" else ()
            auxiliary, main = (), tuple(_with_key(clause.predicate.english, VERB))
        elif clause.shares_subject and link in _COORDINATING:
            if before is not None and self.group(before, actor, False)[0] == auxiliary:
                auxiliary = ()  # is small but clean; will eat and sleep
        elif "exist" in clause.predicate.marks and not clause.topic:
            self.there(clause, at, inverted)
            return
        elif self.formal and is_message(clause) and mood == "statement":
            self.message(clause, at)
            return
        else:
            subject = self.subject(clause, at, actor)
            if inverted:
                self.tokens += self.question_word(clause, at, actor)
                self.tokens += _offset(auxiliary, at)
                auxiliary = ()
            elif self.style.time_first:
                for key, adjunct in clause.keyed_adjuncts(at):
                    if adjunct.role == "when" and isinstance(adjunct.constituent, Adverb):
                        self.tokens += _with_key(adjunct.constituent.english + ",", key)
            self.tokens += subject
        self.predicate_phrase(clause, at, auxiliary, main, actor)

    def group(self, clause: Clause, actor: str, inverted: bool) -> tuple[Tokens, Tokens]:
        predicate, modal = clause.predicate, clause.modal
        if clause.negation == "못":
            modal = "can"
        elif clause.now:
            modal = "progressive"
        form = clause.tense, modal, clause.negation != "", inverted, self.style.contracted
        auxiliary, main = verb_words(predicate.english, actor, *form)
        if clause.degree and not clause.is_compared:
            main = ((clause.degree, MODAL), *main)
        elif clause.degree:
            tokens = comparative(predicate.quality) if clause.degree == "more" else superlative(predicate.quality)
            main = tuple((word, MODAL if word in ("more", "most", "the") else VERB) for word in tokens)
        return auxiliary, main

    def there(self, clause: Clause, at: int, inverted: bool) -> None:
        """Add a clause of existence: There is a book on the desk; there is no book; are there three books?"""
        assert clause.subject is not None
        thing = clause.subject
        many = thing.number > 1 or thing.noun.kind == "plural"
        form = (("were" if many else "was") if clause.tense == "past" else ("are" if many else "is"), at + VERB)
        self.tokens += [form, ("there", at + VERB)] if inverted else [("there", at + VERB), form]
        if clause.negation:
            self.tokens.append(("no", at + VERB))
            self.tokens += _with_key(thing.noun.english, at + f.SUBJECT)
        else:
            self.tokens += self.phrase(thing, at + f.SUBJECT, "any" if inverted else "event", "it")
        self.adjuncts(clause, at, "it")

    def message(self, clause: Clause, at: int) -> None:
        """Add a passive: The file cannot be saved; the file has been saved."""
        assert clause.object is not None
        thing = clause.object
        many = "they" if thing.noun.kind == "plural" or thing.noun.pronoun == "they" or thing.number > 1 else "it"
        done = participle(clause.predicate.english)
        modal, negated = "can" if clause.negation == "못" else clause.modal, clause.negation != ""
        self.tokens += self.phrase(thing, at + f.OBJECT, "subject", many)
        if modal == "progressive":
            auxiliary, main = verb_words("be being", many, clause.tense, "", negated, False, False)
        elif modal != "can" and clause.tense == "past" and not clause.adjuncts:
            auxiliary = with_not("have" if many == "they" else "has", VERB, negated, False)
            main = (("been", VERB),)
        else:
            auxiliary, main = verb_words("be", many, clause.tense, modal, negated, False, False)
        self.tokens += _offset((*auxiliary, *main, (done, VERB)), at)
        self.adjuncts(clause, at, many)

    def subject(self, clause: Clause, at: int, actor: str) -> list[Token]:
        if clause.subject is None:
            return [(actor, NOTHING)]
        reference = "event" if "arises" in clause.predicate.marks else "subject"  # an error occurred
        return self.phrase(clause.subject, at + f.SUBJECT, reference, actor)

    def question_word(self, clause: Clause, at: int, actor: str) -> list[Token]:
        """Return the question word, which comes first in English, wherever it stands in Korean."""
        if clause.wh_role == "object" and clause.object:
            return self.phrase(clause.object, at + f.OBJECT, "event", actor)
        for key, adjunct in clause.keyed_adjuncts(at):
            if adjunct.role == clause.wh_role:
                thing = adjunct.constituent
                return _with_key(thing.english if isinstance(thing, Adverb) else thing.noun.english, key)
        return []

    def predicate_phrase(self, clause: Clause, at: int, auxiliary: Tokens, main: Tokens, actor: str) -> None:
        tokens = self.tokens
        tokens += _offset(auxiliary, at)
        for key, adjunct in clause.keyed_adjuncts(at):
            if adjunct.role == "often" and isinstance(adjunct.constituent, Adverb):
                tokens.append((adjunct.constituent.english, key))
        tokens += _offset(main, at)
        if clause.object and clause.wh_role != "object":
            tokens += self.phrase(clause.object, at + f.OBJECT, self.reference(clause, actor), actor)
        self.adjuncts(clause, at, actor)

    def reference(self, clause: Clause, actor: str) -> str:
        """Return how the object refers: see `noun_words`."""
        marks = clause.predicate.marks
        if self.reason and self.reason.subject and clause.object and clause.object.noun is self.reason.subject.noun:
            return "again" if self.style.since else "subject"
        if "copula" in marks and actor == "we":
            return "group"
        if "own" in marks:
            return "own"
        if "copula" in marks or "have" in marks:
            return "have"
        if clause.object and (marks & {"software", "at-hand"} or (clause.object.noun.at and "creates" not in marks)):
            return "at hand"  # places, files and lights: clean the room
        in_general = clause.predicate.english in ("like", "love") or "many" in marks
        if clause.habit or self.mood == "prohibition" or in_general:
            return "general"
        unreal = clause.negation or clause.now or clause.modal in ("progressive", "can", "try")
        return "any" if unreal or (self.mood == "question" and not clause.link) else "event"

    def adjuncts(self, clause: Clause, at: int, actor: str) -> None:
        for key, adjunct in sorted(clause.keyed_adjuncts(at), key=lambda keyed: _ORDER.get(keyed[1].role, 6)):
            front = adjunct.role == "when" and self.style.time_first and not self.asking
            if adjunct.role not in ("often", clause.wh_role) and not front:
                self.adjunct(clause, adjunct, key, actor)

    def adjunct(self, clause: Clause, adjunct: Adjunct, key: int, actor: str) -> None:
        thing, role = adjunct.constituent, adjunct.role
        if isinstance(thing, Adverb):
            tokens = thing.english
            if clause.link == "-고" and role == "when":  # one time for both: I ate and slept yesterday
                self.postponed = _with_key(tokens, key)
                return
        elif role in ("at", "in") or (role == "to" and "at" in clause.predicate.marks):
            tokens = thing.noun.at
        elif role == "to":
            tokens = thing.noun.to
        elif role in ("from", "until"):
            tokens = f"{'from' if role == 'from' else 'to'} {thing.noun.to.removeprefix('to ')}"
        elif role == "by":
            tokens = "by " + thing.noun.english
        else:
            where = key + f.POSITION if role in _POSITIONS else key
            self.tokens += _with_key(_POSITIONS.get(role) or _PREPOSITIONS.get(role, ""), where)
            self.tokens += self.phrase(thing, key, "subject", actor)
            return
        self.tokens += _with_key(tokens, key)

    def phrase(self, phrase: Phrase, key: int, reference: str, actor: str) -> list[Token]:
        """Return determiner, adjective, noun, and the relative clause."""
        tokens = noun_words(phrase, key, reference, actor, asking=self.asking, the=self.style.the)
        return tokens + self.relative(phrase.relative, key * f.NESTED, phrase.noun) if phrase.relative else tokens

    def relative(self, clause: Clause, at: int, noun: Noun) -> list[Token]:
        outer, self.tokens = self.tokens, []
        of_subject = clause.subject is None and clause.person == "other"
        self.tokens.append(("who" if of_subject and noun.animate and noun.pronoun != "it" else "that", NOTHING))
        actor = (noun.pronoun or "he") if of_subject else _actor(clause)
        if not of_subject:
            self.tokens += self.subject(clause, at, actor)
        self.predicate_phrase(clause, at, *self.group(clause, actor, False), actor)
        inner, self.tokens = self.tokens, outer
        return inner


def is_message(clause: Clause) -> bool:
    """Return True for what a program says: a software verb without a subject."""
    over = not clause.modal and (clause.tense != "present" or clause.negation == "못")
    impersonal = clause.subject is None and not clause.link and not clause.shares_subject
    return impersonal and "software" in clause.predicate.marks and (over or clause.modal in ("can", "progressive"))


def _actor(clause: Clause) -> str:
    """Return the pronoun of the subject, which decides the verb's person and possessives."""
    if clause.subject is None:
        of_it = "weather" in clause.predicate.marks or clause.person == "it"
        return "it" if of_it else "you" if clause.person == "you" else "I"
    noun = clause.subject.noun
    return noun.english if noun.kind == "pronoun" else noun.pronoun or "he"


def _with_key(text: str, key: int) -> list[Token]:
    return [(word, key) for word in text.split(" ")]


def _offset(tokens: Tokens, at: int) -> list[Token] | Tokens:
    return [(word, at + key) for word, key in tokens] if at else tokens


# Noun phrases: which determiner, which number

_POSSESSIVE = {
    "who": "their", "I": "my", "you": "your", "he": "his", "she": "her", "it": "its", "they": "their", "we": "our",
}  # fmt: skip
_MEASURES = {"잔": "cup"}
_OBJECTS = {"I": "me", "you": "you", "he": "him", "we": "us", "it": "it", "they": "them"}


def noun_words(phrase: Phrase, key: int, reference: str, actor: str, *, asking: bool, the: bool) -> list[Token]:
    """Return determiner, adjective and noun; `the` makes an event's object definite, which is right as well.

    `use` says how the noun refers: "subject" (the topic), "at hand" (the file, the light), "general" (habits and
    likings: apples), "group" (what we are: students), "again" (it), "event" (one of them: an apple, some bread),
    "any" (in a question or a negation: an apple, bread), "have" (like any, but of kin: a sister), "own" (what one
    takes off: my hat).
    """
    noun = phrase.noun
    if reference == "again" or (noun.kind == "pronoun" and reference != "subject"):
        return [(_OBJECTS[noun.pronoun], key + f.HEAD)]
    adjective = phrase.adjective.quality if phrase.adjective else ""
    part, before_noun, english = f.HEAD, "", noun.english
    if phrase.possessor:
        part, before_noun = f.DETERMINER, f"{phrase.possessor.english}'s"
    elif phrase.determiner == "how many":
        part, before_noun, english = f.NUMBER, "how many", plural(english)
    elif phrase.determiner:
        part, before_noun = f.DETERMINER, phrase.determiner
    elif phrase.number:
        part, before_noun, english = f.NUMBER, in_words(phrase.number), _with_number(phrase)
    elif phrase.relative:
        before_noun = "the"
    else:
        before_noun = _determiner(phrase, reference, actor, asking, the, adjective or english)
        if (reference, noun.kind) in (("general", "count"), ("group", "count"), ("group", "kin")):
            english = plural(english)
    tokens = _with_key(before_noun, key + part) if before_noun else []
    if adjective:
        tokens.append((adjective, key + f.ADJECTIVE))
    if " of " in english:
        measure, _, english = english.partition(" of ")
        tokens += _with_key(f"{measure} of", key + f.COUNTER)
    return tokens + _with_key(english, key + f.HEAD)


def _with_number(phrase: Phrase) -> str:
    noun, form = phrase.noun, plural if phrase.number > 1 else str
    return f"{form(_MEASURES[noun.counter])} of {noun.english}" if noun.kind == "mass" else form(noun.english)


def _determiner(phrase: Phrase, reference: str, actor: str, asking: bool, the: bool, following: str) -> str:
    kind = phrase.noun.kind
    if kind in ("name", "question", "pronoun") or (kind == "bare" and reference != "at hand"):
        return ""
    if reference == "group":
        return ""
    if kind == "kin" and reference != "have":
        return "your" if asking else "my"
    if reference == "own" or (kind == "own" and reference != "subject"):
        return _POSSESSIVE[actor]
    if kind in ("definite", "own") or reference in ("subject", "at hand"):
        return "the"
    if reference == "general" or kind in ("plural", "bare"):
        return ""
    if kind == "mass":
        return "" if reference != "event" else "the" if the else "some"
    return "the" if the and reference == "event" else article(following)
