"""Conjugation: a verb or adjective, an ending, the honorific and the past."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from heedful.data.grammar.korean.bases import Bases, bases_of, bases_of_copula, join
from heedful.data.grammar.korean.hangul import decompose, is_syllable
from heedful.errors import unknown

Kind = Literal["regular", "ㅂ", "ㄷ", "ㅅ", "ㅎ", "르", "러", "우", "이다"]
_LAST_SYLLABLE = {"르": "르", "러": "르", "우": "푸", "이다": "이"}

_WITH_TENSE = (
    "-아요/어요", "-ㅂ니다/습니다", "-ㅂ니까/습니까", "-아/어", "-ㄴ다/는다", "-다", "-(으)ㄹ까요", "-네요", "-지요",
    "-나요", "-는군요", "-겠어요", "-겠습니다", "-고", "-지만", "-는데", "-(으)니까", "-(으)면", "-(으)면서",
    "-아야/어야", "-아도/어도", "-거나", "-다가", "-(으)ㄹ", "-던", "-지", "-기", "-(으)ㅁ",
)  # fmt: skip
_WITHOUT_TENSE = (
    "-는", "-(으)ㄴ", "-아서/어서", "-(으)세요", "-(으)십시오", "-(으)ㅂ시다", "-자", "-(으)러", "-(으)려고",
    "-(으)려면", "-(으)ㄹ게요", "-(으)ㄹ래요", "-게", "-도록", "-자마자",
)  # fmt: skip
_OF_SPEAKER = ("-(으)ㄹ게요", "-자")  # never honorific: they promise or join in oneself
_OF_ACTIONS = ("-(으)ㅂ시다", "-자", "-(으)러", "-(으)려고", "-(으)려면", "-(으)ㄹ게요", "-(으)ㄹ래요", "-자마자")

ENDINGS = (*_WITH_TENSE, *_WITHOUT_TENSE)
"""Every ending `conjugate` knows, written as in grammars."""

_OF_EXISTENCE = {"-는군요": "-군요", "-ㄴ다/는다": "-다"}  # also of the past, which has 있다 in it: 있군요, 갔군요
_OF_ADJECTIVES = _OF_EXISTENCE | {"-는": "-(으)ㄴ", "-는데": "-(으)ㄴ데", "-나요": "-(으)ㄴ가요"}
_OF_COMMANDS = {"-(으)세요": "-아요/어요", "-(으)십시오": "-(으)ㅂ시오"}  # with the honorific
_OF_COPULA = {"-아요/어요": "에요", "-아/어": "야", "-아서/어서": "라서"}  # 학생이에요, 아니라서
_OF_PROHIBITION = {"-아요/어요": "마요", "-아/어": "마"}  # 가지 마요

_HONORIFIC_STEMS = ("계시", "드시", "주무시", "잡수시", "편찮으시", "돌아가시")  # their 시 is the honorific one


@dataclass(frozen=True)
class Verb:
    """A verb or adjective: its dictionary form without 다, and the class of its irregularity.

    Stems in ㄹ and ㅡ, 하다, 되다, 아니다, 있다, 없다 and 계시다 are "regular": their shape says what to do. Words may
    stand before the stem (안 듣). The stem of 이다 begins with its noun (학생이); `copula` is shorter.
    """

    stem: str
    kind: Kind = "regular"
    adjective: bool = False

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ValueError(unknown("kind of verb", self.kind, get_args(Kind)))
        last = self.stem[-1:]
        if not is_syllable(last) or last == "다":
            raise ValueError(f"a stem ends in Hangul and is written without 다, not {self.stem!r}")
        if self.kind not in ("regular", decompose(last)[2]) and last != _LAST_SYLLABLE.get(self.kind):
            raise ValueError(f"{self.lemma} cannot be of the kind {self.kind!r}: its stem ends in {last}")

    @property
    def lemma(self) -> str:
        """The dictionary form."""
        return self.stem + "다"

    @property
    def word(self) -> str:
        """The stem without the words before it: 안 듣 → 듣."""
        return self.stem.rpartition(" ")[2]

    @property
    def is_copula(self) -> bool:
        """Whether this is 이다 (after a noun or alone)."""
        return self.kind == "이다" or self.stem == "이"

    @property
    def is_negative_copula(self) -> bool:
        """Whether this is 아니다."""
        return self.word == "아니"

    @property
    def describes(self) -> bool:
        """Whether this conjugates as adjectives do."""
        return self.adjective or self.is_copula or self.is_negative_copula

    @property
    def exists(self) -> bool:
        """Whether this is 있다, 없다 or a compound (재미있다), which conjugate partly as verbs: 재미있는."""
        return self.stem.endswith(("있", "없"))


def conjugate(verb: Verb, ending: str, *, honorific: bool = False, past: bool = False) -> str:
    """The form of a verb with one of `ENDINGS`: 듣 + -(으)면 → 들으면, honorific 들으시면, past 들었으면."""
    if verb.stem.endswith(_HONORIFIC_STEMS):
        verb, honorific = Verb(verb.stem.removesuffix("시"), adjective=verb.adjective), True
    _check(verb, ending, honorific, past)
    if ending in _OF_COMMANDS:
        ending, honorific = _OF_COMMANDS[ending], True
    if past or (verb.exists and not honorific):
        ending = _OF_EXISTENCE.get(ending, ending)
    elif verb.exists or verb.describes:  # 재미있는 책, but 시간이 있으신 분
        ending = _OF_ADJECTIVES.get(ending, ending)

    bases = _bases(verb, ending, honorific)
    if not past and (form := _worn_form(verb, bases, ending, honorific)):
        return form
    bases = bases.honorific() if honorific else bases
    bases = bases.past() if past else bases
    return bases.take(ending)


def copula(noun: str, ending: str, *, honorific: bool = False, past: bool = False) -> str:
    """A noun with 이다: 학생이에요, 의사예요, GPU였어요, 선생님이세요."""
    return conjugate(Verb(noun + "이", "이다"), ending, honorific=honorific, past=past)


def _bases(verb: Verb, ending: str, honorific: bool) -> Bases:
    if not verb.is_copula:
        return bases_of(verb.stem, verb.kind)
    fuses = not is_syllable(ending.removeprefix("-").removeprefix("(으)")[0])
    keep_i = not honorific and (fuses or ending == "-기")  # 의사인, 의사이기, but 의사고, 의사셔
    return bases_of_copula(verb.stem[:-1], keep_i=keep_i)


def _worn_form(verb: Verb, bases: Bases, ending: str, honorific: bool) -> str | None:
    """A form of the present that is shorter than its parts: 가세요, 의사예요, 아니야, 가지 마."""
    if honorific:
        return join(bases.linked, "세요") if ending == "-아요/어요" else None
    if (verb.is_copula or verb.is_negative_copula) and ending in _OF_COPULA:
        i_fell = bases.plain != verb.stem
        return bases.plain + ("예요" if i_fell and ending == "-아요/어요" else _OF_COPULA[ending])
    if verb.word == "말" and ending in _OF_PROHIBITION:
        return verb.stem.removesuffix("말") + _OF_PROHIBITION[ending]
    return None


def _check(verb: Verb, ending: str, honorific: bool, past: bool) -> None:
    if ending not in ENDINGS:
        raise ValueError(unknown("ending", ending, ENDINGS))
    if past and ending in _WITHOUT_TENSE:
        raise ValueError(f"{ending} takes no past; allowed with the past: {', '.join(_WITH_TENSE)}")
    if honorific and ending in _OF_SPEAKER:
        raise ValueError(f"{ending} speaks of oneself and takes no honorific")
    if verb.describes and ending in _OF_ACTIONS:
        raise ValueError(f"{ending} is for actions, and {verb.lemma} describes a state")
