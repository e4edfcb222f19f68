"""Korean realization: from a frame to Korean words: particles, order, and the predicate at the end."""

from dataclasses import replace
from functools import lru_cache

from . import frames as f
from .frames import CLAUSE, MODAL, NEGATION, TENSE, VERB, Adjunct, Clause, Phrase, SentenceFrame, SpeechLevel, Token
from .korean_morphology import Verb, attach, conjugate, copula
from .lexicon import Adverb, Predicate
from .numerals import with_counter

_ROLES = {
    "at": "에서", "in": "에", "to": "에", "by": "(으)로", "with": "과/와", "than": "보다", "from": "에서",
    "until": "까지",
}  # fmt: skip
_DEMONSTRATIVES = {"this": "이", "that": "그"}
_BEFORE_PLACES = ("항상", "가끔", "보통", "혼자", "같이", "왜")  # other adverbs stand before the verb
_ORDER = {"with": 1, "at": 2, "from": 3, "until": 4, "by": 5, "give": 6, "to": 7, "in": 7}
_ATTRIBUTIVE = {"past": "-(으)ㄴ", "present": "-는", "future": "-(으)ㄹ"}
_DEGREES = {"more": "더", "most": "가장", "too": "너무", "very": "아주", "really": "정말"}
_UNTENSED = ("-고", "-아서/어서", "-(으)면", *_ATTRIBUTIVE.values())
_NOT_BE, _DO_WELL = Verb("아니"), Verb("잘하")


class KoreanRealizer:
    """Realizes one sentence as Korean words with their keys, and collects the form of each predicate's stem."""

    def __init__(self, sentence: SentenceFrame) -> None:
        self.sentence, self.level = sentence, sentence.level
        self.tokens: list[Token] = []
        self.forms: list[str] = []
        self.is_familiar = self.level in ("해", "한다")
        self.me = "나" if self.is_familiar else "저"
        elder = False
        main = sentence.clauses[-1]
        if main.fronted:
            self.subject(main, (len(sentence.clauses) - 1) * CLAUSE)
        for number, clause in enumerate(sentence.clauses):
            elder = elder if clause.shares_subject else clause.has_elder_subject
            if clause.fronted or clause.drops_object:  # said before
                subject = None if clause.fronted else clause.subject
                clause = replace(clause, subject=subject, object=None if clause.drops_object else clause.object)
            self.clause(clause, number * CLAUSE, clause.link or sentence.mood, elder)

    def text(self) -> str:
        end = "?" if self.sentence.mood in ("question", "suggestion", "offer") else "."
        return " ".join([word for word, _ in self.tokens]) + end

    def clause(self, clause: Clause, at: int, ending: str, elder: bool) -> None:
        front, middle, close = _by_place(clause.keyed_adjuncts(at))
        thing, place = clause.object, 0 if clause.topic else 2 if "exist" in clause.predicate.marks else 1
        if place == 0:
            self.subject(clause, at)
        for key, adjunct in front:
            self.adjunct(adjunct, key)
        if clause.scrambled and thing:
            self.phrase(thing, at + f.OBJECT, clause.predicate.particle)
        if place == 1:
            self.subject(clause, at)
        for key, adjunct in middle:
            self.adjunct(adjunct, key)
        if place == 2:
            self.subject(clause, at)
        if "copula" in clause.predicate.marks:
            self.copula(clause, at, ending, elder)
            return
        if thing and not clause.scrambled:
            self.phrase(thing, at + f.OBJECT, "" if clause.drops_particle else clause.predicate.particle)
        start = len(self.tokens)
        well = next((key for key, adjunct in close if _merges_with_do(adjunct, clause)), None)
        for key, adjunct in close:
            if key != well:
                self.adjunct(adjunct, key)
        end = len(self.tokens)
        if well is None:
            self.predicate(clause, at, ending, elder)
        else:
            self.do_well(clause, at, ending, elder, well)
        if close and " " in clause.predicate.lemma:  # 비가 많이 와요
            self.tokens[start : end + 1] = [self.tokens[end], *self.tokens[start:end]]

    def predicate(self, clause: Clause, at: int, ending: str, elder: bool) -> None:
        honorific, past = self.honorific_and_past(clause, ending, elder)
        future = clause.tense == "future" and ending in ("statement", "question")
        modal = "wants" if clause.modal == "want" and clause.person == "other" else clause.modal
        predicate, negation = clause.predicate, str(clause.negation)
        if predicate.light and clause.object and negation in ("안", "못") and modal != "can":
            negation = "지" if negation == "안" else "지 못"  # 수학을 공부하지 않아요
        if clause.degree:
            self.tokens.append((_DEGREES[clause.degree], at + MODAL))
        if ending == "command" and predicate.honorific:
            honorific = True
        tokens, form = predicate_words(predicate, ending, self.level, past, future, modal, negation, honorific)
        self.tokens += [(word, at + key) for word, key in tokens] if at else tokens
        self.forms.append(form)

    def honorific_and_past(self, clause: Clause, ending: str, elder: bool) -> tuple[bool, bool]:
        asked_politely = self.level == "합쇼" and ending == "question" and clause.person == "you"
        return elder or asked_politely, clause.tense == "past" and ending not in _UNTENSED

    def do_well(self, clause: Clause, at: int, ending: str, elder: bool, adverb: int) -> None:
        """Add 축구를 잘해요, 수영을 잘해요: 잘 and 하다 are one word; *well* aligns with it beside a noun."""
        predicate = clause.predicate
        if predicate.light:
            self.tokens.append((attach(predicate.light, "을/를"), at + VERB))
        start = len(self.tokens)
        self.predicate(replace(clause, predicate=_do_well_predicate(predicate)), at, ending, elder)
        if predicate.light:
            self.tokens[start] = (self.tokens[start][0], adverb)

    def copula(self, clause: Clause, at: int, ending: str, elder: bool) -> None:
        assert clause.object is not None
        final = final_ending(ending, self.level)
        honorific, past = self.honorific_and_past(clause, ending, elder)
        if clause.negation:
            self.phrase(clause.object, at + f.OBJECT, "이/가")
            self.tokens.append((conjugate(_NOT_BE, final, honorific=honorific, past=past), at + VERB))
            return
        self.phrase(clause.object, at + f.OBJECT, "")
        noun, key = self.tokens[-1]
        self.tokens[-1] = (copula(noun, final, honorific=honorific, past=past), key)

    def subject(self, clause: Clause, at: int) -> None:
        if clause.subject is None:
            return
        noun, particle, key = clause.subject.noun, "은/는" if clause.topic else "이/가", at + f.SUBJECT
        self.phrase(clause.subject, key, ("께서는" if clause.topic else "께서") if noun.elder else particle)

    def adjunct(self, adjunct: Adjunct, key: int) -> None:
        thing = adjunct.constituent
        if isinstance(thing, Adverb):
            self.tokens += [(word, key) for word in thing.korean.split(" ")]
        elif adjunct.role == "give":
            self.phrase(thing, key, "께" if thing.noun.elder else "에게" if self.level == "합쇼" else "한테")
        elif adjunct.role in _ROLES:
            self.phrase(thing, key, _ROLES[adjunct.role])
        else:  # a position: 책상 위에
            self.phrase(thing, key, "")
            self.tokens.append((adjunct.role + "에", key + f.POSITION))

    def phrase(self, phrase: Phrase, key: int, particle: str) -> None:
        """Add modifiers, the noun, its number and counter; the particle goes on the last word."""
        noun, tokens = phrase.noun, self.tokens
        if phrase.relative:
            relative = phrase.relative
            self.clause(relative, key * f.NESTED, _ATTRIBUTIVE[relative.tense], relative.has_elder_subject)
        if phrase.possessor:
            tokens.append((attach(phrase.possessor.korean, "의"), key + f.DETERMINER))
        elif phrase.determiner and phrase.determiner != "how many":
            mine = "내" if self.is_familiar else "제"
            tokens.append((_DEMONSTRATIVES.get(phrase.determiner, mine), key + f.DETERMINER))
        if phrase.adjective:
            tokens.append((conjugate(phrase.adjective.verb, "-는"), key + f.ADJECTIVE))
        if noun.kind == "pronoun":
            tokens.append((attach(self.me if noun.english == "I" else noun.korean, particle), key))
            return
        korean = "뭐" if noun.korean == "무엇" and self.level != "합쇼" else noun.korean
        if phrase.number or phrase.determiner == "how many":
            tokens += [(word, key + f.HEAD) for word in korean.split(" ")]
            tokens.append((_number(phrase.number, noun.counter), key + f.NUMBER))
            tokens.append((attach(noun.counter, particle) if particle else noun.counter, key + f.COUNTER))
            return
        if korean == "뭐" and particle == "을/를":
            particle = ""
        text = attach(korean, particle) if particle else korean
        tokens += [(word, key + f.HEAD) for word in text.split(" ")]


@lru_cache(1000)
def _number(n: int, counter: str) -> str:
    return with_counter(n, counter).split(" ")[0] if n else "몇"


@lru_cache(1000)
def _do_well_predicate(predicate: Predicate) -> Predicate:
    return replace(predicate, verb=_DO_WELL, light="")


def _merges_with_do(adjunct: Adjunct, clause: Clause) -> bool:
    """Return True for 잘 with 하다, or with a noun + 하다 that has no other object."""
    plain = clause.predicate.lemma == "하다" or (clause.predicate.light != "" and clause.object is None)
    return plain and isinstance(adjunct.constituent, Adverb) and adjunct.constituent.korean == "잘"


Placed = list[tuple[int, Adjunct]]


def _by_place(adjuncts: Placed) -> tuple[Placed, Placed, Placed]:
    """Return the adjuncts that open the clause (times), those before the object, and those before the verb."""
    places: tuple[Placed, Placed, Placed] = ([], [], [])
    for key, adjunct in adjuncts:
        thing = adjunct.constituent
        if isinstance(thing, Adverb) and thing.korean not in _BEFORE_PLACES:
            places[0 if thing.slot == "when" else 2].append((key, adjunct))
        else:
            places[1].append((key, adjunct))
    places[1].sort(key=lambda placed: _ORDER.get(placed[1].role, 0))
    return places


# Predicates: a stem, the auxiliaries after it, and the ending that the level and the mood ask for

_FINAL = {"해요": "-아요/어요", "합쇼": "-ㅂ니다/습니다", "해": "-아/어", "한다": "-ㄴ다/는다"}
_COMMAND = {"해요": "-(으)세요", "합쇼": "-(으)십시오", "해": "-아/어"}
_WILL = {"해요": "거예요", "합쇼": "겁니다", "해": "거야", "한다": "것이다"}
_LACK, _DO, _EXIST, _ELDER_EXIST, _SEE = (Verb(stem) for stem in ("없", "하", "있", "계시", "보"))
_WISH, _GIVE, _NEGATE, _STOP = Verb("싶", adjective=True), Verb("주"), Verb("않"), Verb("말")
_NEGATE_STATE, _FAIL = Verb("않", adjective=True), Verb("못하")
_AUXILIARIES = {"want": [("-고", _WISH)], "wants": [("-고", _WISH), ("-아/어", _DO)], "try": [("-아/어", _SEE)]}


def final_ending(ending: str, level: SpeechLevel) -> str:
    """Return the ending of a statement or a question on this level; other endings stay as they are."""
    if (ending, level) == ("question", "합쇼"):
        return "-ㅂ니까/습니까"
    return _FINAL[level] if ending in ("statement", "question") else ending


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
) -> tuple[tuple[Token, ...], str]:
    """Return the eojeols of a predicate with their keys, and the name of the form of its stem (듣다 -(으)면).

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
        chain.tokens.append(("수", MODAL))
    elif modal == "must":
        chain.link("-아야/어야", _DO, MODAL, honorific=honorific)
    for connective, auxiliary in _AUXILIARIES.get(modal, ()):
        chain.link(connective, auxiliary, MODAL)
    chain.honorific = honorific and modal not in ("can", "must")
    if negation == "지":
        chain.link("-지", _NEGATE_STATE if chain.verb.adjective else _NEGATE, NEGATION)
    elif negation == "지 못":
        chain.link("-지", _FAIL, NEGATION)
    if ending == "prohibition":
        chain.link("-지", _STOP, NEGATION)
    elif ending == "request":
        chain.link("-아/어", _GIVE, MODAL)
    chain.finish(ending, level, past, future)
    return tuple(chain.tokens), chain.form


class _Chain:
    """A stem and the auxiliaries after it, each of which selects the ending of the one before."""

    def __init__(self, predicate: Predicate, honorific: bool) -> None:
        before, _, _ = predicate.lemma.rpartition(" ")
        self.tokens: list[Token] = [(before, VERB)] if before else []
        self.lemma, self.light = predicate.lemma, predicate.light
        self.verb, self.key, self.honorific, self.form = predicate.verb, VERB, honorific, ""
        if honorific and predicate.honorific:
            self.verb, self.lemma = predicate.honorific, predicate.honorific.lemma

    def negate(self, word: str) -> None:
        if self.light:
            self.tokens.append((self.light, VERB))
            self.verb = _DO
        self.tokens.append((word, NEGATION))

    def put(self, ending: str, *, honorific: bool = False, past: bool = False) -> None:
        self.tokens.append((conjugate(self.verb, ending, honorific=honorific, past=past), self.key))
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
            self.tokens.append((will, TENSE))
        elif ending == "prohibition" and level == "해":
            self.tokens.append(("마", self.key))
        elif ending in ("command", "prohibition", "request"):
            self.put(_COMMAND[level])
        elif ending == "offer":
            self.put("-겠습니다", honorific=True)
            self.tokens[-1] = (self.tokens[-1][0].removesuffix("다") + "까", self.tokens[-1][1])
        elif ending == "suggestion":
            self.put("-(으)ㄹ까요")
            if level == "해":
                self.tokens[-1] = (self.tokens[-1][0].removesuffix("요"), self.tokens[-1][1])
        else:
            self.put(final_ending(ending, level), honorific=self.honorific, past=past)
