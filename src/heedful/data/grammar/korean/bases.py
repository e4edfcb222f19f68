"""The three bases of a stem, which every ending is joined to; all irregularity lives here.

    plain       before a consonant    춥고     듣고     만들고    부르고    하얗고    가고
    linked      before -(으)-         추우면   들으면   만들면    부르면    하야면    가면
    infinitive  before -아/어-        추워요   들어요   만들어요  불러요    하얘요    가요

The honorific -(으)시- and the past -았/었- make new bases out of old ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from heedful.data.grammar.korean.hangul import compose, decompose, final_sound, is_syllable, with_final

_LIGHT = "ㅏㅑㅗ"  # the vowels that -아 follows; -어 follows the others
_CONTRACTED = dict(zip("ㅏㅓㅐㅔㅕㅗㅜㅣㅚ", "ㅏㅓㅐㅔㅕㅘㅝㅕㅙ", strict=True))  # 가 + 아 → 가, 배우 + 어 → 배워
_UNCONTRACTED = ("비", "피", "기", "띠", "아니")  # 비어요, 피어요, 아니었어요
_EU_VERBS = "쓰크끄뜨트"  # verbs of their own at the end of compounds: 받아써요, 싹터요, though 모아요, 바빠요
_BRIGHT_BIEUP = ("돕", "곱")  # 도와요, 고와요; all others take 워: 추워요, 가까워요
_MERGED = {"ㅏ": "ㅐ", "ㅑ": "ㅒ", "ㅓ": "ㅔ", "ㅕ": "ㅖ"}  # 하얗다 → 하얘요, 퍼렇다 → 퍼레요
_POINTING = ("이렇", "그렇", "저렇", "어떻")  # always ㅐ: 그래요, 어때요


@dataclass(frozen=True)
class Bases:
    """What stands before a consonant, before -(으)- and before -아/어-."""

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


def bases_of(stem: str, kind: str) -> Bases:
    """The bases of a verb or adjective of this kind (see `verbs.Kind`)."""
    return Bases(stem, _linked(stem, kind), _infinitive(stem, kind))


def bases_of_copula(noun: str, *, keep_i: bool) -> Bases:
    """The bases of 이다 after a noun: 학생이-, 학생이어-; after a vowel 이 may fall: 의사(이)-, 의사여-."""
    if not noun or final_sound(noun):
        return Bases(noun + "이", noun + "이", noun + "이어")
    stem = noun + "이" if keep_i else noun
    return Bases(stem, stem, noun + "여")


def _linked(stem: str, kind: str) -> str:
    match kind:
        case "ㅂ":
            return with_final(stem, "") + "우"
        case "ㄷ":
            return with_final(stem, "ㄹ") + "으"
        case "ㅅ":
            return with_final(stem, "") + "으"
        case "ㅎ":
            return with_final(stem, "")
    return stem if decompose(stem[-1])[2] in ("", "ㄹ") else stem + "으"


def _infinitive(stem: str, kind: str) -> str:
    initial, vowel, final = decompose(stem[-1])
    a = "아" if vowel in _LIGHT else "어"
    match kind:
        case "ㅂ":
            return with_final(stem, "") + ("와" if _word(stem) in _BRIGHT_BIEUP else "워")
        case "ㄷ":
            return with_final(stem, "ㄹ") + a
        case "ㅅ":
            return with_final(stem, "") + a
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
    if vowel == "ㅡ":
        return stem[:-1] + compose(initial, _vowel_after_eu(_word(stem)))
    if vowel in _CONTRACTED and _word(stem) not in _UNCONTRACTED:
        return stem[:-1] + compose(initial, _CONTRACTED[vowel])
    return stem + a


def _vowel_after_eu(word: str) -> str:
    """ㅡ falls; the syllable before it, if the word has one, chooses the vowel: 바빠, 예뻐, 써."""
    if len(word) == 1 or word[-1] in _EU_VERBS:
        return "ㅓ"
    return "ㅏ" if decompose(word[-2])[1] in _LIGHT else "ㅓ"


def _word(stem: str) -> str:
    """The stem without the words before it: 안 쓰 → 쓰."""
    return stem.rpartition(" ")[2]
