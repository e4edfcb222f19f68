"""Frames built by hand, and what both languages make of them."""

from __future__ import annotations

import pytest

from heedful.demo.english_realization import EnglishRealizer
from heedful.demo.frames import Adjunct, Clause, Phrase, SentenceFrame
from heedful.demo.korean_realization import KoreanRealizer
from heedful.demo.lexicon import COPULA, EXIST, HAVE, WHO, WHY, I, Noun, Predicate, lexicon
from heedful.demo.numerals import age, at_time, clock, date, money

WORDS = lexicon("full")


def noun(korean: str) -> Noun:
    return WORDS.nouns[korean]


def verb(english: str) -> Predicate:
    everything = (*WORDS.verbs, *WORDS.motion, *WORDS.transfer, *WORDS.weather, *WORDS.adjectives)
    return next(predicate for predicate in everything if predicate.english == english)


def phrase(korean: str) -> Phrase:
    return Phrase(noun(korean))


def both(*clauses: Clause, level: str = "해요", mood: str = "statement") -> tuple[str, str]:
    sentence = SentenceFrame(level, mood, list(clauses))  # type: ignore[arg-type]
    return KoreanRealizer(sentence).text(), EnglishRealizer(sentence).text()


def test_particles_say_who_did_what() -> None:
    plain = Clause(verb("chase"), phrase("고양이"), phrase("개"), tense="past")
    moved = Clause(verb("chase"), phrase("고양이"), phrase("개"), tense="past", scrambled=True)
    turned = Clause(verb("chase"), phrase("개"), phrase("고양이"), tense="past", scrambled=True)
    assert both(plain) == ("고양이가 개를 쫓았어요.", "The cat chased a dog.")
    assert both(moved) == ("개를 고양이가 쫓았어요.", "The cat chased a dog.")
    assert both(turned) == ("고양이를 개가 쫓았어요.", "The dog chased a cat.")


@pytest.mark.parametrize(
    ("level", "korean"),
    [("해요", "저는 책을 읽었어요."), ("합쇼", "저는 책을 읽었습니다."), ("해", "나는 책을 읽었어.")],
)
def test_levels(level: str, korean: str) -> None:
    clause = Clause(verb("read"), Phrase(I), phrase("책"), person="I", tense="past", topic=True)
    assert both(clause, level=level) == (korean, "I read a book.")


def test_honorifics() -> None:
    eats = Clause(verb("eat"), phrase("할머니"), phrase("빵"), habit=True, topic=True)
    sleeps = Clause(verb("sleep"), phrase("아버지"), modal="progressive")
    home = Clause(EXIST, phrase("선생님"), adjuncts=[Adjunct("in", phrase("집"))], topic=True)
    assert both(eats) == ("할머니께서는 빵을 드세요.", "My grandmother eats bread.")
    assert both(sleeps) == ("아버지께서 주무시고 계세요.", "My father is sleeping.")
    assert both(home) == ("선생님께서는 집에 계세요.", "The teacher is at home.")


def test_negations() -> None:
    def study(**how: str) -> Clause:
        return Clause(verb("study"), person="I", **how)  # type: ignore[arg-type]

    assert both(study(negation="안", tense="past")) == ("공부 안 했어요.", "I didn't study.")
    assert both(study(negation="못")) == ("공부 못 해요.", "I can't study.")
    assert both(study(negation="못", modal="can")) == ("공부할 수 없어요.", "I can't study.")
    maths = Clause(verb("study"), object=phrase("수학"), person="I", negation="안", habit=True)
    assert both(maths) == ("수학을 공부하지 않아요.", "I don't study math.")
    assert both(Clause(verb("go"), adjuncts=[Adjunct("to", phrase("집"))], person="you"), mood="prohibition") == (
        "집에 가지 마세요.",
        "Don't go home.",
    )


def test_wear_is_four_verbs_in_korean() -> None:
    wear = {"셔츠": "입었어요", "신발": "신었어요", "모자": "썼어요", "장갑": "꼈어요"}
    for thing, korean in wear.items():
        predicate = next(p for p in WORDS.verbs if p.english == "wear" and noun(thing) in p.objects)
        written, english = both(Clause(predicate, object=phrase(thing), person="I", tense="past"))
        assert written.endswith(f" {korean}.")
        assert english.startswith("I wore ")


def test_objects_in_habits_events_and_at_hand() -> None:
    assert both(Clause(verb("buy"), object=phrase("사과"), person="I", habit=True))[1] == "I buy apples."
    assert both(Clause(verb("buy"), object=phrase("사과"), person="I", tense="past"))[1] == "I bought an apple."
    assert both(Clause(verb("drink"), object=phrase("물"), person="I", tense="past"))[1] == "I drank some water."
    assert both(Clause(verb("clean"), object=phrase("방"), person="I", tense="past"))[1] == "I cleaned the room."
    assert both(Clause(verb("wash"), phrase("유나"), phrase("손"), tense="past"))[1] == "Yuna washed her hands."
    three = Clause(verb("buy"), object=Phrase(noun("사과"), number=3), person="I", tense="past")
    assert both(three) == ("사과 세 개를 샀어요.", "I bought three apples.")
    cups = Clause(verb("drink"), object=Phrase(noun("커피"), number=2), person="I", tense="past")
    assert both(cups) == ("커피 두 잔을 마셨어요.", "I drank two cups of coffee.")


def test_kin_are_ones_own_unless_one_has_them() -> None:
    def wait(**how: object) -> Clause:
        return Clause(verb("wait for"), object=phrase("남동생"), **{"person": "I", **how})  # type: ignore[arg-type]

    assert both(wait(tense="future", negation="안"))[1] == "I won't wait for my younger brother."
    assert both(wait(modal="progressive"))[1] == "I am waiting for my younger brother."
    assert both(wait(modal="can"))[1] == "I can wait for my younger brother."
    assert both(wait(person="you", tense="past"), mood="question")[1] == "Did you wait for your younger brother?"
    assert both(Clause(HAVE, object=phrase("남동생"), person="you"), mood="question")[1] == (
        "Do you have a younger brother?"
    )


def test_what_is_done_well_is_one_word() -> None:
    def well(what: str, thing: str = "", **how: object) -> tuple[str, str]:
        clause = Clause(verb(what), object=phrase(thing) if thing else None, person="I", **how)  # type: ignore[arg-type]
        if thing:
            clause.predicate = next(p for p in WORDS.verbs if noun(thing) in p.objects and p.english == what)
        clause.adjuncts.append(Adjunct("how", WORDS.adverbs["잘"]))
        return both(clause)

    assert well("play", "축구", habit=True) == ("축구를 잘해요.", "I play soccer well.")
    assert well("swim", tense="past") == ("수영을 잘했어요.", "I swam well.")
    assert well("cook", modal="can") == ("요리를 잘할 수 있어요.", "I can cook well.")
    assert well("play", "피아노", habit=True) == ("피아노를 잘 쳐요.", "I play the piano well.")
    assert well("understand", "문장", habit=True) == ("문장을 잘 이해해요.", "I understand the sentence well.")


def test_what_is_ones_own_or_new() -> None:
    off = Clause(verb("take off"), phrase("유나"), phrase("모자"), tense="past")
    assert both(off) == ("유나가 모자를 벗었어요.", "Yuna took off her hat.")
    lost = Clause(verb("lose"), object=phrase("지갑"), person="I", tense="past")
    assert both(lost) == ("지갑을 잃어버렸어요.", "I lost my wallet.")
    occur = next(p for p in WORDS.messages if p.english == "occur")
    assert both(Clause(occur, phrase("오류"), tense="past"), level="합쇼") == (
        "오류가 발생했습니다.",
        "An error occurred.",
    )
    home = Clause(verb("walk"), person="I", tense="past")
    home.adjuncts = [Adjunct("from", phrase("학교")), Adjunct("until", phrase("집"))]
    assert both(home) == ("학교에서 집까지 걸었어요.", "I walked from school to home.")
    words = Clause(verb("memorize"), object=phrase("단어"), person="I", tense="past")
    assert both(words) == ("단어를 외웠어요.", "I memorized words.")


def test_questions_keep_their_word_in_place() -> None:
    who = Clause(verb("meet"), phrase("민수"), Phrase(WHO), tense="past", topic=True, wh_role="object")
    why = Clause(verb("cry"), person="you", tense="past", adjuncts=[Adjunct("why", WHY)], wh_role="why")
    assert both(who, mood="question") == ("민수는 누구를 만났어요?", "Who did Minsu meet?")
    assert both(why, mood="question") == ("왜 울었어요?", "Why did you cry?")
    subject = Clause(verb("open"), Phrase(WHO), phrase("문"), tense="past", wh_role="subject")
    assert both(subject, mood="question") == ("누가 문을 열었어요?", "Who opened the door?")


def test_joined_clauses() -> None:
    cold = Clause(verb("be cold"), link="-아서/어서", tense="past")
    closed = Clause(verb("close"), object=phrase("창문"), person="I", tense="past")
    assert both(cold, closed) == ("추워서 창문을 닫았어요.", "It was cold, so I closed the window.")
    rain = Clause(verb("rain"), link="-(으)면")
    stay = Clause(verb("sleep"), person="I", tense="future")
    assert both(rain, stay) == ("비가 오면 잘 거예요.", "If it rains, I will sleep.")
    small = Clause(verb("be small"), phrase("방"), link="-지만", topic=True)
    clean = Clause(verb("be clean"), shares_subject=True)
    assert both(small, clean) == ("방은 작지만 깨끗해요.", "The room is small but clean.")


def test_messages_of_programs() -> None:
    cannot = Clause(verb("save"), object=phrase("파일"), person="I", modal="can", negation="못")
    saved = Clause(verb("save"), object=phrase("파일"), person="I", tense="past")
    assert both(cannot, level="합쇼") == ("파일을 저장할 수 없습니다.", "The file cannot be saved.")
    assert both(saved, level="합쇼") == ("파일을 저장했습니다.", "The file has been saved.")
    assert both(saved) == ("파일을 저장했어요.", "I saved the file.")
    assert both(Clause(verb("delete"), object=phrase("파일"), person="you"), level="합쇼", mood="offer") == (
        "파일을 삭제하시겠습니까?",
        "Do you want to delete the file?",
    )


def test_relative_clauses() -> None:
    bought = Phrase(noun("가방"), relative=Clause(verb("buy"), Phrase(I), person="I", tense="past"))
    assert both(Clause(verb("be expensive"), bought, topic=True)) == (
        "제가 산 가방은 비싸요.",
        "The bag that I bought is expensive.",
    )
    reading = Phrase(noun("학생"), relative=Clause(verb("read"), object=phrase("책"), now=True))
    assert both(Clause(verb("be kind"), reading, topic=True)) == (
        "책을 읽는 학생은 친절해요.",
        "The student who is reading a book is kind.",
    )


def test_comparison_possession_and_quantities() -> None:
    more = Clause(verb("be expensive"), Phrase(noun("가방"), "this"), degree="more")
    more.adjuncts.append(Adjunct("than", Phrase(noun("가방"), "that")))
    assert both(more) == ("이 가방이 그 가방보다 더 비싸요.", "This bag is more expensive than that bag.")
    has = Clause(HAVE, phrase("민수"), phrase("여동생"), topic=True)
    assert both(has) == ("민수는 여동생이 있어요.", "Minsu has a younger sister.")
    price = Clause(COPULA, Phrase(noun("가방"), "this"), Phrase(money(35_000)), topic=True)
    assert both(price) == ("이 가방은 3만 5천 원이에요.", "This bag is 35,000 won.")
    years = Clause(COPULA, Phrase(I), Phrase(age(20)), person="I", topic=True)
    assert both(years) == ("저는 스무 살이에요.", "I am twenty years old.")
    day = Clause(COPULA, phrase("생일"), Phrase(date(6, 15)), topic=True)
    assert both(day) == ("생일은 6월 15일이에요.", "The birthday is June 15.")
    rise = Clause(verb("get up"), person="I", tense="past", adjuncts=[Adjunct("when", at_time("at", clock(3, 15)))])
    assert both(rise) == ("세 시 십오 분에 일어났어요.", "I got up at 3:15.")
