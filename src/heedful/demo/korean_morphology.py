"""Korean morphology: syllables, particles and conjugation.

Endings and particles depend on the sound a word ends in, also for Latin words (Transformer is read 트랜스포머). A word
whose reading is not known is an error: a guess could be a wrong particle that nobody notices.

Every ending joins one of three bases of a stem; all irregularity is in how the bases are made:

    plain       before a consonant    춥고     듣고     만들고    부르고    하얗고    가고
    linked      before -(으)-         추우면   들으면   만들면    부르면    하야면    가면
    infinitive  before -아/어-        추워요   들어요   만들어요  불러요    하얘요    가요

The honorific -(으)시- and the past -았/었- make new bases out of old ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

from ..errors import unknown
from .tables import read_rows, read_yaml, split_list

# Syllables and their letters

INITIALS = tuple("ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ")
VOWELS = tuple("ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ")
FINALS = ("", *"ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ")
_FIRST, _LAST = ord("가"), ord("힣")

_TABLE = read_yaml("korean_morphology.yaml")
_LATIN_AT_END = re.compile(r"[A-Za-z]+$")


def compose(initial: str, vowel: str, final: str = "") -> str:
    """Return the syllable of these letters: ㅎ, ㅏ, ㄴ → 한."""
    try:
        index = (INITIALS.index(initial) * len(VOWELS) + VOWELS.index(vowel)) * len(FINALS) + FINALS.index(final)
    except ValueError:
        raise ValueError(f"{initial!r}, {vowel!r}, {final!r} are not the letters of a Hangul syllable") from None
    return chr(_FIRST + index)


def decompose(syllable: str) -> tuple[str, str, str]:
    """Return the initial, the vowel and the final ("" if there is none) of one syllable: 한 → ㅎ, ㅏ, ㄴ."""
    if not is_syllable(syllable):
        raise ValueError(f"{syllable!r} is not one Hangul syllable (가 to 힣)")
    rest, final = divmod(ord(syllable) - _FIRST, len(FINALS))
    initial, vowel = divmod(rest, len(VOWELS))
    return INITIALS[initial], VOWELS[vowel], FINALS[final]


def is_syllable(character: str) -> bool:
    """Return True for one composed Hangul syllable."""
    return len(character) == 1 and _FIRST <= ord(character) <= _LAST


def with_final(text: str, final: str) -> str:
    """Replace the final of the last syllable: 가 + ㅆ → 갔; "" drops it."""
    initial, vowel, _ = decompose(text[-1:])
    return text[:-1] + compose(initial, vowel, final)


def final_sound(word: str) -> str:
    """Return the final consonant the word ends in when read aloud, or "" after a vowel: 책 → ㄱ, GPU → ""."""
    if is_syllable(word[-1:]):
        return decompose(word[-1])[2]
    latin = _LATIN_AT_END.search(word)
    if latin is None:
        raise ValueError(f"no reading for the end of {word!r}; allowed: Hangul and Latin words")
    reading = latin_readings().get(latin[0].lower())
    if reading is None and latin[0].isupper():
        reading = _TABLE["letters"][word[-1]]
    if reading is None:
        raise ValueError(f"no reading for the Latin word {latin[0]!r}; add it to tables/latin_readings.tsv")
    return decompose(reading[-1])[2]


@lru_cache(1)
def latin_readings() -> dict[str, str]:
    """Return how Koreans read Latin words, by their lower-case spelling."""
    return {row["word"]: row["reading"] for row in read_rows("latin_readings.tsv", "word", "reading")}


# Particles, in the form that the last sound of their word asks for

_ALTERNATING, _WITH_I, _WITH_EU, _INVARIANT = (
    split_list(_TABLE[kind])
    for kind in ("alternating_particles", "particles_with_i", "particles_with_eu", "invariant_particles")
)
PARTICLES = (*_ALTERNATING, *_WITH_I, *_WITH_EU, *_INVARIANT)
"""Every particle `attach` knows, by the name it takes."""


@lru_cache(20_000)
def attach(word: str, particle: str) -> str:
    """Return the word with its particle: 책 + 은/는 → 책은, 서울 + (으)로 → 서울로, 저 + 이/가 → 제가."""
    if particle not in PARTICLES:
        raise ValueError(unknown("particle", particle, PARTICLES))
    before, space, last = word.rpartition(" ")
    if fused := _TABLE["fused_particles"].get(f"{last}+{particle}"):
        return f"{before}{space}{fused}"
    if particle in _INVARIANT:
        return word + particle
    sound = final_sound(word)
    if particle in _ALTERNATING:
        return word + particle.split("/")[sound == ""]
    linked = sound not in ("", "ㄹ") if particle in _WITH_EU else sound != ""
    return word + (particle[1:].replace(")", "") if linked else particle[3:])


# The bases of a stem

_CHANGED_FINALS = {"ㅂ": ("", "우"), "ㄷ": ("ㄹ", "으"), "ㅅ": ("", "으"), "ㅎ": ("", "")}  # 추우면, 들으면, 지으면
_LIGHT = "ㅏㅑㅗ"  # the vowels that -아 follows; -어 follows the others
_CONTRACTED = dict(zip("ㅏㅓㅐㅔㅕㅗㅜㅣㅚ", "ㅏㅓㅐㅔㅕㅘㅝㅕㅙ", strict=True))  # 가 + 아 → 가, 배우 + 어 → 배워
_UNCONTRACTED = ("비", "피", "기", "띠", "아니")  # 비어요, 피어요, 아니었어요
_EU_VERBS = "쓰크끄뜨트"  # verbs of their own at the end of compounds: 받아써요, 싹터요, though 모아요, 바빠요
_BRIGHT_BIEUP = ("돕", "곱")  # 도와요, 고와요; all others take 워: 추워요, 가까워요
_MERGED = {"ㅏ": "ㅐ", "ㅑ": "ㅒ", "ㅓ": "ㅔ", "ㅕ": "ㅖ"}  # 하얗다 → 하얘요, 퍼렇다 → 퍼레요
_POINTING = ("이렇", "그렇", "저렇", "어떻")  # always ㅐ: 그래요, 어때요


@dataclass(frozen=True)
class Bases:
    """The forms of a stem before a consonant, before -(으)- and before -아/어-."""

    plain: str
    linked: str
    infinitive: str

    def honorific(self) -> Bases:
        """가 → 가시, 읽 → 읽으시, 만들 → 만드시."""
        stem = join(self.linked, "시")
        return Bases(stem, stem, stem[:-1] + "셔")

    def past(self) -> Bases:
        """가 → 갔, 읽 → 읽었, 가시 → 가셨."""
        stem = with_final(self.infinitive, "ㅆ")
        return Bases(stem, stem + "으", stem + "어")

    def take(self, ending: str) -> str:
        """Join an ending to the base that its name asks for: -(으)면, -아서/어서, -ㅂ니다/습니다, -고."""
        tail = ending.removeprefix("-")
        if tail.startswith("(으)"):
            return join(self.linked, tail.removeprefix("(으)"))
        if tail.startswith("아"):
            return self.infinitive + tail.split("/")[0].removeprefix("아")
        after_vowel, _, after_consonant = tail.partition("/")
        if after_consonant and decompose(self.plain[-1])[2] not in ("", "ㄹ"):
            return join(self.plain, after_consonant)
        return join(self.plain, after_vowel)


def join(base: str, tail: str) -> str:
    """A tail after a base: a lone letter becomes the final (가 + ㄴ → 간); ㄹ falls before ㄴ, ㅂ, ㅅ, a lone ㄹ."""
    first = tail[0]
    fuses = not is_syllable(first)
    if is_syllable(base[-1]) and decompose(base[-1])[2] == "ㄹ":
        if fuses and first == "ㅁ":
            return with_final(base, "ㄻ") + tail[1:]
        if fuses or decompose(first)[0] in "ㄴㅅ":
            base = with_final(base, "")
    return with_final(base, first) + tail[1:] if fuses else base + tail


def _linked(stem: str, conjugation: str) -> str:
    if conjugation in _CHANGED_FINALS:
        final, link = _CHANGED_FINALS[conjugation]
        return with_final(stem, final) + link
    return stem if decompose(stem[-1])[2] in ("", "ㄹ") else stem + "으"


def _infinitive(stem: str, conjugation: str) -> str:
    initial, vowel, final = decompose(stem[-1])
    a = "아" if vowel in _LIGHT else "어"
    match conjugation:
        case "ㅂ":
            return with_final(stem, "") + ("와" if _word(stem) in _BRIGHT_BIEUP else "워")
        case "ㄷ" | "ㅅ":
            return with_final(stem, _CHANGED_FINALS[conjugation][0]) + a
        case "ㅎ":
            return stem[:-1] + compose(initial, "ㅐ" if stem.endswith(_POINTING) else _MERGED[vowel])
        case "르":
            return with_final(stem[:-1], "ㄹ") + ("라" if decompose(stem[-2])[1] in _LIGHT else "러")
        case "러":
            return stem + "러"
        case "우":
            return stem[:-1] + compose(initial, "ㅓ")
    if final:
        return stem + a
    if stem.endswith("하"):
        return stem[:-1] + "해"
    if vowel == "ㅡ":  # falls; the syllable before it, if the word has one, chooses the vowel: 바빠, 예뻐, 써
        word = _word(stem)
        bright = len(word) > 1 and word[-1] not in _EU_VERBS and decompose(word[-2])[1] in _LIGHT
        return stem[:-1] + compose(initial, "ㅏ" if bright else "ㅓ")
    if vowel in _CONTRACTED and _word(stem) not in _UNCONTRACTED:
        return stem[:-1] + compose(initial, _CONTRACTED[vowel])
    return stem + a


def _word(stem: str) -> str:
    """The stem without the words before it: 안 쓰 → 쓰."""
    return stem.rpartition(" ")[2]


# Conjugation: a verb or adjective, an ending, the honorific and the past

Conjugation = Literal["regular", "ㅂ", "ㄷ", "ㅅ", "ㅎ", "르", "러", "우", "이다"]
_LAST_SYLLABLE = {"르": "르", "러": "르", "우": "푸", "이다": "이"}

_WITH_TENSE, _WITHOUT_TENSE = split_list(_TABLE["tensed_endings"]), split_list(_TABLE["untensed_endings"])
_OF_SPEAKER, _OF_ACTIONS = split_list(_TABLE["endings_of_speaker"]), split_list(_TABLE["endings_of_actions"])
_OF_EXISTENCE: dict[str, str] = _TABLE["endings_of_existence"]
_OF_ADJECTIVES: dict[str, str] = {**_OF_EXISTENCE, **_TABLE["endings_of_adjectives"]}
_OF_COMMANDS: dict[str, str] = _TABLE["endings_of_commands"]
_OF_COPULA: dict[str, str] = _TABLE["endings_of_copula"]
_OF_PROHIBITION: dict[str, str] = _TABLE["endings_of_prohibition"]
_HONORIFIC_STEMS = tuple(split_list(_TABLE["honorific_stems"]))

ENDINGS = (*_WITH_TENSE, *_WITHOUT_TENSE)
"""Every ending `conjugate` knows, written as in grammars."""


@dataclass(frozen=True)
class Verb:
    """A verb or adjective: its dictionary form without 다, and the class of its irregularity.

    Stems in ㄹ and ㅡ, 하다, 되다, 아니다, 있다, 없다 and 계시다 are "regular": their shape says what to do. Words may
    stand before the stem (안 듣). The stem of 이다 begins with its noun (학생이); `copula` is shorter.
    """

    stem: str
    conjugation: Conjugation = "regular"
    adjective: bool = False

    def __post_init__(self) -> None:
        if self.conjugation not in get_args(Conjugation):
            raise ValueError(unknown("conjugation", self.conjugation, get_args(Conjugation)))
        last = self.stem[-1:]
        if not is_syllable(last) or last == "다":
            raise ValueError(f"a stem ends in Hangul and is written without 다, not {self.stem!r}")
        if self.conjugation not in ("regular", decompose(last)[2]) and last != _LAST_SYLLABLE.get(self.conjugation):
            raise ValueError(f"{self.lemma} cannot be of the conjugation {self.conjugation!r}: its stem ends in {last}")

    @property
    def lemma(self) -> str:
        return self.stem + "다"

    @property
    def is_copula(self) -> bool:
        """True for 이다, after a noun or by itself."""
        return self.conjugation == "이다" or self.stem == "이"

    @property
    def is_negative_copula(self) -> bool:
        return _word(self.stem) == "아니"

    @property
    def is_descriptive(self) -> bool:
        """True if this conjugates as adjectives do."""
        return self.adjective or self.is_copula or self.is_negative_copula

    @property
    def is_existential(self) -> bool:
        """True for 있다, 없다 and compounds (재미있다), which conjugate partly as verbs: 재미있는."""
        return self.stem.endswith(("있", "없"))


@lru_cache(20_000)
def conjugate(verb: Verb, ending: str, *, honorific: bool = False, past: bool = False) -> str:
    """Return the form of a verb with one of `ENDINGS`: 듣 + -(으)면 → 들으면, honorific 들으시면, past 들었으면."""
    if verb.stem.endswith(_HONORIFIC_STEMS):
        verb, honorific = Verb(verb.stem.removesuffix("시"), adjective=verb.adjective), True
    _check(verb, ending, honorific, past)
    if ending in _OF_COMMANDS:
        ending, honorific = _OF_COMMANDS[ending], True
    if past or (verb.is_existential and not honorific):
        ending = _OF_EXISTENCE.get(ending, ending)
    elif verb.is_existential or verb.is_descriptive:  # 재미있는 책, but 시간이 있으신 분
        ending = _OF_ADJECTIVES.get(ending, ending)

    bases = _bases(verb, ending, honorific)
    if not past and (form := _contracted_form(verb, bases, ending, honorific)):
        return form
    bases = bases.honorific() if honorific else bases
    bases = bases.past() if past else bases
    return bases.take(ending)


def copula(noun: str, ending: str, *, honorific: bool = False, past: bool = False) -> str:
    """Return a noun with 이다: 학생이에요, 의사예요, GPU였어요, 선생님이세요."""
    return conjugate(Verb(noun + "이", "이다"), ending, honorific=honorific, past=past)


def _bases(verb: Verb, ending: str, honorific: bool) -> Bases:
    stem, conjugation = verb.stem, verb.conjugation
    if not verb.is_copula:
        return Bases(stem, _linked(stem, conjugation), _infinitive(stem, conjugation))
    noun = stem[:-1]  # 학생이-, 학생이어-; after a vowel 이 may fall: 의사(이)-, 의사여-
    if not noun or final_sound(noun):
        return Bases(stem, stem, stem + "어")
    fuses = not is_syllable(ending.removeprefix("-").removeprefix("(으)")[0])
    keeps_i = not honorific and (fuses or ending == "-기")  # 의사인, 의사이기, but 의사고, 의사셔
    return Bases(stem if keeps_i else noun, stem if keeps_i else noun, noun + "여")


def _contracted_form(verb: Verb, bases: Bases, ending: str, honorific: bool) -> str | None:
    """Return a form of the present that is shorter than its parts: 가세요, 의사예요, 아니야, 가지 마."""
    if honorific:
        return join(bases.linked, "세요") if ending == "-아요/어요" else None
    if (verb.is_copula or verb.is_negative_copula) and ending in _OF_COPULA:
        i_fell = bases.plain != verb.stem
        return bases.plain + ("예요" if i_fell and ending == "-아요/어요" else _OF_COPULA[ending])
    if _word(verb.stem) == "말" and ending in _OF_PROHIBITION:
        return verb.stem.removesuffix("말") + _OF_PROHIBITION[ending]
    return None


def _check(verb: Verb, ending: str, honorific: bool, past: bool) -> None:
    if ending not in ENDINGS:
        raise ValueError(unknown("ending", ending, ENDINGS))
    if past and ending in _WITHOUT_TENSE:
        raise ValueError(f"{ending} takes no past; allowed with the past: {', '.join(_WITH_TENSE)}")
    if honorific and ending in _OF_SPEAKER:
        raise ValueError(f"{ending} speaks of oneself and takes no honorific")
    if verb.is_descriptive and ending in _OF_ACTIONS:
        raise ValueError(f"{ending} is for actions, and {verb.lemma} describes a state")
