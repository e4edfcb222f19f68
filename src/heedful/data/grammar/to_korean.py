"""From a frame to Korean words: particles, order, and the predicate at the end."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from heedful.data.grammar import frames as f
from heedful.data.grammar.frames import CLAUSE, EXTRAS, NESTED, OBJECT, SUBJECT, Clause, Extra, Phrase, Sentence, Word
from heedful.data.grammar.korean import numbers
from heedful.data.grammar.korean.particles import attach as attach_slowly
from heedful.data.grammar.korean.verbs import Verb, conjugate, copula
from heedful.data.grammar.korean_predicates import final_ending, predicate_words
from heedful.data.grammar.lexicon import Adverb, Predicate

_ROLES = {
    "at": "에서", "in": "에", "to": "에", "by": "(으)로", "with": "과/와", "than": "보다", "from": "에서",
    "until": "까지",
}  # fmt: skip
_POINTERS = {"this": "이", "that": "그"}
_BEFORE_PLACES = ("항상", "가끔", "보통", "혼자", "같이", "왜")  # other adverbs stand before the verb
_ORDER = {"with": 1, "at": 2, "from": 3, "until": 4, "by": 5, "give": 6, "to": 7, "in": 7}
_ATTRIBUTIVE = {"past": "-(으)ㄴ", "present": "-는", "future": "-(으)ㄹ"}
_UNTENSED = ("-고", "-아서/어서", "-(으)면", *_ATTRIBUTIVE.values())
_NOT_BE, _DO_WELL = Verb("아니"), Verb("잘하")

attach = lru_cache(20_000)(attach_slowly)


class KoreanWriter:
    """Writes one sentence: the words with their keys, and the form each predicate's stem takes."""

    def __init__(self, sentence: Sentence) -> None:
        self.sentence, self.level = sentence, sentence.level
        self.words: list[Word] = []
        self.forms: list[str] = []
        self.me = "나" if self.level == "해" else "저"
        elder = False
        for number, clause in enumerate(sentence.clauses):
            elder = elder if clause.shared else _is_elder(clause)
            self.clause(clause, number * CLAUSE, clause.link or sentence.mood, elder)

    def text(self) -> str:
        """The sentence, with its punctuation."""
        end = "?" if self.sentence.mood in ("question", "suggestion", "offer") else "."
        return " ".join([word for word, _ in self.words]) + end

    def clause(self, clause: Clause, at: int, ending: str, elder: bool) -> None:
        front, middle, close = _by_place(clause.extras)
        subject, thing = clause.subject, clause.object
        if subject and clause.topic:
            self.subject(subject, at + SUBJECT, True)
            subject = None
        for place, extra in front:
            self.extra(extra, at + EXTRAS + 10 * place)
        if clause.scrambled and thing:
            self.phrase(thing, at + OBJECT, clause.predicate.particle)
        if subject and "exist" not in clause.predicate.marks:
            self.subject(subject, at + SUBJECT, clause.topic)
            subject = None
        for place, extra in middle:
            self.extra(extra, at + EXTRAS + 10 * place)
        if subject:
            self.subject(subject, at + SUBJECT, clause.topic)
        if "copula" in clause.predicate.marks:
            self.copula(clause, at, ending, elder)
            return
        if thing and not clause.scrambled:
            self.phrase(thing, at + OBJECT, "" if clause.bare_object else clause.predicate.particle)
        start = len(self.words)
        well = next((place for place, extra in close if _is_done_well(extra, clause)), None)
        for place, extra in close:
            if place != well:
                self.extra(extra, at + EXTRAS + 10 * place)
        end = len(self.words)
        if well is None:
            self.predicate(clause, at, ending, elder)
        else:
            self.do_well(clause, at, ending, elder, EXTRAS + 10 * well)
        if close and " " in clause.predicate.lemma:  # 비가 많이 와요
            self.words[start : end + 1] = [self.words[end], *self.words[start:end]]

    def predicate(self, clause: Clause, at: int, ending: str, elder: bool) -> None:
        honorific = elder or (self.level == "합쇼" and ending == "question" and clause.person == "you")
        past = clause.tense == "past" and ending not in _UNTENSED
        future = clause.tense == "future" and ending in ("statement", "question")
        modal = "wants" if clause.modal == "want" and clause.person == "other" else clause.modal
        predicate, negation = clause.predicate, str(clause.negation)
        if predicate.light and clause.object and negation in ("안", "못") and modal != "can":
            negation = "지" if negation == "안" else "지 못"  # 수학을 공부하지 않아요
        if clause.degree:
            self.words.append(("더" if clause.degree == "more" else "가장", at + f.MODAL))
        if ending == "command" and predicate.honorific:
            honorific = True
        words, form = predicate_words(predicate, ending, self.level, past, future, modal, negation, honorific)
        self.words += [(word, at + key) for word, key in words] if at else words
        self.forms.append(form)

    def do_well(self, clause: Clause, at: int, ending: str, elder: bool, adverb: int) -> None:
        """축구를 잘해요, 수영을 잘해요: 잘 and 하다 are one word, which says *well* where a noun says the verb."""
        predicate = clause.predicate
        if predicate.light:
            self.words.append((attach(predicate.light, "을/를"), at + f.VERB))
        start = len(self.words)
        self.predicate(replace(clause, predicate=_done_well(predicate)), at, ending, elder)
        if predicate.light:
            self.words[start] = (self.words[start][0], at + adverb)

    def copula(self, clause: Clause, at: int, ending: str, elder: bool) -> None:
        assert clause.object is not None
        final = final_ending(ending, self.level)
        past = clause.tense == "past" and ending not in _UNTENSED
        honorific = elder or (self.level == "합쇼" and ending == "question" and clause.person == "you")
        if clause.negation:
            self.phrase(clause.object, at + OBJECT, "이/가")
            self.words.append((conjugate(_NOT_BE, final, honorific=honorific, past=past), at + f.VERB))
            return
        self.phrase(clause.object, at + OBJECT, "")
        noun, key = self.words[-1]
        self.words[-1] = (copula(noun, final, honorific=honorific, past=past), key)

    def subject(self, phrase: Phrase, key: int, topic: bool) -> None:
        noun = phrase.noun
        if noun.elder:
            self.phrase(phrase, key, "께서는" if topic else "께서")
        elif noun.kind == "pronoun":
            word = self.me if noun.english == "I" else noun.korean
            self.words.append((attach(word, "은/는" if topic else "이/가"), key))
        else:
            self.phrase(phrase, key, "은/는" if topic else "이/가")

    def extra(self, extra: Extra, key: int) -> None:
        thing = extra.thing
        if isinstance(thing, Adverb):
            self.words += [(word, key) for word in thing.korean.split(" ")]
        elif extra.role == "give":
            self.phrase(thing, key, "께" if thing.noun.elder else "에게" if self.level == "합쇼" else "한테")
        elif extra.role in _ROLES:
            self.phrase(thing, key, _ROLES[extra.role])
        else:  # a position: 책상 위에
            self.phrase(thing, key, "")
            self.words.append((extra.role + "에", key + f.RELATION))

    def phrase(self, phrase: Phrase, key: int, particle: str) -> None:
        """What stands before the noun, the noun, its number and counter; the particle on the last of them."""
        noun, words = phrase.noun, self.words
        if phrase.relative:
            relative = phrase.relative
            self.clause(relative, key * NESTED, _ATTRIBUTIVE[relative.tense], _is_elder(relative))
        if phrase.owner:
            words.append((attach(phrase.owner.korean, "의"), key + f.POINTER))
        elif phrase.pointer and phrase.pointer != "how many":
            mine = "내" if self.level == "해" else "제"
            words.append((_POINTERS.get(phrase.pointer, mine), key + f.POINTER))
        if phrase.adjective:
            words.append((_attributive(phrase.adjective.verb), key + f.ADJECTIVE))
        korean = _asking_what(self.level) if noun.korean == "무엇" else noun.korean
        if phrase.number or phrase.pointer == "how many":
            words += [(word, key + f.HEAD) for word in korean.split(" ")]
            number = _number(phrase.number, noun.counter)
            words.append((number, key + f.NUMBER))
            words.append((attach(noun.counter, particle) if particle else noun.counter, key + f.COUNTER))
            return
        if korean == "뭐" and particle == "을/를":
            particle = ""
        text = attach(korean, particle) if particle else korean
        words += [(word, key + f.HEAD) for word in text.split(" ")] if " " in text else [(text, key + f.HEAD)]


@lru_cache(1000)
def _number(n: int, counter: str) -> str:
    return numbers.counted(n, counter).split(" ")[0] if n else "몇"


@lru_cache(1000)
def _done_well(predicate: Predicate) -> Predicate:
    return replace(predicate, verb=_DO_WELL, light="")


def _is_done_well(extra: Extra, clause: Clause) -> bool:
    """잘 beside 하다, or beside a noun with 하다 that has no other object."""
    plain = clause.predicate.lemma == "하다" or (clause.predicate.light != "" and clause.object is None)
    return plain and isinstance(extra.thing, Adverb) and extra.thing.korean == "잘"


@lru_cache(1000)
def _attributive(verb: Verb) -> str:
    return conjugate(verb, "-는")


def _asking_what(level: str) -> str:
    return "무엇" if level == "합쇼" else "뭐"


def _is_elder(clause: Clause) -> bool:
    return clause.subject is not None and clause.subject.noun.elder


Placed = list[tuple[int, Extra]]


def _by_place(extras: list[Extra]) -> tuple[Placed, Placed, Placed]:
    """The extras that open the clause (times), those before the object, and those before the verb."""
    front: Placed = []
    middle: Placed = []
    close: Placed = []
    for place, extra in enumerate(extras):
        thing = extra.thing
        if not isinstance(thing, Adverb) or thing.korean in _BEFORE_PLACES:
            middle.append((place, extra))
        elif thing.slot == "when":
            front.append((place, extra))
        else:
            close.append((place, extra))
    if len(middle) > 1:
        middle.sort(key=lambda placed: _ORDER.get(placed[1].role, 0))
    return front, middle, close
