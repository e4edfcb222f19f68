"""Kiwi, a Korean morphological analyser, joins the same morphemes and must come to the same forms."""

from typing import Any

import pytest
from kiwipiepy import Kiwi
from verb_list import VERBS

from heedful.demo.korean_morphology import ENDINGS, Verb, attach, conjugate, copula

# Kiwi's name of each ending: a final consonant is written with a letter of its own block (ᆫ, not ㄴ).
MORPHEMES = {
    "-아요/어요": "어요/EF", "-ㅂ니다/습니다": "ᆸ니다/EF", "-ㅂ니까/습니까": "ᆸ니까/EF", "-아/어": "어/EF",
    "-ㄴ다/는다": "ᆫ다/EF", "-다": "다/EF", "-(으)ㄹ까요": "ᆯ까요/EF", "-네요": "네요/EF", "-지요": "지요/EF",
    "-나요": "나요/EF", "-는군요": "는군요/EF", "-겠어요": "겠/EP 어요/EF", "-겠습니다": "겠/EP 습니다/EF",
    "-고": "고/EC", "-지만": "지만/EC", "-는데": "는데/EC", "-(으)니까": "으니까/EC", "-(으)면": "으면/EC",
    "-(으)면서": "으면서/EC", "-아야/어야": "어야/EC", "-아도/어도": "어도/EC", "-거나": "거나/EC", "-다가": "다가/EC",
    "-(으)ㄹ": "ᆯ/ETM", "-던": "던/ETM", "-지": "지/EC", "-기": "기/ETN", "-(으)ㅁ": "ᆷ/ETN", "-는": "는/ETM",
    "-(으)ㄴ": "ᆫ/ETM", "-아서/어서": "어서/EC", "-(으)세요": "으세요/EF", "-(으)십시오": "으십시오/EF",
    "-(으)ㅂ시다": "ᆸ시다/EF", "-자": "자/EF", "-(으)러": "으러/EC", "-(으)려고": "으려고/EC", "-(으)려면": "으려면/EC",
    "-(으)ㄹ게요": "ᆯ게요/EF", "-(으)ㄹ래요": "ᆯ래요/EF", "-게": "게/EC", "-도록": "도록/EC", "-자마자": "자마자/EC",
}  # fmt: skip
OF_EXISTENCE = {"-는군요": "군요/EF", "-ㄴ다/는다": "다/EF"}
OF_ADJECTIVES = OF_EXISTENCE | {"-는": "ᆫ/ETM", "-는데": "ᆫ데/EC", "-나요": "ᆫ가요/EF"}
COMMANDS = ("-(으)세요", "-(으)십시오")  # with the honorific inside

PARTICLES = {
    "은/는": "은/JX", "이/가": "이/JKS", "을/를": "을/JKO", "과/와": "과/JKB", "(으)로": "으로/JKB",
    "(이)나": "이나/JX",
    "(이)랑": "이랑/JKB", "(이)라도": "이라도/JX", "(으)로부터": "으로부터/JKB", "아/야": "아/JKV", "에서": "에서/JKB",
    "(으)로서": "으로서/JKB", "(이)든지": "이든지/JX", "(이)라고": "이라고/JKQ", "까지": "까지/JX", "의": "의/JKG",
}  # fmt: skip
NOUNS = "나무 책 밖 몫 문 곧 서울 닭 삶 여덟 밤 집 값 옷 방 낮 꽃 부엌 밭 숲 히읗 회사 학교 커피 우유 날씨".split()  # noqa: SIM905


@pytest.fixture(scope="session")
def kiwi() -> Any:
    return Kiwi(num_workers=1)


def morphemes(verb: Verb, ending: str, honorific: bool, past: bool) -> str:
    names = MORPHEMES
    if past or (verb.is_existential and not honorific):
        names = MORPHEMES | OF_EXISTENCE
    elif verb.is_existential or verb.is_descriptive:
        names = MORPHEMES | OF_ADJECTIVES
    if honorific and not past and ending == "-아요/어요":
        return names["-(으)세요"]  # Kiwi would write 가셔요, which is standard and rare
    return f"{'으시/EP ' * honorific}{'었/EP ' * past}{names[ending]}"


def joined(kiwi: Any, *parts: str) -> str:
    return kiwi.join([tuple(morpheme.rsplit("/", 1)) for part in parts for morpheme in part.split()])


def ours_as_kiwi_writes(verb: Verb, ending: str, form: str, honorific: bool, past: bool) -> str:
    """The exceptions. Kiwi's form is standard too, except for 퍼래: the standard dictionary has 퍼레."""
    if verb.stem == "피":
        return form.replace("피었", "폈").replace("피어", "펴")
    if verb.stem == "퍼렇":
        form = form.replace("퍼레", "퍼래").replace("퍼렜", "퍼랬")
    if verb.stem == "말" and ending in ("-아/어", "-아요/어요") and not honorific and not past:
        return form.replace("마", "말아")
    if verb.conjugation == "ㅎ" and ending == "-네요" and not honorific and not past:
        return conjugate(verb, "-(으)면").removesuffix("면") + "네요"  # 하야네요 beside 하얗네요
    return form


@pytest.mark.parametrize("honorific", [False, True], ids=["plain", "honorific"])
@pytest.mark.parametrize("past", [False, True], ids=["present", "past"])
def test_every_verb_with_every_ending_is_what_kiwi_joins(kiwi: Any, honorific: bool, past: bool) -> None:
    wrong, right = [], 0
    for verb in VERBS:
        tag = ("VA" if verb.adjective else "VV") + {"regular": "-R", "르": ""}.get(verb.conjugation, "-I")
        for ending in ENDINGS:
            if honorific and ending in COMMANDS:
                continue
            try:
                form = conjugate(verb, ending, honorific=honorific, past=past)
            except ValueError:
                continue  # a form that no one says; test_verbs names them
            reference = joined(kiwi, f"{verb.stem}/{tag}", morphemes(verb, ending, honorific, past))
            if ours_as_kiwi_writes(verb, ending, form, honorific, past) == reference:
                right += 1
            else:
                wrong.append((verb.lemma, ending, form, reference))
    assert not wrong
    assert right > 4000


@pytest.mark.parametrize("noun", NOUNS)
def test_the_copula_is_what_kiwi_joins(kiwi: Any, noun: str) -> None:
    verb = Verb(noun + "이", "이다")
    special = (
        "-아요/어요",
        "-아/어",
        "-아서/어서",
        "-아야/어야",
        "-아도/어도",
        "-기",
        *COMMANDS,
    )  # Kiwi: 의사어요, 의사기
    for honorific, past in ((False, False), (True, False), (False, True), (True, True)):
        for ending in ENDINGS:
            if ending in special and not past:
                continue
            try:
                form = copula(noun, ending, honorific=honorific, past=past)
            except ValueError:
                continue
            assert form == joined(kiwi, f"{noun}/NNG 이/VCP", morphemes(verb, ending, honorific, past))


@pytest.mark.parametrize("particle", PARTICLES)
def test_particles_are_what_kiwi_joins(kiwi: Any, particle: str) -> None:
    assert [attach(noun, particle) for noun in NOUNS] == [joined(kiwi, f"{n}/NNG", PARTICLES[particle]) for n in NOUNS]
