"""Each rule of sense: what it refuses, beside the nearest thing that it allows."""

# ruff: noqa: E501 (tables: one rule a line)

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from heedful.demo import inventory
from heedful.demo.frames import Adjunct, Clause, Phrase, SentenceFrame
from heedful.demo.inventory import draw_until
from heedful.demo.lexicon import (
    COPULA,
    EXIST,
    HAVE,
    HAVE_NOT,
    HOW,
    WHAT,
    WHEN,
    WHO,
    WHY,
    Noun,
    Predicate,
    lexicon,
)
from heedful.demo.numerals import at_time, between_clocks, between_days, clock, date
from heedful.demo.semantics import is_felicitous, max_count, satisfies_restrictions
from heedful.demo.sentences import SentenceSampler
from heedful.errors import DataError

WORDS = lexicon("full")
NAMED = {time.korean: time for time in WORDS.times} | WORDS.adverbs
PLACED = ("at", "to", "in", "by", "company", "than")


def noun(korean: str) -> Noun:
    return WORDS.nouns[korean]


def verb(english: str) -> Predicate:
    everything = (*WORDS.verbs, *WORDS.motion, *WORDS.transfer, *WORDS.weather, *WORDS.adjectives)
    return next(predicate for predicate in everything if predicate.english == english)


def said(what: str | Predicate, thing: str | Phrase = "", who: str | Phrase = "", **rest: Any) -> Clause:
    """A clause: `when`, `how` and `often` name adverbs, `at`, `to` and the like name nouns; the rest are fields."""
    clause = Clause(verb(what) if isinstance(what, str) else what, person="other" if who else "I")
    clause.object = Phrase(noun(thing)) if isinstance(thing, str) and thing else thing or None
    clause.subject = Phrase(noun(who)) if isinstance(who, str) and who else who or None
    for name, value in rest.items():
        if name in PLACED:
            clause.adjuncts.append(Adjunct("with" if name == "company" else name, Phrase(noun(value))))
        elif name in ("when", "how", "often", "why"):
            clause.adjuncts.append(Adjunct(name, NAMED[value] if isinstance(value, str) else value))
        else:
            setattr(clause, name, value)
    return clause


def past(*words: Any, **rest: Any) -> Clause:
    return said(*words, tense="past", **rest)


def some(korean: str, **how: Any) -> Phrase:
    return Phrase(noun(korean), **how)


OF_CLAUSES: dict[str, tuple[Clause, Clause]] = {
    "a job has its own work": (past("bake", "빵", "변호사"), past("bake", "빵", "요리사")),
    "a job's habits say something": (said("eat", "빵", "의사", habit=True), past("eat", "빵", "의사")),
    "jobs are not at home": (
        said(EXIST, who="과학자", topic=True, **{"in": "부엌"}),
        said(EXIST, who="아이", topic=True, **{"in": "부엌"}),
    ),
    "furniture has its room": (said(EXIST, who="침대", **{"in": "교실"}), said(EXIST, who="침대", **{"in": "방"})),
    "the old do not run": (past("run", who="할머니"), past("run", who="누나")),
    "animals have no plans": (said("sleep", who="고양이", tense="future"), past("sleep", who="고양이")),
    "pets are not at the zoo": (past("sleep", who="개", at="동물원"), past("sleep", who="사자", at="동물원")),
    "rabbits eat no meat": (past("eat", "고기", "토끼"), past("eat", "고기", "호랑이")),
    "wolves eat no fish": (past("eat", "생선", "늑대"), past("eat", "생선", "곰")),
    "lions drink no milk": (past("drink", "우유", "사자"), past("drink", "우유", "고양이")),
    "nobody chases a turtle": (past("chase", "거북이", "사자"), past("chase", "토끼", "사자")),
    "ducks are not said to walk": (past("walk", who="오리", at="동물원"), past("walk", who="곰", at="동물원")),
    "배우셨어요 is read as learned": (said(COPULA, "배우", "어머니"), said(COPULA, "의사", "어머니")),
    "people are met at times": (said("meet", "민수", habit=True), said("meet", "민수", habit=True, often="자주")),
    "strangers are met once": (said("wait for", "학생", negation="안", tense="past"), past("wait for", "학생")),
    "what is given often": (
        said("send", "파일", habit=True, often="자주"),
        said("send", "돈", habit=True, often="자주", company="민수"),
    ),
    "what a job needs": (said(HAVE, "개", "학생"), said(HAVE, "시간", "학생")),
    "men wear no skirts": (past("wear", "치마", "민수"), past("wear", "치마", "유나")),
    "hands are not washed in the kitchen": (past("wash", "손", at="부엌"), past("wash", "손", at="화장실")),
    "what is bought again and again": (said("buy", "코트", habit=True, often="자주"), said("buy", "빵", habit=True, often="자주")),
    "animals are seen, not looked at": (said("see", "별", tense="future"), past("see", "별")),
    "text messages need no library": (past("read", "문자", at="도서관"), past("read", "책", at="도서관")),
    "what a restaurant serves": (past("eat", "사탕", at="식당"), past("eat", "피자", at="식당")),
    "who sells": (past("sell", "계란", "민수"), past("sell", "계란", "농부")),
    "what is lost is one's own": (past("lose", some("표", determiner="this")), past("lose", "표")),
    "weather is of the day": (said("be cold", when="지난주에", tense="past"), said("be cold", when="어제", tense="past")),
    "a habit is lasting or often": (said("open", "문", habit=True), said("study", "영어", habit=True)),
    "meals have no clock": (past("eat", "점심", when=at_time("at", clock(3, 0))), past("eat", "빵", when=at_time("at", clock(3, 0)))),
    "small things have no date": (past("wash", "손", when=at_time("on", date(3, 1))), past("meet", "민수", when=at_time("on", date(3, 1)))),
    "next year is for great things": (said("wash", "손", when="내년에", tense="future"), said("travel", when="내년에", tense="future")),
    "just now": (past("travel", when="방금"), past("arrive", to="서울", when="방금")),
    "no trip in an afternoon": (past("travel", when="오후에"), past("travel", when="작년에")),
    "nothing arrives every day": (said("receive", "편지", habit=True, when="매일"), said("read", "신문", habit=True, when="매일")),
    "nobody sleeps for days": (past("sleep", when=between_days(NAMED["월요일에"], NAMED["화요일에"])), past("work", when=between_days(NAMED["월요일에"], NAMED["화요일에"]))),
    "nobody reads a text message for hours": (past("read", "문자", when=between_clocks(1, 3)), past("read", "소설", when=between_clocks(1, 3))),
    "what is wanted": (said("wash", "손", modal="want"), said("eat", "빵", modal="want")),
    "what can be done": (said("cry", modal="can"), said("swim", modal="can")),
    "what must be done": (said("laugh", modal="must"), said("work", modal="must")),
    "what one cannot do": (past("laugh", negation="못"), past("sleep", negation="못")),
    "what goes on": (said("invite", "민수", modal="progressive"), said("eat", "빵", modal="progressive")),
    "likes are not over": (past("like", "피자"), said("like", "피자", habit=True)),
    "what one had": (past(HAVE, "자전거"), past(HAVE, "시험")),
    "nobody plans to cry": (said("cry", tense="future"), past("cry")),
    "who did not is not with whom": (past("rest", negation="안", company="민수"), past("rest", company="민수")),
    "one has no questions": (said(HAVE_NOT, "질문", negation="lexical"), said(HAVE_NOT, "시간", negation="lexical")),
    "what one refuses": (said("wash", "손", negation="안", tense="future"), said("eat", "빵", negation="안", tense="future")),
    "what was tried": (past("eat", "사과", modal="try"), past("eat", "김치", modal="try")),
    "scrambled, little else is said": (past("eat", "빵", "민수", scrambled=True, at="집"), past("eat", "빵", "민수", scrambled=True)),
    "what is compared": (said("be expensive", who="책", degree="more", than="사과"), said("be expensive", who="귤", degree="more", than="사과")),
    "a skill is no single event": (past("swim", how="잘"), said("swim", how="잘", habit=True)),
    "alone or with somebody": (past("exercise", how="혼자", company="민수"), past("exercise", how="혼자")),
    "nobody must be late": (said("come", to="학교", how="늦게", modal="must"), said("come", to="학교", how="일찍", modal="must")),
    "a habit is not again": (said("read", "책", habit=True, how="다시"), past("read", "책", how="다시")),
    "no bus to the corner": (past("go", to="편의점", by="버스"), past("go", to="공항", by="버스")),
    "not too much at once": (past("eat", "빵", at="집", when="어제", how="천천히"), past("eat", "빵", at="집", when="어제")),
    "what is eaten has a taste": (past("eat", some("사과", adjective=verb("be big"))), past("eat", some("사과", adjective=verb("be sweet")))),
    "what is counted": (past("wear", some("셔츠", number=3)), past("buy", some("셔츠", number=3))),
    "this money": (said(COPULA, "선물", some("돈", determiner="this")), said(COPULA, "선물", some("책", determiner="this"))),
    "my sky": (said("be bright", who=some("하늘", determiner="my")), said("be big", who=some("방", determiner="my"))),
}  # fmt: skip


@pytest.mark.parametrize("rule", OF_CLAUSES)
def test_clauses(rule: str) -> None:
    refused, allowed = OF_CLAUSES[rule]
    assert not satisfies_restrictions(refused)
    assert satisfies_restrictions(allowed)


def test_relative_clauses_lead_to_what_is_said() -> None:
    def cake(inner: str, quality: str, **how: Any) -> Clause:
        return said(f"be {quality}", who=some("케이크", relative=past(inner, who="민수")), **how)

    assert not satisfies_restrictions(cake("make", "expensive"))
    assert satisfies_restrictions(cake("make", "delicious"))
    assert not satisfies_restrictions(cake("eat", "delicious")), "what was eaten was delicious"
    assert satisfies_restrictions(cake("eat", "delicious", tense="past"))

    def reader(person: str) -> Clause:
        inner = Clause(verb("read"), object=some("책"), now=True)
        return said("be kind", who=some(person, relative=inner))

    assert not satisfies_restrictions(reader("소방관"))
    assert satisfies_restrictions(reader("학생"))


def test_what_is_counted_has_a_limit() -> None:
    assert [max_count(noun("사과"), verb) for verb in ("buy", "eat", "wear")] == [10, 3, 0]
    assert max_count(noun("자동차"), "buy") == 2


def spoken(mood: str, *clauses: Clause, level: str = "해요") -> bool:
    return is_felicitous(SentenceFrame(level, mood, list(clauses)))  # type: ignore[arg-type]


def asked(what: str, role: str, word: Any, *words: Any, **rest: Any) -> Clause:
    clause = said(what, *words, wh_role=role, **rest)
    if role not in ("object", "subject"):
        clause.adjuncts.insert(0, Adjunct(role, word))
    else:
        setattr(clause, role, Phrase(word))
    return clause


OF_MOODS: dict[str, tuple[str, Clause, Clause]] = {
    "what is asked for": ("question", asked("wash", "object", WHAT, tense="past"), asked("eat", "object", WHAT, tense="past")),
    "who is asked for": ("question", asked("see", "object", WHO, tense="past"), asked("meet", "object", WHO, tense="past")),
    "when": ("question", asked("laugh", "when", WHEN, tense="past"), asked("come", "when", WHEN, tense="past", to="서울")),
    "why": ("question", asked("swim", "why", WHY, tense="past"), asked("cry", "why", WHY, tense="past")),
    "how one goes": ("question", asked("go", "how", HOW, tense="past", to="서울", company="민수"), asked("go", "how", HOW, tense="past", to="서울")),
    "who does": ("question", asked("cry", "subject", WHO, habit=True), asked("like", "subject", WHO, "피자", habit=True)),
    "not whose my own is": ("question", said(COPULA, some("책", determiner="my"), "선물"), said(COPULA, "책", "선물")),
    "at full hours": ("question", past("eat", "빵", when=at_time("at", clock(3, 5))), past("eat", "빵", when=at_time("at", clock(3, 0)))),
    "what is ordered": ("command", said("cry"), said("eat", "빵")),
    "strangers are called": ("command", said("help", "학생"), said("call", "의사")),
    "nothing dear is ordered": ("command", said("buy", some("복숭아", adjective=verb("be expensive"))), said("buy", some("복숭아", adjective=verb("be sweet")))),
    "ordered in numbers": ("command", said("read", some("책", number=3)), said("buy", some("책", number=3))),
    "nobody is sent abroad": ("command", said("go", to="미국"), said("go", to="병원")),
    "where it is ordered": ("command", said("open", "문", at="집"), said("study", "영어", at="집")),
    "what is written down": ("command", said("write", "소설"), said("write", "이름")),
    "nobody washes my hands": ("request", said("wash", "손"), said("wash", "과일")),
    "what is forbidden": ("prohibition", said("throw away", "쓰레기"), said("throw away", "종이")),
    "how it is forbidden": ("prohibition", said("go", to="서점", how="늦게"), said("go", to="학교", how="늦게")),
    "what is done together": ("suggestion", said("go", to="회사"), said("go", to="극장")),
    "what is eaten together": ("suggestion", said("eat", "당근"), said("eat", "피자")),
    "nothing moves in a question": ("question", past("eat", "빵", "민수", scrambled=True), past("eat", "빵", "민수")),
    "teeth keep their particle": ("statement", past("brush", "이", drops_particle=True), past("brush", "이")),
}  # fmt: skip


@pytest.mark.parametrize("rule", OF_MOODS)
def test_moods(rule: str) -> None:
    mood, refused, allowed = OF_MOODS[rule]
    assert not spoken(mood, refused)
    assert spoken(mood, allowed)


def test_programs_do_not_announce() -> None:
    assert not spoken("statement", said("save", "파일", tense="future"), level="합쇼")
    assert spoken("statement", said("save", "파일", tense="future"))


def then(what: str, *words: Any, **rest: Any) -> Clause:
    return said(what, *words, shares_subject=True, **{"tense": "past", **rest})


OF_JOINS: dict[str, tuple[list[Clause], list[Clause]]] = {
    "strangers do nothing in passing": (
        [past("eat", "빵", "의사", link="-고"), then("work")],
        [past("eat", "빵", "민수", link="-고"), then("work")],
    ),
    "everyday things": ([past("eat", "당근", link="-고"), then("work")], [past("eat", "빵", link="-고"), then("work")]),
    "two people do the same": (
        [past("buy", "빵", link="-고", who="민수"), past("buy", "코트", "유나")],
        [past("eat", "빵", link="-고", who="민수"), past("eat", "사과", "유나")],
    ),
    "given time": (
        [said(HAVE, "시간", link="-(으)면"), then("drink", "물", tense="future")],
        [said(HAVE, "시간", link="-(으)면"), then("read", "책", tense="future")],
    ),
    "nothing after bed": ([past("sleep", link="-고"), then("work")], [past("work", link="-고"), then("sleep")]),
    "a coat is worn to go out": (
        [past("wear", "코트", link="-고"), then("clean", "방")],
        [past("wear", "코트", link="-고"), then("go", to="시장")],
    ),
    "already there": (
        [past("exercise", link="-고"), then("go", to="체육관")],
        [past("exercise", link="-고"), then("go", to="시장")],
    ),
    "just now is one thing": (
        [past("eat", "빵", link="-고", when="방금"), then("work")],
        [past("eat", "빵", link="-고", when="어제"), then("work")],
    ),
    "big makes up for dear, not for noisy": (
        [said("be noisy", who="방", link="-지만"), said("be big", shares_subject=True)],
        [said("be expensive", who="가방", link="-지만"), said("be big", shares_subject=True)],
    ),
    "the sad do not eat": (
        [past("be sad", link="-아서/어서"), then("eat", "빵")],
        [past("be sad", link="-아서/어서"), then("cry")],
    ),
    "after trouble": (
        [past("be tired", link="-지만"), then("study", "영어", link="-고"), then("sleep")],
        [past("be tired", link="-지만"), then("study", "영어", link="-고"), then("cook")],
    ),
}


@pytest.mark.parametrize("rule", OF_JOINS)
def test_joined_clauses(rule: str) -> None:
    refused, allowed = OF_JOINS[rule]
    assert not spoken("statement", *refused)
    assert spoken("statement", *allowed)


def test_nothing_is_drawn_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "_MAX_DRAWS", 5)
    drawn = iter(range(100))
    assert draw_until(lambda n: n == 4, lambda: next(drawn), "four") == 4
    with pytest.raises(DataError, match="5 draws gave no number"):
        draw_until(lambda n: n == 4, lambda: next(drawn), "number")


def test_a_shape_without_sense_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    never: Callable[[SentenceFrame], bool] = lambda sentence: False  # noqa: E731
    monkeypatch.setattr("heedful.demo.sentences.is_felicitous", never)
    monkeypatch.setattr(inventory, "_MAX_DRAWS", 50)
    sampler = SentenceSampler("full", Random(0))
    with pytest.raises(DataError, match="the shape 'because_then'"):
        sampler.draw_felicitous(sampler.because_then)
