"""Korean predicates: a stem, the auxiliaries after it, and the ending that the level and the mood ask for."""

from __future__ import annotations

from functools import lru_cache

from heedful.data.grammar.frames import MODAL, NEGATION, TENSE, VERB, SpeechLevel, Word
from heedful.data.grammar.korean.verbs import Verb, conjugate
from heedful.data.grammar.lexicon import Predicate

FINAL = {"해요": "-아요/어요", "합쇼": "-ㅂ니다/습니다", "해": "-아/어"}
_COMMAND = {"해요": "-(으)세요", "합쇼": "-(으)십시오", "해": "-아/어"}
_WILL = {"해요": "거예요", "합쇼": "겁니다", "해": "거야"}
_LACK, _DO, _EXIST, _ELDER_EXIST, _SEE = (Verb(stem) for stem in ("없", "하", "있", "계시", "보"))
_WISH, _GIVE, _NEGATE, _STOP = Verb("싶", adjective=True), Verb("주"), Verb("않"), Verb("말")
_NEGATE_STATE, _FAIL = Verb("않", adjective=True), Verb("못하")


def final_ending(ending: str, level: SpeechLevel) -> str:
    """The ending of a statement or a question on this level; other endings stay as they are."""
    if ending == "question" and level == "합쇼":
        return "-ㅂ니까/습니까"
    return FINAL[level] if ending in ("statement", "question") else ending


@lru_cache(200_000)
def predicate_words(
    predicate: Predicate,
    ending: str,
    level: SpeechLevel,
    past: bool,
    future: bool,
    modal: str,
    negation: str,
    honorific: bool,
) -> tuple[tuple[Word, ...], str]:
    """The eojeols of a predicate with their keys, and the name of the form its own stem takes (듣다 -(으)면).

    `ending` is a connective or attributive ending, or a mood: statement, question, command, prohibition, request,
    suggestion.
    """
    chain = _Chain(predicate, honorific)
    if negation in ("안", "못") and modal != "can":
        chain.negate(negation)
    if modal == "progressive":
        chain.link("-고", _ELDER_EXIST if honorific else _EXIST, MODAL)
    elif modal == "can":
        chain.link("-(으)ㄹ", _LACK if negation else _EXIST, MODAL, honorific=honorific)
        chain.words.append(("수", MODAL))
    elif modal == "want":
        chain.link("-고", _WISH, MODAL)
    elif modal == "wants":
        chain.link("-고", _WISH, MODAL)
        chain.link("-아/어", _DO, MODAL)
    elif modal == "try":
        chain.link("-아/어", _SEE, MODAL)
    elif modal == "must":
        chain.link("-아야/어야", _DO, MODAL, honorific=honorific)
    if modal in ("can", "must"):
        chain.honorific = False
    if negation == "지":
        chain.link("-지", _NEGATE_STATE if chain.verb.adjective else _NEGATE, NEGATION)
    elif negation == "지 못":
        chain.link("-지", _FAIL, NEGATION)
    if ending == "prohibition":
        chain.link("-지", _STOP, NEGATION)
    elif ending == "request":
        chain.link("-아/어", _GIVE, MODAL)
    chain.finish(ending, level, past, future)
    return tuple(chain.words), chain.form


class _Chain:
    """A stem and the auxiliaries that follow it, each asking for the ending of the one before."""

    def __init__(self, predicate: Predicate, honorific: bool) -> None:
        before, _, _ = predicate.lemma.rpartition(" ")
        self.words: list[Word] = [(before, VERB)] if before else []
        self.lemma, self.light = predicate.lemma, predicate.light
        self.verb, self.key, self.honorific, self.form = predicate.verb, VERB, honorific, ""
        if honorific and predicate.honorific:
            self.verb, self.lemma = predicate.honorific, predicate.honorific.lemma

    def negate(self, word: str) -> None:
        if self.light:
            self.words.append((self.light, VERB))
            self.verb = _DO
        self.words.append((word, NEGATION))

    def put(self, ending: str, *, honorific: bool = False, past: bool = False) -> None:
        self.words.append((conjugate(self.verb, ending, honorific=honorific, past=past), self.key))
        if not self.form:
            marks = ("-시-" if honorific else "") + ("-었-" if past else "")
            self.form = f"{self.lemma} {marks}{ending}"

    def link(self, ending: str, following: Verb, key: int, *, honorific: bool = False) -> None:
        self.put(ending, honorific=honorific)
        self.verb, self.key = following, key

    def finish(self, ending: str, level: SpeechLevel, past: bool, future: bool) -> None:
        if future:
            self.put("-(으)ㄹ", honorific=self.honorific)
            will = "겁니까" if (ending, level) == ("question", "합쇼") else _WILL[level]
            self.words.append((will, TENSE))
        elif ending == "prohibition" and level == "해":
            self.words.append(("마", self.key))
        elif ending in ("command", "prohibition", "request"):
            self.put(_COMMAND[level])
        elif ending == "offer":
            self.put("-겠습니다", honorific=True)
            self.words[-1] = (self.words[-1][0].removesuffix("다") + "까", self.words[-1][1])
        elif ending == "suggestion":
            self.put("-(으)ㄹ까요")
            if level == "해":
                self.words[-1] = (self.words[-1][0].removesuffix("요"), self.words[-1][1])
        else:
            self.put(final_ending(ending, level), honorific=self.honorific, past=past)
